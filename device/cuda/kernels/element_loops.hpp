// SPDX-License-Identifier: BSL-1.0
#pragma once

// Over all elements of arrays, by all threads of all blocks.

#include <cstddef>
#include <cstdint>

#include "kernel_arguments.hpp"
#include "platform.hpp"

namespace muster::detail {

/// Elements that are loaded and stored at once.
template <class T, unsigned Count>
struct alignas(sizeof(T) * Count) pack {
  T each[Count];
};

/// Most elements of both types that fit into 16 bytes.
template <class A, class B = A>
inline constexpr unsigned pack_size = 16 / (sizeof(A) < sizeof(B) ? sizeof(B) : sizeof(A));

/// Calls work(i, load(i)) for all i below count, each thread for some of them: several loads first, then the work.
template <class Load, class Work>
__device__ void for_each_index(std::uint64_t count, const Load& load, const Work& work) {
  const auto step = std::uint64_t{kernel_threads} * kernel_loads;
  for (auto first = blockIdx.x * step + threadIdx.x; first < count; first += gridDim.x * step) {
    decltype(load(first)) loaded[kernel_loads];
    MUSTER_UNROLL
    for (unsigned each = 0; each < kernel_loads; ++each) {
      const auto index = first + each * kernel_threads;
      if (index < count) loaded[each] = load(index);
    }
    MUSTER_UNROLL
    for (unsigned each = 0; each < kernel_loads; ++each) {
      const auto index = first + each * kernel_threads;
      if (index < count) work(index, loaded[each]);
    }
  }
}

/// Where an element's operands are, from the first ones on, in bytes.
struct element_offsets {
  std::int64_t of[2];
};

__device__ inline element_offsets offsets_of(const kernel_elements& elements, std::uint64_t index) {
  element_offsets found{};
  for (auto dimension = elements.dimensions; dimension-- > 1;) {
    const auto rest = index / elements.sizes[dimension];
    const auto at = static_cast<std::int64_t>(index - rest * elements.sizes[dimension]);
    found.of[0] += at * elements.steps[0][dimension];
    found.of[1] += at * elements.steps[1][dimension];
    index = rest;
  }
  found.of[0] += static_cast<std::int64_t>(index) * elements.steps[0][0];
  found.of[1] += static_cast<std::int64_t>(index) * elements.steps[1][0];
  return found;
}

template <class T>
__device__ T& element_at(std::byte* first, std::int64_t offset) {
  return *reinterpret_cast<T*>(first + offset);
}

/// Calls what(index) for the elements before and after those that are in packs: less than kernel_threads.
template <class What>
__device__ void for_each_unpacked(const kernel_elements& elements, std::uint64_t packed, const What& what) {
  if (blockIdx.x != 0) return;
  const std::uint64_t index = threadIdx.x < elements.head ? threadIdx.x : threadIdx.x + packed;
  if (index < elements.count) what(index);
}

/// Elements that are in packs.
template <unsigned Size>
__device__ std::uint64_t packs_of(const kernel_elements& elements) {
  return (elements.count - elements.head) / Size;
}

/// to[i] = compute(from[i]), both contiguous.
template <class To, class From, class F>
__device__ void map_packed(const kernel_elements& elements, const F& compute) {
  constexpr auto size = pack_size<To, From>;
  auto* const to = reinterpret_cast<To*>(elements.first[0]);
  const auto* const from = reinterpret_cast<const From*>(elements.first[1]);
  auto* const to_packs = reinterpret_cast<pack<To, size>*>(to + elements.head);
  const auto* const from_packs = reinterpret_cast<const pack<From, size>*>(from + elements.head);
  const auto packs = packs_of<size>(elements);
  for_each_index(
      packs, [&](std::uint64_t index) { return from_packs[index]; },
      [&](std::uint64_t index, const pack<From, size>& loaded) {
        pack<To, size> made;
        MUSTER_UNROLL
        for (unsigned each = 0; each < size; ++each) made.each[each] = compute(loaded.each[each]);
        to_packs[index] = made;
      });
  for_each_unpacked(elements, packs * size, [&](std::uint64_t index) { to[index] = compute(from[index]); });
}

/// The same of any elements.
template <class To, class From, class F>
__device__ void map_strided(const kernel_elements& elements, const F& compute) {
  struct place {
    std::int64_t to;
    From value;
  };
  for_each_index(
      elements.count,
      [&](std::uint64_t index) {
        const auto offsets = offsets_of(elements, index);
        return place{offsets.of[0], element_at<From>(elements.first[1], offsets.of[1])};
      },
      [&](std::uint64_t, const place& at) { element_at<To>(elements.first[0], at.to) = compute(at.value); });
}

template <class To, class From, class F>
__device__ void map(const kernel_elements& elements, const F& compute) {
  if (elements.is_packed)
    map_packed<To, From>(elements, compute);
  else
    map_strided<To, From>(elements, compute);
}

/// to[i] = compute(to[i], from[i]), both contiguous.
template <class T, class F>
__device__ void join_packed(const kernel_elements& elements, const F& compute) {
  constexpr auto size = pack_size<T>;
  struct both {
    pack<T, size> to;
    pack<T, size> from;
  };
  auto* const to = reinterpret_cast<T*>(elements.first[0]);
  const auto* const from = reinterpret_cast<const T*>(elements.first[1]);
  auto* const to_packs = reinterpret_cast<pack<T, size>*>(to + elements.head);
  const auto* const from_packs = reinterpret_cast<const pack<T, size>*>(from + elements.head);
  const auto packs = packs_of<size>(elements);
  for_each_index(
      packs, [&](std::uint64_t index) { return both{to_packs[index], from_packs[index]}; },
      [&](std::uint64_t index, const both& loaded) {
        pack<T, size> made;
        MUSTER_UNROLL
        for (unsigned each = 0; each < size; ++each) {
          made.each[each] = compute(loaded.to.each[each], loaded.from.each[each]);
        }
        to_packs[index] = made;
      });
  for_each_unpacked(elements, packs * size, [&](std::uint64_t index) { to[index] = compute(to[index], from[index]); });
}

/// The same of any elements.
template <class T, class F>
__device__ void join_strided(const kernel_elements& elements, const F& compute) {
  struct place {
    std::int64_t at;
    T to;
    T from;
  };
  for_each_index(
      elements.count,
      [&](std::uint64_t index) {
        const auto offsets = offsets_of(elements, index);
        return place{offsets.of[0], element_at<T>(elements.first[0], offsets.of[0]),
                     element_at<T>(elements.first[1], offsets.of[1])};
      },
      [&](std::uint64_t, const place& found) {
        element_at<T>(elements.first[0], found.at) = compute(found.to, found.from);
      });
}

template <class T, class F>
__device__ void join(const kernel_elements& elements, const F& compute) {
  if (elements.is_packed)
    join_packed<T>(elements, compute);
  else
    join_strided<T>(elements, compute);
}

}  // namespace muster::detail
