// SPDX-License-Identifier: BSL-1.0
#include "combine.hpp"

#include <cstdint>
#include <type_traits>

#include <muster/device/float16.hpp>

namespace fake_nccl {

namespace {

// What is computed in: integers wrap around, halves are rounded after each step.
template <class T>
auto wide(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<std::make_unsigned_t<T>>(value);
  else if constexpr (std::is_same_v<T, double>)
    return value;
  else
    return static_cast<float>(value);
}

template <class T>
auto ordered(T value) {
  if constexpr (std::is_integral_v<T>)
    return value;
  else
    return wide(value);
}

template <class T>
T joined(T a, T b, ncclRedOp_t op) {
  switch (op) {
    case ncclProd: return static_cast<T>(wide(a) * wide(b));
    case ncclMin: return ordered(b) < ordered(a) ? b : a;
    case ncclMax: return ordered(a) < ordered(b) ? b : a;
    default: return static_cast<T>(wide(a) + wide(b));
  }
}

template <class T>
void combine_as(std::byte* into, const std::byte* from, std::size_t count, ncclRedOp_t op) {
  auto* const results = reinterpret_cast<T*>(into);
  const auto* const values = reinterpret_cast<const T*>(from);
  for (std::size_t each = 0; each < count; ++each) results[each] = joined(results[each], values[each], op);
}

template <class Visit>
auto visit(ncclDataType_t type, const Visit& with) {
  switch (type) {
    case ncclInt8: return with(std::type_identity<std::int8_t>());
    case ncclUint8: return with(std::type_identity<std::uint8_t>());
    case ncclInt32: return with(std::type_identity<std::int32_t>());
    case ncclUint32: return with(std::type_identity<std::uint32_t>());
    case ncclInt64: return with(std::type_identity<std::int64_t>());
    case ncclUint64: return with(std::type_identity<std::uint64_t>());
    case ncclFloat16: return with(std::type_identity<muster::f16>());
    case ncclBfloat16: return with(std::type_identity<muster::bf16>());
    case ncclFloat32: return with(std::type_identity<float>());
    case ncclFloat64: return with(std::type_identity<double>());
    default: throw ncclInvalidArgument;
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  return visit(type, []<class T>(std::type_identity<T>) { return sizeof(T); });
}

void combine(std::byte* into, const std::byte* from, std::size_t count, ncclDataType_t type, ncclRedOp_t op) {
  visit(type, [&]<class T>(std::type_identity<T>) { combine_as<T>(into, from, count, op); });
}

}  // namespace fake_nccl
