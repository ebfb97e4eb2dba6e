// SPDX-License-Identifier: BSL-1.0
#include <muster/device/detail/convert.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <vector>

#include "device_support.hpp"

namespace muster::convert_test {
namespace {

using test::expect_refused;
using test::is_complex;
using test::is_half;
using testing::ElementsAre;

using all_types =
    std::tuple<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
               std::uint64_t, f16, bf16, float, double, std::complex<float>, std::complex<double>>;

template <class F>
void for_each_type(const F& what) {
  std::apply([&](auto... each) { (what(each), ...); }, all_types());
}

// ---- the reference: by way of long double, which has every number of every real dtype.

template <class T>
long double widened(T value) {
  if constexpr (is_half<T>) return static_cast<float>(value);
  return static_cast<long double>(value);
}

// Of all finite numbers of a format, and 2^(its largest exponent + 1) for infinity, the nearest; of two the even one.
template <class Half>
Half nearest_half(long double value) {
  const auto positive = [](std::uint16_t bits) -> long double {
    constexpr std::uint16_t infinity = std::is_same_v<Half, f16> ? 0x7c00 : 0x7f80;
    return bits == infinity ? std::ldexp(1.0L, std::is_same_v<Half, f16> ? 16 : 128) : widened(Half::from_bits(bits));
  };
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const auto size = std::fabs(value);
  std::uint16_t low = 0;
  std::uint16_t high = std::is_same_v<Half, f16> ? 0x7c00 : 0x7f80;
  if (std::isnan(value)) return Half(std::numeric_limits<float>::quiet_NaN());
  if (size >= positive(high)) return Half::from_bits(sign | high);
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (positive(middle) <= size ? low : high) = middle;
  }
  const auto below = size - positive(low);
  const auto above = positive(high) - size;
  const bool up = above < below || (above == below && low % 2 == 1);
  return Half::from_bits(static_cast<std::uint16_t>(sign | (up ? high : low)));
}

template <class To>
To nearest_integer(long double value) {
  if (std::isnan(value)) return 0;
  const auto whole = std::trunc(value);
  if (whole <= static_cast<long double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (whole >= static_cast<long double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(whole);
}

template <class To, class From>
To expected_of(From value) {
  if constexpr (is_complex<To>) {
    using part = typename To::value_type;
    if constexpr (is_complex<From>)
      return {expected_of<part>(value.real()), expected_of<part>(value.imag())};
    else
      return {expected_of<part>(value), 0};
  } else if constexpr (is_complex<From>) {
    if constexpr (std::is_same_v<To, bool>) return value.real() != 0 || value.imag() != 0;
    return expected_of<To>(value.real());
  } else if constexpr (std::is_same_v<To, bool>) {
    return widened(value) != 0;
  } else if constexpr (is_half<To>) {
    return nearest_half<To>(widened(value));
  } else if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    return nearest_integer<To>(widened(value));
  } else if constexpr (std::is_integral_v<To>) {
    return static_cast<To>(static_cast<std::uint64_t>(value));
  } else {
    return static_cast<To>(widened(value));
  }
}

// ---- numbers that are at the edges of something, each with its neighbours

std::vector<double> edges() {
  std::vector<double> found = {0.0, -0.0, std::numeric_limits<double>::quiet_NaN(), HUGE_VAL, -HUGE_VAL};
  for (const auto exponent :
       {-160, -149, -134, -133, -126, -25, -24, -14, -1, 0, 1, 7, 8, 11, 15, 16, 24, 31, 32, 53, 63, 64, 127, 128}) {
    // 1, ties of both formats of 16 bits and what is just beside them, and the largest numbers before the next power
    for (const double fraction : {1.0, 1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-11, 1 + 0x3p-11, 2 - 0x1p-8, 2 - 0x1p-11,
                                  2 - 0x1p-24, 1.5, 1 + 0x1p-24}) {
      for (const double beside : {0.0, 0x1p-30, -0x1p-30, 0x1p-50, -0x1p-50}) {
        found.push_back(std::ldexp(fraction + beside, exponent));
        found.push_back(-found.back());
      }
    }
  }
  return found;
}

template <class T>
std::vector<T> samples() {
  std::vector<T> found;
  if constexpr (is_complex<T>) {
    for (const auto part : samples<typename T::value_type>()) {
      found.insert(found.end(), {T(part, 0), T(0, part), T(part, part)});
    }
  } else if constexpr (is_half<T>) {
    for (std::uint32_t bits = 0; bits < 0x10000; bits += 7)
      found.push_back(T::from_bits(static_cast<std::uint16_t>(bits)));
  } else if constexpr (std::is_floating_point_v<T>) {
    for (const auto edge : edges()) found.push_back(static_cast<T>(edge));
  } else if constexpr (std::is_same_v<T, bool>) {
    found = {false, true};
  } else {
    using limits = std::numeric_limits<T>;
    for (const auto edge : edges()) {
      if (!(std::fabs(edge) < std::ldexp(1.0, limits::digits)) || (edge < 0 && !limits::is_signed)) continue;
      const auto whole = static_cast<T>(edge);
      const auto bits = static_cast<std::uint64_t>(whole);  // where neighbours do not overflow
      found.insert(found.end(), {whole, static_cast<T>(bits + 1), static_cast<T>(bits - 1)});
    }
    found.insert(found.end(), {limits::min(), limits::max()});
  }
  return found;
}

// Room for the samples of bool, which std::vector packs.
template <class T>
tensor tensor_of(const std::vector<T>& values) {
  auto made = tensor::empty<T>({values.size()}, memory::local);
  std::copy(values.begin(), values.end(), made.template data<T>());
  return made;
}

// The sign of zero counts; NaNs are all the same.
template <class T>
bool same(T a, T b) {
  if constexpr (is_complex<T>) {
    return same(a.real(), b.real()) && same(a.imag(), b.imag());
  } else if constexpr (std::is_integral_v<T>) {
    return a == b;
  } else {
    const auto left = widened(a);
    const auto right = widened(b);
    return (std::isnan(left) && std::isnan(right)) || (left == right && std::signbit(left) == std::signbit(right));
  }
}

template <class To, class From>
void expect_as_the_reference() {
  const auto values = samples<From>();
  const tensor found = convert(tensor_of(values), dtype_of<To>, memory::local);
  ASSERT_EQ(found.dtype(), dtype_of<To>);
  for (std::size_t index = 0; index < values.size(); ++index) {
    const From value = values[index];
    const To want = expected_of<To>(value);
    ASSERT_TRUE(same(found.at<To>(index), want)) << dtype_of<From> << " to " << dtype_of<To> << ", sample " << index;
  }
}

TEST(Convert, EveryDtypeIntoEveryOtherIsAsTheReference) {
  for_each_type([]<class From>(From) { for_each_type([]<class To>(To) { expect_as_the_reference<To, From>(); }); });
}

template <class T>
std::complex<long double> number_of(T value) {
  if constexpr (is_complex<T>)
    return {widened(value.real()), widened(value.imag())};
  else
    return {widened(value), 0};
}

template <class To, class From>
bool all_are_the_same_numbers() {
  const tensor given = tensor_of(samples<From>());
  const tensor found = convert(given, dtype_of<To>, memory::local);
  for (std::size_t index = 0; index < given.size(); ++index) {
    if (!same(number_of(given.at<From>(index)), number_of(found.at<To>(index)))) return false;
  }
  return true;
}

TEST(Convert, IsLosslessWhereAllNumbersStayTheSame) {
  for_each_type([]<class From>(From) {
    for_each_type([]<class To>(To) {
      EXPECT_EQ(is_lossless(dtype_of<From>, dtype_of<To>), (all_are_the_same_numbers<To, From>()))
          << dtype_of<From> << " to " << dtype_of<To>;
    });
  });
}

TEST(Convert, RoundsOnceOnTheWayToSixteenBits) {
  // As a float the first is the tie between 1 and the next f16, and would go down to 1.
  const auto from = tensor::from({1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11 - 0x1p-40}, {2});
  EXPECT_EQ(convert(from, dtype::f16).at<f16>(0), 1 + 0x1p-10F);
  EXPECT_EQ(convert(from, dtype::f16).at<f16>(1), 1.0F);
  const auto whole = tensor::from({(std::int64_t{1} << 60) + (std::int64_t{1} << 52) + 1}, {1});
  EXPECT_EQ(convert(whole, dtype::bf16).at<bf16>(0), 0x1p60F + 0x1p53F);
  const auto filled = tensor::empty<f16>({1});
  filled.fill(1 + 0x1p-11 + 0x1p-40);
  EXPECT_EQ(filled.at<f16>(0), 1 + 0x1p-10F);
}

TEST(Convert, SlicesAndColumnsAreConvertedWhereTheyLie) {
  const auto from = tensor::arange<std::int32_t>(12).reshape({3, 4});
  EXPECT_THAT(convert(from.slice(1, 3, 1), dtype::f32).to_vector<float>(), ElementsAre(1, 2, 5, 6, 9, 10));
  const auto to = tensor::zeros<double>({3, 4});
  convert_into(to.slice(0, 2, 1), from.slice(2, 4, 1));
  EXPECT_THAT(to.to_vector<double>(), ElementsAre(2, 3, 0, 0, 6, 7, 0, 0, 10, 11, 0, 0));
}

TEST(Convert, LongOnesNoMultipleOfAVectorAreWhole) {
  const auto from = tensor::arange<std::int32_t>(-5000, 5003);
  const auto small = convert(from, dtype::i8).to_vector<std::int8_t>();
  const auto real = convert(from, dtype::f32);
  for (std::size_t index = 0; index < from.size(); ++index) {
    const auto value = from.at<std::int32_t>(index);
    ASSERT_EQ(small[index], static_cast<std::int8_t>(value));
    ASSERT_EQ(real.at<float>(index), static_cast<float>(value));
  }
  EXPECT_TRUE(equal(convert(real, dtype::i32), from));
}

template <class To, class From>
void expect_spans_as_tensors() {
  const auto from = tensor_of(samples<From>());
  const auto expected = convert(from, dtype_of<To>, memory::local);
  const auto found = tensor::empty<To>({from.size()}, memory::local);
  convert_into<To, From>(found.template span<To>(), from.template span<From>());
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), expected.nbytes()), 0)
      << dtype_of<From> << " to " << dtype_of<To>;
}

