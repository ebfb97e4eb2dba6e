// SPDX-License-Identifier: BSL-1.0
// The kernels of combine, for the instruction set that the unit which includes this is compiled for.
//
// All of it is in an anonymous namespace, and it calls no inline function of other headers, not even of std: of those
// the linker keeps one for the whole program, and if that were the AVX2 unit's, older processors would stop at it.
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "combine_kernel.hpp"

// clang-format off: in this order, each uses those before
#include "combine_packs.ipp"
#include "combine_formats.ipp"
#include "combine_operations.ipp"
#include "combine_loops.ipp"
// clang-format on

namespace muster::detail {
namespace {

template <class Op>
combine_kernel find_float(dtype type) {
  switch (type) {
    case dtype::f16: return run<f16_format, Op>;
    case dtype::bf16: return run<bf16_format, Op>;
    case dtype::f32: return run<plain<float>, Op>;
    case dtype::f64: return run<plain<double>, Op>;
    default: return nullptr;
  }
}

template <class Op>
combine_kernel find_unsigned(dtype type) {
  switch (type) {
    case dtype::u8: return run<plain<std::uint8_t>, Op>;
    case dtype::u16: return run<plain<std::uint16_t>, Op>;
    case dtype::u32: return run<plain<std::uint32_t>, Op>;
    case dtype::u64: return run<plain<std::uint64_t>, Op>;
    default: return find_float<Op>(type);
  }
}

template <class Op>
combine_kernel find_ordered(dtype type) {
  switch (type) {
    case dtype::i8: return run<plain<std::int8_t>, Op>;
    case dtype::i16: return run<plain<std::int16_t>, Op>;
    case dtype::i32: return run<plain<std::int32_t>, Op>;
    case dtype::i64: return run<plain<std::int64_t>, Op>;
    default: return find_unsigned<Op>(type);
  }
}

combine_kernel find_product(dtype type) {
  switch (type) {
    case dtype::c64: return run<complex_format<float>, product>;
    case dtype::c128: return run<complex_format<double>, product>;
    default: return find_unsigned<product>(type);
  }
}

__extension__ using i128 = __int128;
__extension__ using u128 = unsigned __int128;

combine_kernel find_average(dtype type) {
  switch (type) {
    case dtype::i8: return run<counted<std::int8_t, std::int64_t>, average>;
    case dtype::i16: return run<counted<std::int16_t, std::int64_t>, average>;
    case dtype::i32: return run<counted<std::int32_t, std::int64_t>, average>;
    case dtype::i64: return run<counted<std::int64_t, i128>, average>;
    case dtype::u8: return run<counted<std::uint8_t, std::uint64_t>, average>;
    case dtype::u16: return run<counted<std::uint16_t, std::uint64_t>, average>;
    case dtype::u32: return run<counted<std::uint32_t, std::uint64_t>, average>;
    case dtype::u64: return run<counted<std::uint64_t, u128>, average>;
    default: return find_float<average>(type);
  }
}

combine_kernel find_bool(reduction_op op) {
  switch (op) {
    case reduction_op::band: return run<bool_format, bit_and>;
    case reduction_op::bor: return run<bool_format, bit_or>;
    case reduction_op::bxor: return run<bool_format, bit_xor>;
    default: return nullptr;
  }
}

combine_kernel find_kernel(reduction_op op, dtype type) {
  if (type == dtype::boolean) return find_bool(op);
  switch (op) {
    case reduction_op::sum: return find_unsigned<addition>(type);
    case reduction_op::avg: return find_average(type);
    case reduction_op::prod: return find_product(type);
    case reduction_op::min: return find_ordered<least>(type);
    case reduction_op::max: return find_ordered<greatest>(type);
    case reduction_op::band: return run<plain<std::uint8_t>, bit_and>;
    case reduction_op::bor: return run<plain<std::uint8_t>, bit_or>;
    case reduction_op::bxor: return run<plain<std::uint8_t>, bit_xor>;
    default: return nullptr;
  }
}

}  // namespace
}  // namespace muster::detail
