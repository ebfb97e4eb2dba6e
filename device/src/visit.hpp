// SPDX-License-Identifier: BSL-1.0
#pragma once

// Over the elements of tensors of one shape.
//
// Thread safety: pure functions; safe. The elements need their own discipline.

#include <array>
#include <cstddef>

#include <muster/device/tensor.hpp>

#include "visit_dtype.hpp"

namespace muster::detail {

/// Elements that lie at equal distances.
struct run {
  std::byte* first = nullptr;
  std::ptrdiff_t step_bytes = 0;
};

/// Those that lie side by side.
[[nodiscard]] inline run adjacent(dtype type, const std::byte* first) {
  return {.first = const_cast<std::byte*>(first), .step_bytes = static_cast<std::ptrdiff_t>(dtype_size(type))};
}

template <std::size_t N>
using runs = std::array<run, N>;

template <std::size_t N, class F>
bool walk(const tensor_shape& shape, const std::array<const tensor*, N>& tensors, std::size_t dimension, runs<N> at,
          const F& what) {
  const auto step = [&](std::size_t each) {
    return tensors[each]->strides()[dimension] * static_cast<std::ptrdiff_t>(dtype_size(tensors[each]->dtype()));
  };
  if (dimension == shape.size()) return what(at, std::size_t{1});
  for (std::size_t each = 0; each < N; ++each) at[each].step_bytes = step(each);
  if (dimension + 1 == shape.size()) return what(at, shape[dimension]);
  for (std::size_t index = 0; index < shape[dimension]; ++index) {
    if (!walk(shape, tensors, dimension + 1, at, what)) return false;
    for (std::size_t each = 0; each < N; ++each) at[each].first += step(each);
  }
  return true;
}

/// Calls `what` with runs of elements, one run of each tensor, and their length, in row-major order, until it returns
/// false; says whether it never did. Contiguous tensors are one run. Requires: all have the same shape; what `what`
/// writes is not read-only.
template <class F, class... Tensors>
bool for_each_run(const F& what, const Tensors&... tensors) {
  constexpr std::size_t count = sizeof...(Tensors);
  const std::array<const tensor*, count> all{&tensors...};
  runs<count> at{adjacent(tensors.dtype(), tensors.const_data())...};
  if (all[0]->size() == 0) return true;
  if ((tensors.is_contiguous() && ...)) return what(at, all[0]->size());
  return walk(all[0]->shape(), all, 0, at, what);
}

}  // namespace muster::detail
