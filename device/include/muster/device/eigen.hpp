// SPDX-License-Identifier: BSL-1.0
#pragma once

// Tensors as Eigen sees them: the same elements, nothing copied. For programs that have Eigen 3.4 or newer; nothing
// else of muster includes it.
//
//     as_matrix<float>(product).noalias() = as_matrix<float>(x) * as_matrix<float>(weights);
//
// Thread safety: all functions are safe to call from any thread. The elements need their own discipline.
// Lifetime: a map borrows the tensor's memory: a tensor of it must outlive the map. Of `const float` it is a map of
// constants, as a read-only tensor needs.
// Cost: no allocation, no element touched.

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <Eigen/Core>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/tensor.hpp>

namespace muster {

namespace detail {

template <class T, class Mapped>
using const_as = std::conditional_t<std::is_const_v<T>, const Mapped, Mapped>;

}  // namespace detail

/// Two dimensions, row-major as tensors are. The rows may be parts of longer ones.
template <tensor_element T>
using matrix_map = Eigen::Map<
    detail::const_as<T, Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>,
    Eigen::Unaligned, Eigen::OuterStride<>>;
/// A column, as Eigen's vectors are; its transpose() is a row.
template <tensor_element T>
using vector_map = Eigen::Map<detail::const_as<T, Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, 1>>>;

namespace detail {

[[noreturn]] inline void refuse_map(const char* function, const tensor& what, std::string_view expected) {
  throw error(errc::invalid_argument, text(function, " of a tensor of shape ", what.shape(), ": it must ", expected,
                                           "; clone() or reshape() it first"));
}

}  // namespace detail

/// Of a tensor of two dimensions whose rows are contiguous, such as slice() leaves them. Throws errc::invalid_argument
/// for others, unless T is the dtype's type, and where the tensor is read-only and T not const.
template <tensor_element T>
[[nodiscard]] matrix_map<T> as_matrix(const tensor& what) {
  if (what.dimensions() != 2) detail::refuse_map("as_matrix", what, "have two dimensions");
  const auto size = [&](std::size_t dimension) { return static_cast<Eigen::Index>(what.shape()[dimension]); };
  const bool has_gaps = size(1) > 1 && what.strides()[1] != 1;
  const bool goes_back = size(0) > 1 && what.strides()[0] < 0;
  if (what.size() != 0 && (has_gaps || goes_back))
    detail::refuse_map("as_matrix", what, "have contiguous rows, in order");
  // Of one row, nobody asks where the next is.
  return {what.data<T>(), size(0), size(1), Eigen::OuterStride<>(size(0) > 1 ? what.strides()[0] : size(1))};
}

/// Of all elements of a contiguous tensor, in row-major order, whatever its shape. Throws as as_matrix does.
template <tensor_element T>
[[nodiscard]] vector_map<T> as_vector(const tensor& what) {
  if (!what.is_contiguous()) detail::refuse_map("as_vector", what, "be contiguous");
  return {what.data<T>(), static_cast<Eigen::Index>(what.size())};
}

}  // namespace muster
