// SPDX-License-Identifier: BSL-1.0
#pragma once

// Some rows of a tensor, as gradients of embeddings are.
//
//     auto gradient = muster::sparse_rows::of({{3, 17, 3}}, rows);   // row 3 is the sum of the first and the third
//     tensor all = gradient.to_dense(20);                            // the other rows are 0

#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/device/tensor.hpp>

namespace muster {

/// Rows of a tensor of more rows, along its first dimension; what is not there counts as 0.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
/// Lifetime: copies refer to the same elements, as tensors do.
struct sparse_rows {
  tensor indices{tensor::empty(dtype::i64, {0})};  ///< i64, (n): which rows they are, ascending, each once
  tensor rows{};                                   ///< (n, …)

  /// Makes some of `rows`, (n, …), the first of which is row indices[0] of the whole, and so on, in any order; rows of
  /// the same index are added up, in their order. Copies. Throws errc::invalid_argument for indices that are negative
  /// or not as many as rows.
  [[nodiscard]] static sparse_rows of(std::span<const std::int64_t> indices, const tensor& rows);
  /// Copies rows out of a whole tensor; indices may come in any order, and several times. Throws errc::invalid_argument
  /// for one that is not there.
  [[nodiscard]] static sparse_rows pick(const tensor& whole, std::span<const std::int64_t> indices);

  /// Returns how many rows there are.
  [[nodiscard]] std::size_t count() const { return indices.size(); }
  /// Returns the whole, of so many rows. Throws errc::invalid_argument for fewer than there must be.
  [[nodiscard]] tensor to_dense(std::size_t all) const;
  /// Writes the rows to where they belong in a whole. Throws errc::invalid_argument where they do not fit.
  void copy_into(const tensor& whole) const;
  /// Throws errc::invalid_argument unless indices and rows are as said above.
  void require() const;

  /// For cereal.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(indices, rows);
  }
};

}  // namespace muster
