// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <muster/device/sparse_rows.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/gradient_compression.hpp>
#include <muster/params/store_key.hpp>

namespace muster::detail {

/// What a worker pushes: a whole tensor, some of its rows, or its bits.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class kv_gradient {
public:
  kv_gradient() = default;
  /// It lies where the value does.
  explicit kv_gradient(tensor whole) : values_(std::move(whole)) {}
  explicit kv_gradient(sparse_rows some) : values_(std::move(some.rows)), indices_(std::move(some.indices)) {}
  kv_gradient(tensor bytes, const gradient_compression& how) : values_(std::move(bytes)), how_(how) {}

  [[nodiscard]] bool is_sparse() const noexcept { return indices_.has_value(); }
  /// Requires: is_sparse().
  [[nodiscard]] sparse_rows rows() const { return {.indices = *indices_, .rows = values_}; }
  /// The whole of it, which is like that. Contiguous.
  [[nodiscard]] tensor whole(const tensor& like) const;
  /// Throws errc::invalid_argument, with key, worker and reason, unless it fits a value like that.
  void require_like(const tensor& value, const store_key& key, std::size_t rank) const;
  /// The same, when it is applied: the program may have replaced the value by one of another form.
  void require_still_like(const tensor& value, const store_key& key) const;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(values_, indices_, how_);
  }

private:
  [[nodiscard]] std::string reason_against(const tensor& value) const {
    return is_sparse() ? misfit_of_rows(value) : misfit(value);
  }
  [[nodiscard]] std::string misfit(const tensor& value) const;
  [[nodiscard]] std::string misfit_of_rows(const tensor& value) const;

  tensor values_;
  std::optional<tensor> indices_;
  gradient_compression how_;
};

}  // namespace muster::detail
