// SPDX-License-Identifier: BSL-1.0
#include <muster/device/dtype.hpp>

#include <sstream>

#include <gtest/gtest.h>

namespace muster::dtype_test {
namespace {

template <class T>
void expect(dtype type, const char* name) {
  EXPECT_EQ(dtype_of<T>, type) << name;
  EXPECT_EQ(dtype_of<const T>, type) << name;
  EXPECT_EQ(dtype_size(type), sizeof(T)) << name;
  EXPECT_EQ(dtype_name(type), name);
}

TEST(Dtype, EveryOneHasItsTypeSizeAndName) {
  expect<bool>(dtype::boolean, "bool");
  expect<std::int8_t>(dtype::i8, "i8");
  expect<std::int16_t>(dtype::i16, "i16");
  expect<std::int32_t>(dtype::i32, "i32");
  expect<std::int64_t>(dtype::i64, "i64");
  expect<std::uint8_t>(dtype::u8, "u8");
  expect<std::uint16_t>(dtype::u16, "u16");
  expect<std::uint32_t>(dtype::u32, "u32");
  expect<std::uint64_t>(dtype::u64, "u64");
  expect<f16>(dtype::f16, "f16");
  expect<bf16>(dtype::bf16, "bf16");
  expect<float>(dtype::f32, "f32");
  expect<double>(dtype::f64, "f64");
  expect<std::complex<float>>(dtype::c64, "c64");
  expect<std::complex<double>>(dtype::c128, "c128");
}

TEST(Dtype, IntegersOfOneSizeAreOne) {
  EXPECT_EQ(dtype_of<long>, dtype_of<long long>);
  EXPECT_EQ(dtype_of<unsigned long>, dtype_of<unsigned long long>);
}

static_assert(!tensor_element<char> && !tensor_element<char32_t> && !tensor_element<long double> &&
              !tensor_element<int*> && !tensor_element<std::complex<long double>>);

TEST(Dtype, PrintsItsNameWhateverNumberItIs) {
  std::ostringstream out;
  out << dtype::bf16 << ' ' << static_cast<dtype>(99);
  EXPECT_EQ(out.str(), "bf16 unknown");
}

}  // namespace
}  // namespace muster::dtype_test
