// SPDX-License-Identifier: BSL-1.0
#pragma once

// From a dtype to its C++ type.
//
// Thread safety: pure functions; safe.

#include <complex>
#include <cstdint>
#include <type_traits>

#include <muster/base/assert.hpp>
#include <muster/device/dtype.hpp>
#include <muster/device/float16.hpp>

#include "element_kind.hpp"

namespace muster::detail {

/// Calls `what` with a std::type_identity of the type of `type`'s elements.
template <class F>
decltype(auto) visit_dtype(dtype type, const F& what) {
  switch (type) {
    case dtype::boolean: return what(std::type_identity<bool>());
    case dtype::i8: return what(std::type_identity<std::int8_t>());
    case dtype::i16: return what(std::type_identity<std::int16_t>());
    case dtype::i32: return what(std::type_identity<std::int32_t>());
    case dtype::i64: return what(std::type_identity<std::int64_t>());
    case dtype::u8: return what(std::type_identity<std::uint8_t>());
    case dtype::u16: return what(std::type_identity<std::uint16_t>());
    case dtype::u32: return what(std::type_identity<std::uint32_t>());
    case dtype::u64: return what(std::type_identity<std::uint64_t>());
    case dtype::f16: return what(std::type_identity<f16>());
    case dtype::bf16: return what(std::type_identity<bf16>());
    case dtype::f32: return what(std::type_identity<float>());
    case dtype::f64: return what(std::type_identity<double>());
    case dtype::c64: return what(std::type_identity<std::complex<float>>());
    case dtype::c128: break;
  }
  MUSTER_ASSERT(type == dtype::c128);
  return what(std::type_identity<std::complex<double>>());
}

}  // namespace muster::detail
