// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which rows of its inputs a call is for.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <muster/parallel/row_range.hpp>

namespace muster {

/// Rows of something that has rows: all of them, the first n, those from a to before b, or a list in any order and with
/// repeats. Anything can be asked for; whether that is there is looked at when it is used, where what it is of is
/// known.
///
///     step.with({.batch = 100})(x, y);                         // the first 100 rows
///     step.with({.batch = muster::row_range{100, 200}})(x, y);
///     step.with({.batch = indexes})(x, y);                     // a vector or span of integers
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
/// Lifetime: holds a copy of the list.
class row_selection {
public:
  /// All rows.
  row_selection() noexcept = default;
  /// The first `count` rows: at least 1. To run nothing, do not call.
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  row_selection(T count) noexcept
      : rows_(first_rows{std::in_range<std::int64_t>(count) ? static_cast<std::int64_t>(count) : INT64_MAX}) {}
  /// range.first must be less than range.last.
  row_selection(row_range range) noexcept : rows_(range) {}
  /// These rows, in this order: at least one, and none negative. The list is copied.
  ///@{
  row_selection(std::span<const std::int64_t> indexes)
      : rows_(std::vector<std::int64_t>(indexes.begin(), indexes.end())) {}
  row_selection(const std::vector<std::int64_t>& indexes) : rows_(indexes) {}
  row_selection(const std::vector<std::size_t>& indexes);
  row_selection(const std::vector<int>& indexes);
  ///@}

  /// Returns whether it selects all rows, as a default-constructed one.
  [[nodiscard]] bool is_all() const noexcept { return std::holds_alternative<std::monostate>(rows_); }
  /// Returns whether it was made of a list.
  [[nodiscard]] bool is_list() const noexcept { return std::holds_alternative<std::vector<std::int64_t>>(rows_); }
  /// Requires: is_list().
  [[nodiscard]] std::span<const std::int64_t> list() const noexcept {
    return *std::get_if<std::vector<std::int64_t>>(&rows_);
  }
  /// The selected rows of something of `length` rows. Requires: !is_list(), and require_within(length, …) or
  /// require_possible(length, …) did not throw.
  [[nodiscard]] row_range range(std::size_t length) const noexcept;
  /// How many rows it selects of something of `length` rows. Requires: likewise.
  [[nodiscard]] std::size_t count(std::size_t length) const noexcept;

  /// Throws errc::invalid_argument unless it selects all rows, or at least one and every one of them is one of
  /// `length`; the text begins with `what`, and names what was asked for, the first row that is not there, its place in
  /// a list, and the length.
  void require_within(std::size_t length, std::string_view what) const;
  /// The same for something that holds just the selected rows, whatever their numbers are: throws for none, for a range
  /// that ends before it begins, and for negative ones.
  void require_possible(std::size_t length, std::string_view what) const;

private:
  struct first_rows {
    std::int64_t count = 0;
  };

  std::variant<std::monostate, first_rows, row_range, std::vector<std::int64_t>> rows_;
};

}  // namespace muster
