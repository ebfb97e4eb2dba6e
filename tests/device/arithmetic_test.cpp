// SPDX-License-Identifier: BSL-1.0
#include <muster/device/arithmetic.hpp>

#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <muster/device/tensor_compare.hpp>

#include "device_support.hpp"

namespace muster::arithmetic_test {
namespace {

using test::expect_refused;
using test::is_complex;
using test::is_half;
using testing::ElementsAre;
using enum element_op;

constexpr std::array all_ops = {sum, prod, min, max};

// Small whole numbers: what is computed of them is exact in every dtype, but for what wraps around in those of 8 bits.
template <class T>
std::vector<T> numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> made;
  for (std::size_t index = 0; index < count; ++index) {
    const int number = static_cast<int>(random() % 12);
    if constexpr (is_half<T> || is_complex<T>) {
      made.push_back(T(static_cast<float>(number - 6)));
    } else if constexpr (std::is_same_v<T, bool>) {
      made.push_back(number % 2 == 0);
    } else {
      made.push_back(static_cast<T>(number - (std::is_unsigned_v<T> ? 0 : 6)));
    }
  }
  return made;
}

template <class T>
T expected(T a, T b, element_op op) {
  if constexpr (is_half<T>) {
    return T(expected(static_cast<float>(a), static_cast<float>(b), op));
  } else if constexpr (is_complex<T>) {
    return op == sum ? a + b : a * b;
  } else {
    if (op == min) return b < a ? b : a;
    if (op == max) return a < b ? b : a;
    if constexpr (std::is_same_v<T, bool>) return op == sum ? a || b : a && b;
    return op == sum ? static_cast<T>(a + b) : static_cast<T>(a * b);
  }
}

template <class T>
bool same(T a, T b) {
  if constexpr (is_half<T>) {
    return static_cast<float>(a) == static_cast<float>(b);
  } else {
    return a == b;
  }
}

template <class T>
class Arithmetic : public testing::Test {};
using elements =
    testing::Types<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                   std::uint32_t, std::uint64_t, f16, bf16, float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Arithmetic, elements);

// Odd, so that vectors have a rest.
constexpr std::size_t count = 1003;

template <class T>
tensor tensor_of(const std::vector<T>& values) {
  const tensor made = tensor::empty(dtype_of<T>, {values.size()});
  for (std::size_t index = 0; index < values.size(); ++index) made.template at<T>(index) = values[index];
  return made;
}

TYPED_TEST(Arithmetic, AccumulatesElementByElement) {
  using T = TypeParam;
  const auto a = numbers<T>(count, 1);
  const auto b = numbers<T>(count, 2);
  for (const auto op : all_ops) {
    const tensor into = tensor_of(a);
    if (is_complex<T> && (op == min || op == max)) {
      expect_refused([&] { accumulate(into, tensor_of(b), op); }, "complex", "no order");
      continue;
    }
    accumulate(into, tensor_of(b), op);
    for (std::size_t index = 0; index < count; ++index) {
      ASSERT_TRUE(same(into.template at<T>(index), expected<T>(a[index], b[index], op))) << index;
    }
  }
}

// The columns of a matrix, and those of another from behind.
TYPED_TEST(Arithmetic, GoesByStrides) {
  using T = TypeParam;
  const tensor a = tensor_of(numbers<T>(60, 3)).reshape({20, 3});
  const tensor across = tensor_of(numbers<T>(60, 4));
  const tensor b = tensor::over(across.storage(), dtype_of<T>, {20, 3}, {-1, 20}, 19 * sizeof(T));
  const tensor into = a.clone();
  accumulate(into, b);
  for (std::size_t row = 0; row < 20; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      ASSERT_TRUE(same(into.template at<T>(row, column),
                       expected<T>(a.template at<T>(row, column), b.template at<T>(row, column), sum)));
    }
  }
}

