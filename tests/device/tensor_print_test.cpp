// SPDX-License-Identifier: BSL-1.0
#include <muster/device/tensor_print.hpp>

#include <limits>
#include <sstream>

#include "device_support.hpp"

namespace muster::tensor_print_test {
namespace {

std::string printed(const tensor& what) {
  std::ostringstream out;
  out << what;
  return out.str();
}

TEST(TensorPrint, IsShapedByBrackets) {
  EXPECT_EQ(printed(tensor::arange<int>(8, 12).reshape({2, 2})), "tensor([[ 8,  9],\n        [10, 11]], i32)");
  EXPECT_EQ(printed(tensor::zeros<bool>({2, 1, 1})), "tensor([[[False]],\n\n        [[False]]], bool)");
  EXPECT_EQ(printed(tensor::full({}, 0.5F)), "tensor(0.5, f32)");
  EXPECT_EQ(printed(tensor::full({1}, std::complex<double>(1, -2))), "tensor([1.-2.j], c128)");
  EXPECT_EQ(printed(tensor::full<std::uint8_t>({1}, 65)), "tensor([65], u8)");
  EXPECT_EQ(printed(tensor()), "tensor([], f32, shape (0,))");
}

TEST(TensorPrint, BoolsAreWrittenAsPythonDoes) {
  EXPECT_EQ(printed(tensor::from<bool>({true, false}, {2})), "tensor([ True, False], bool)");
  EXPECT_EQ(printed(tensor::full({1}, true)), "tensor([ True], bool)") << "NumPy leaves room for both";
  EXPECT_EQ(printed(tensor::full({}, true)), "tensor(True, bool)");
}

TEST(TensorPrint, BreaksLinesThatWouldBeLongerThan75) {
  EXPECT_EQ(printed(tensor::arange<int>(20)),
            "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15,\n"
            "        16, 17, 18, 19], i32)");
  EXPECT_EQ(printed(tensor::arange<int>(100, 115).reshape({1, 15})),
            "tensor([[100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112,\n"
            "         113, 114]], i32)");
  EXPECT_EQ(printed(tensor::arange<int>(100, 113)),
            "tensor([100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112],\n"
            "       i32)")
      << "the dtype does not fit either";
}

// dlpack_numpy.py compares more of them with NumPy's own.
TEST(TensorPrint, NumbersAreWrittenAsNumPyDoes) {
  const auto row = [](auto... values) {
    auto made = tensor::empty<std::common_type_t<decltype(values)...>>({sizeof...(values)});
    std::size_t index = 0;
    ((made.slice(index, index + 1).fill(values), ++index), ...);
    return printed(made);
  };
  constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
  constexpr auto infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(row(1.0, 2.5, -3.25), "tensor([ 1.  ,  2.5 , -3.25], f64)");
  EXPECT_EQ(row(0.1F, 1.0F / 3), "tensor([0.1       , 0.33333334], f32)");
  EXPECT_EQ(row(f16(0.1F), f16(3.0F)), "tensor([0.1, 3. ], f16)");
  EXPECT_EQ(row(bf16(0.1F), bf16(300.0F)), "tensor([1.e-01, 3.e+02], bf16)");
  EXPECT_EQ(row(1e-5, 123456.0), "tensor([1.00000e-05, 1.23456e+05], f64)");
  EXPECT_EQ(row(nan, 1.5, -infinite), "tensor([ nan,  1.5, -inf], f64)");
  EXPECT_EQ(row(1e100, 1.0), "tensor([1.e+100, 1.e+000], f64)");
  EXPECT_EQ(row(-0.0, 0.0), "tensor([-0.,  0.], f64)");
}

TEST(TensorPrint, AbbreviatesWhatIsLarge) {
  EXPECT_EQ(printed(tensor::arange<int>(2000)),
            "tensor([   0,    1,    2, ..., 1997, 1998, 1999], i32, shape (2000,))");
  EXPECT_THAT(printed(tensor::zeros<std::int8_t>({1000, 2})),
              testing::StartsWith("tensor([[0, 0],\n        [0, 0],\n        [0, 0],\n        ...,\n        [0, 0],"));
}

}  // namespace
}  // namespace muster::tensor_print_test
