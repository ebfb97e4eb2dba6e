// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include <muster/device/tensor.hpp>

namespace muster::detail {

/// What a compute node calls: it writes the elements of the output, or puts another tensor in its place.
using graph_call = std::function<void(tensor& output, std::span<const tensor> inputs)>;

template <std::size_t>
using tensor_each = const tensor&;

/// A callable that takes each input as an argument of its own.
template <class F, std::size_t... Index>
[[nodiscard]] graph_call graph_call_of(F function, std::index_sequence<Index...> /*inputs*/) {
  constexpr bool writes = std::is_invocable_v<F&, const tensor&, tensor_each<Index>...>;
  constexpr bool returns = std::is_invocable_r_v<tensor, F&, tensor_each<Index>...>;
  static_assert(writes || returns,
                "muster: a compute node's function takes its output and its inputs, each as const tensor&, and writes "
                "the output's elements; or it takes the inputs and returns a tensor");
  if constexpr (writes) {
    return [function = std::move(function)](tensor& output, [[maybe_unused]] std::span<const tensor> inputs) mutable {
      function(std::as_const(output), inputs[Index]...);
    };
  } else {
    return [function = std::move(function)](tensor& output, [[maybe_unused]] std::span<const tensor> inputs) mutable {
      output = function(inputs[Index]...);
    };
  }
}

/// A callable that takes the inputs as a row.
template <class F>
[[nodiscard]] graph_call graph_call_of_row(F function) {
  static_assert(std::invocable<F&, const tensor&, std::span<const tensor>>,
                "muster: the function of a compute node whose inputs are a vector takes its output, const tensor&, and "
                "its inputs, std::span<const tensor>");
  return [function = std::move(function)](tensor& output, [[maybe_unused]] std::span<const tensor> inputs) mutable {
    function(std::as_const(output), inputs);
  };
}

}  // namespace muster::detail