TEST(Convert, SpansOfEveryDtypeBecomeWhatTensorsBecome) {
  for_each_type([]<class From>(From) { for_each_type([]<class To>(To) { expect_spans_as_tensors<To, From>(); }); });
}

TEST(Convert, ElementsOfTheProgramsOwnNeedAsManyPlaces) {
  const std::vector<double> from = {1.5, -2.5, 1e300};
  std::vector<float> to(3, 7);
  convert_into<float, double>(to, from);
  EXPECT_THAT(to, ElementsAre(1.5F, -2.5F, HUGE_VALF));
  expect_refused([&] { convert_into<float, double>(std::span(to).first(2), from); }, "3 elements", "converted to 2",
                 "as many");
  EXPECT_THAT(to, ElementsAre(1.5F, -2.5F, HUGE_VALF)) << "nothing is written then";
  convert_into(std::span<float>(), std::span<const double>());
  std::vector<float> same(3);
  convert_into<float, float>(same, to);
  EXPECT_EQ(same, to);
  convert_into<float, float>(same, same);
  EXPECT_EQ(same, to);
}

TEST(Convert, TheSameDtypeIsTheSameTensor) {
  const auto from = tensor::ones<float>({2, 3});
  EXPECT_EQ(convert(from, dtype::f32).data(), from.data());
}

TEST(Convert, NoDimensionsAndNoElementsAreAllowed) {
  EXPECT_EQ(convert(tensor::full({}, 2.5), dtype::f32).item<float>(), 2.5F);
  EXPECT_EQ(convert(tensor::zeros<float>({0, 3}), dtype::i8).shape(), (tensor_shape{0, 3}));
}

TEST(Convert, OtherShapesAreRefused) {
  expect_refused([] { convert_into(tensor::zeros<float>({2, 3}), tensor::zeros<double>({3, 2})); }, "(3, 2)", "(2, 3)",
                 "must be the same");
}

}  // namespace
}  // namespace muster::convert_test
