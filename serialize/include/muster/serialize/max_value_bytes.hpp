// SPDX-License-Identifier: BSL-1.0
#pragma once

// How large a value may be that crosses by itself.
//
// Thread safety: types only.

#include <cstddef>
#include <type_traits>

#include <muster/base/requirements.hpp>

namespace muster {

/// The maximum of `sizeof` for a value that crosses by itself, to another process or into a pool of threads: an
/// argument, bound value, capture, element, result, input or output of a world's function, message of a queue, object
/// of a group. Arguments, bound values and captures of one call have no more together, and neither have the outputs of
/// a world's function. Elements of maps and sets, which are decoded on the stack, have no more either.
///
/// C++ passes values by way of the stack, and functions of this library hold up to nine copies there at once, where
/// compilers do not optimise. So a thread with a stack of 4 MiB can pass any value that compiles. What a value owns
/// (elements of a vector, what a std::unique_ptr points to, a tensor's memory) does not count: it is made where it
/// stays.
///
/// Larger values do not compile. Hold them in a std::unique_ptr, or their elements in a std::vector or a tensor; or
/// share them (shared_object.hpp). A context of a pool may have any size where a factory makes it.
inline constexpr std::size_t max_value_bytes = std::size_t{256} * 1024;

namespace detail {

// In functions of their own, so that the compiler's message leads with the sentence, the type and the size.

template <class T, std::size_t Bytes = sizeof(T)>
consteval void require_fitting() {
  static_assert(Bytes <= max_value_bytes,
                "muster: a value of more than 256 KiB (muster::max_value_bytes) would pass through the stacks of "
                "threads: hold it in a std::unique_ptr, or its elements in a std::vector or a tensor, or share() it; a "
                "pool's context is made by a factory");
}

template <class F, std::size_t Bytes>
consteval void require_fitting_together() {
  static_assert(Bytes <= max_value_bytes,
                "muster: the arguments, bound values and captures of one call have more than 256 KiB together "
                "(muster::max_value_bytes) and would pass through the stacks of threads: hold them in a "
                "std::unique_ptr, or their elements in a std::vector or a tensor, or share() them");
}

/// Containers of the standard library whose elements are decoded on the stack, before they have a place.
template <class T>
inline constexpr bool finds_places_for_elements = requires {
  typename T::key_type;
  typename T::node_type;
  typename T::value_type;
};

template <class T>
consteval bool has_fitting_elements() {
  if constexpr (finds_places_for_elements<T>) {
    return sizeof(typename T::value_type) <= max_value_bytes;
  } else {
    return true;
  }
}

template <class T>
consteval void require_fitting_elements() {
  static_assert(has_fitting_elements<T>(),
                "muster: a map or set has elements of more than 256 KiB (muster::max_value_bytes), which would be "
                "decoded on the stack: let them be std::unique_ptr or std::vector");
}

}  // namespace detail

}  // namespace muster
