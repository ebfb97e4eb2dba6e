// SPDX-License-Identifier: BSL-1.0
// Tensors in threads whose floating-point state the program has set: the same bits, and the state stays.
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <muster/device/arithmetic.hpp>
#include <muster/device/detail/convert.hpp>

#include "device_support.hpp"
#include "float_states.hpp"

namespace muster::tensor_floats_test {
namespace {

using test::floats;
using test::floats_scope;

// What a call gave, to the bit.
using bits = std::vector<std::uint8_t>;

bits bits_of(const tensor& what) {
  const auto here = what.contiguous();
  const auto* const first = reinterpret_cast<const std::uint8_t*>(here.data());
  return {first, first + here.nbytes()};
}
bits bits_of(bool truth) { return {static_cast<std::uint8_t>(truth)}; }
bits bits_of(std::size_t number) { return {static_cast<std::uint8_t>(number)}; }
bits bits_of(const std::string& text) { return {text.begin(), text.end()}; }

constexpr double tiny = 3e-310;       // below the least normal f64
constexpr float tiny_float = 3e-39F;  // below the least normal f32
constexpr double infinite = std::numeric_limits<double>::infinity();

// Numbers that are rounded, flushed or trap; of one kind each type has, at least.
tensor numbers(dtype type) {
  constexpr double given[] = {1.0 / 3, -1e-3, tiny, 4e-39, -6e-8, 70000.0, 3e38, infinite, 0.0, 1e-45, 2.0 / 3, -0.1};
  return convert(tensor::from(given), type, memory::local);
}

using call = std::function<bits()>;

template <class F>
call made(const F& of) {
  return [of] { return bits_of(of()); };
}

void add_arithmetic(std::vector<call>& calls, dtype type) {
  for (const auto op : {element_op::sum, element_op::prod}) {
    calls.push_back(made([=] {
      const auto into = numbers(type);
      accumulate(into, numbers(type).slice(0, 12, 0), op);
      return into;
    }));
  }
  calls.push_back(made([=] {
    const auto which = numbers(type);
    scale(which, 1.0 / 3);
    return which;
  }));
  calls.push_back(made([=] {
    const auto strided = tensor::zeros(type, {12, 2}).slice(0, 1, 1);
    strided.copy_from(numbers(type).reshape({12, 1}));
    accumulate(strided, numbers(type).reshape({12, 1}));
    return strided;
  }));
  calls.push_back(made([=] {
    const auto y = numbers(type);
    axpy(0.1, numbers(type), y);
    return y;
  }));
}

std::vector<call> all_calls() {
  std::vector<call> calls;
  for (const auto type : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64, dtype::c64, dtype::c128}) {
    add_arithmetic(calls, type);
    for (const auto to : {dtype::boolean, dtype::i32, dtype::f16, dtype::bf16, dtype::f32, dtype::f64, dtype::c64}) {
      calls.push_back(made([=] { return convert(numbers(type), to); }));
    }
    calls.push_back(made([=] { return compare(numbers(type), comparison::not_equal, tensor::zeros(type, {1})); }));
    calls.push_back(made([=] { return equal(numbers(type), tensor::zeros(type, {12})); }));
    calls.push_back(made([=] { return is_close(numbers(type), numbers(type), {.relative = 0, .absolute = 0}); }));
    calls.push_back(made([=] { return count_nonzero(numbers(type)); }));
    calls.push_back(made([=] { return any(numbers(type).slice(2, 5)); }));
    calls.push_back(made([=] { return all(numbers(type).slice(2, 5)); }));
    calls.push_back(made([=] {
      std::ostringstream out;
      out << numbers(type);
      return out.str();
    }));
  }
  constexpr auto large = std::int64_t{1} << 60;
  for (const auto to : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
    calls.push_back(made([=] { return convert(tensor::from<std::int64_t>({large + 1, -large - 63, 3}, {3}), to); }));
  }
  calls.push_back(made([] { return tensor::full<float>({3}, tiny_float); }));
  calls.push_back(made([] { return tensor::full<bf16>({3}, bf16(tiny_float)); }));
  calls.push_back(made([] { return tensor::full<std::complex<float>>({3}, {tiny_float, -tiny_float}); }));
  calls.push_back(made([] {
    const auto filled = tensor::empty<float>({40});
    filled.fill(0.1);
    return filled;
  }));
  calls.push_back(made([] { return tensor::arange<float>(0.1F, 1.0F, 0.1F); }));
  calls.push_back(made([] { return tensor::arange<double>(0, 9 * tiny, tiny); }));
  calls.push_back(
      made([] { return compare(tensor::full<float>({}, 2 * tiny_float), comparison::greater, tiny_float); }));
  calls.push_back(made([] {
    std::vector<float> values = {1.0F / 3, tiny_float};
    axpy<float>(0.1, std::vector<float>{0.7F, tiny_float}, values);
    scale<float>(values, 0.3);
    accumulate<float>(values, std::vector<float>{tiny_float, 1e-9F});
    return tensor::from(values);
  }));
  calls.push_back(made([] {
    std::vector<float> values(2);
    convert_into<float, double>(values, std::vector<double>{1.0 / 3, 4e-39});
    return tensor::from(values);
  }));
  // Half a unit of long double's more than is close, if it is rounded up.
  calls.push_back(made([] {
    return all_close(tensor::full<double>({1}, 1.0 + 0x1p-20), tensor::full<double>({1}, 1.0),
                     {.relative = 0x1p-20, .absolute = 0});
  }));
  return calls;
}

class TensorFloats : public testing::TestWithParam<floats> {};

TEST_P(TensorFloats, EveryCallGivesTheSameBitsAndLeavesTheState) {
  const auto calls = all_calls();
  for (std::size_t index = 0; index < calls.size(); ++index) {
    const auto usual = calls[index]();
    bits found;
    bool is_unchanged = false;
    {
      const floats_scope set(GetParam());
      found = calls[index]();
      is_unchanged = set.is_unchanged();
    }
    EXPECT_EQ(found, usual) << "call " << index;
    EXPECT_TRUE(is_unchanged) << "call " << index;
  }
}

INSTANTIATE_TEST_SUITE_P(States, TensorFloats, testing::ValuesIn(test::floats_here()),
                         [](const auto& which) { return test::name_of(which.param); });

}  // namespace
}  // namespace muster::tensor_floats_test
