// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a program includes that passes objects between the ranks of a group (group::broadcast_object and the like): how
// they are encoded is a fifth of what a group takes to compile. <muster/group.hpp> brings it.
//
// Thread safety: functions without state.

#include <cstddef>
#include <vector>

#include <muster/collectives/group.hpp>
#include <muster/serialize/detail/codec.hpp>
#include <muster/serialize/transportable.hpp>

namespace muster::detail {

template <class T>
struct group_object {
  [[nodiscard]] static std::vector<std::byte> encode(const T& what) {
    require_transportable<T>();
    std::vector<std::byte> bytes(codec<T>::size(what));
    codec<T>::encode(bytes, what);
    return bytes;
  }
  [[nodiscard]] static T decode(const std::vector<std::byte>& bytes) {
    require_transportable<T>();
    return codec<T>::decode_value(bytes);
  }
};

}  // namespace muster::detail
