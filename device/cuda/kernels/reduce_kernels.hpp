// SPDX-License-Identifier: BSL-1.0
#pragma once

// One pass of a reduction: every lane, which is a thread, joins the elements of its packs. The order is what
// kernel_set::reduce says, whichever way elements are loaded.

#include <type_traits>

#include "element_kernels.hpp"

namespace muster::detail {

/// What is joined.
template <class T>
using joined_as = std::conditional_t<is_half<T>, float, T>;

template <class T>
class lane {
public:
  using wide = joined_as<T>;

  __device__ explicit lane(kernel_op op) : op_(op) {}

  __device__ void take(T value) {
    result_ = has_any_ ? joined_lanes(result_, static_cast<wide>(value)) : static_cast<wide>(value);
    has_any_ = true;
  }
  __device__ wide result() const { return result_; }

private:
  __device__ wide joined_lanes(wide a, wide b) const {
    if constexpr (is_complex<wide>) {
      if (op_ == kernel_op::sum) return {a.real() + b.real(), a.imag() + b.imag()};
    }
    return joined_by(op_, a, b);
  }

  kernel_op op_;
  bool has_any_ = false;
  wide result_{};
};

template <class T>
__device__ void join_packs(const reduce_arguments& given, std::uint32_t first, lane<T>& into) {
  constexpr auto size = pack_size<T>;
  const auto count = given.elements.count;
  const auto packs = count / size;
  const auto* const from = reinterpret_cast<const pack<stored<T>, size>*>(given.elements.first[1]);
  auto at = std::uint64_t{first};
  for (; at < packs; at += std::uint64_t{given.lanes} * kernel_loads) {
    pack<stored<T>, size> loaded[kernel_loads];
    MUSTER_UNROLL
    for (unsigned each = 0; each < kernel_loads; ++each) {
      const auto index = at + std::uint64_t{each} * given.lanes;
      if (index < packs) loaded[each] = from[index];
    }
    MUSTER_UNROLL
    for (unsigned each = 0; each < kernel_loads; ++each) {
      if (at + std::uint64_t{each} * given.lanes >= packs) break;
      MUSTER_UNROLL
      for (unsigned element = 0; element < size; ++element) into.take(loaded[each].each[element]);
    }
  }
  if (packs % given.lanes != first) return;
  for (auto index = packs * size; index < count; ++index) into.take(from[packs].each[index - packs * size]);
}

template <class T>
__device__ void join_strided_lane(const reduce_arguments& given, std::uint32_t first, lane<T>& into) {
  constexpr auto size = pack_size<T>;
  const auto& elements = given.elements;
  for (auto pack = std::uint64_t{first}; pack * size < elements.count; pack += given.lanes) {
    const auto rest = elements.count - pack * size;
    for (unsigned each = 0; each < size && each < rest; ++each) {
      into.take(element_at<stored<T>>(elements.first[1], offsets_of(elements, pack * size + each).of[1]));
    }
  }
}

template <class T>
__device__ void reduce(const reduce_arguments& given) {
  const auto first = blockIdx.x * kernel_threads + threadIdx.x;
  if (first >= given.lanes) return;
  lane<T> found(given.op);
  if (given.elements.is_packed)
    join_packs(given, first, found);
  else
    join_strided_lane(given, first, found);
  reinterpret_cast<typename lane<T>::wide*>(given.results)[first] = found.result();
}

}  // namespace muster::detail