TYPED_TEST(Arithmetic, ScalesAndStepsWhatHasFractions) {
  using T = TypeParam;
  const auto a = numbers<T>(count, 5);
  const auto b = numbers<T>(count, 6);
  const tensor y = tensor_of(a);
  if constexpr (std::is_integral_v<T>) {
    expect_refused([&] { scale(y, 2); }, "scale", "f32", dtype_name(dtype_of<T>).data(), "convert()");
    expect_refused([&] { axpy(2, tensor_of(b), y); }, "axpy", dtype_name(dtype_of<T>).data());
    EXPECT_TRUE(equal(y, tensor_of(a)));
  } else {
    scale(y, 0.5);
    axpy(-0.25, tensor_of(b), y);
    const auto part = [](T value, float factor) {
      if constexpr (is_half<T>) return T(static_cast<float>(value) * factor);
      if constexpr (!is_half<T>) return value * T(factor);
    };
    for (std::size_t index = 0; index < count; ++index) {
      ASSERT_TRUE(same(y.template at<T>(index), expected<T>(part(a[index], 0.5F), part(b[index], -0.25F), sum)))
          << index;
    }
  }
}

TEST(ElementArithmetic, TakesTheFirstNumberThatIsNone) {
  const auto none = std::numeric_limits<float>::quiet_NaN();
  for (const auto op : {min, max}) {
    std::vector values = {none, 1.0F, none, 2.0F};
    accumulate<float>(values, std::vector{1.0F, none, none, 2.0F}, op);
    EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]) && std::isnan(values[2]));
    EXPECT_EQ(values[3], 2.0F);
  }
}

TEST(ElementArithmetic, IntegersWrapAround) {
  std::vector<std::int8_t> bytes = {127, -128};
  accumulate<std::int8_t>(bytes, std::vector<std::int8_t>{1, -1});
  EXPECT_THAT(bytes, ElementsAre(-128, 127));
  std::vector<std::int64_t> longs = {std::numeric_limits<std::int64_t>::max()};
  accumulate<std::int64_t>(longs, longs);
  EXPECT_THAT(longs, ElementsAre(-2));
  std::vector<std::uint16_t> shorts = {65535};
  accumulate<std::uint16_t>(shorts, shorts, prod);
  EXPECT_THAT(shorts, ElementsAre(1));
}

TEST(ElementArithmetic, WorksOnVectorsOfTheProgram) {
  std::vector sums = {1.0, 2.0};
  const std::vector part = {10.0, 20.0};
  accumulate<double>(sums, part);
  axpy<double>(0.5, part, sums);
  scale<double>(sums, 2);
  EXPECT_THAT(sums, ElementsAre(32.0, 64.0));
  accumulate<double>({}, {});
}

TEST(ElementArithmetic, ATensorMayBeAddedToItself) {
  const auto values = tensor::from({1.0F, 2.0F, 3.0F}, {3});
  accumulate(values, values);
  EXPECT_TRUE(equal(values, tensor::from({2.0F, 4.0F, 6.0F}, {3})));
}

TEST(ElementArithmetic, TakesWhatHasNoElementsOrNoDimensions) {
  accumulate(tensor::zeros<float>({0, 3}), tensor::ones<float>({0, 3}));
  const auto number = tensor::full<float>({}, 3);
  accumulate(number, number, prod);
  EXPECT_EQ(number.item<float>(), 9);
}

TEST(ElementArithmetic, RefusesWhatDoesNotFitAndChangesNothing) {
  const auto into = tensor::ones<float>({2, 3});
  expect_refused([&] { accumulate(into, tensor::ones<float>({3, 2})); }, "accumulate", "(2, 3)", "(3, 2)");
  expect_refused([&] { accumulate(into, tensor::ones<double>({2, 3})); }, "f32", "f64");
  expect_refused([&] { axpy(1, tensor::ones<float>({6}), into); }, "axpy", "(6,)");
  expect_refused([&] { accumulate(into, into, static_cast<element_op>(9)); }, "element_op 9");
  std::vector few = {1.0F};
  expect_refused([&] { accumulate<float>(few, std::vector{1.0F, 2.0F}); }, "2 elements into 1");
  expect_refused([&] { axpy<float>(1, std::vector{1.0F, 2.0F}, few); }, "axpy of 2 elements into 1");
  EXPECT_TRUE(equal(into, tensor::ones<float>({2, 3})));
}

}  // namespace
}  // namespace muster::arithmetic_test
