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
/// repeats. What it selects is checked against a length when it is used.
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
  /// The first `count` rows. Throws errc::invalid_argument unless 0 < count: to run nothing, do not call.
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  row_selection(T count) : rows_(first_rows(std::in_range<std::int64_t>(count) ? std::int64_t(count) : INT64_MAX)) {}
  /// Throws errc::invalid_argument unless range.first < range.last.
  row_selection(row_range range);
  /// Throws errc::invalid_argument for an empty list and for negative indexes; the text names the place in the list.
  row_selection(std::span<const std::int64_t> indexes);
  row_selection(const std::vector<std::int64_t>& indexes) : row_selection(std::span<const std::int64_t>(indexes)) {}
  row_selection(const std::vector<std::size_t>& indexes);
  row_selection(const std::vector<int>& indexes);

  [[nodiscard]] bool is_all() const noexcept { return std::holds_alternative<std::monostate>(rows_); }
  [[nodiscard]] bool is_list() const noexcept { return std::holds_alternative<std::vector<std::int64_t>>(rows_); }
  /// Requires: is_list().
  [[nodiscard]] std::span<const std::int64_t> list() const noexcept { return *std::get_if<2>(&rows_); }
  /// The selected rows of something of `length` rows. Requires: !is_list(), and require_within(length, …) did not
  /// throw.
  [[nodiscard]] row_range range(std::size_t length) const noexcept;
  /// How many rows it selects of something of `length` rows.
  [[nodiscard]] std::size_t count(std::size_t length) const noexcept;
  /// The least row that it selects; 0 if that is none.
  [[nodiscard]] std::size_t lowest() const noexcept;

  /// Throws errc::invalid_argument unless every selected row is one of `length`; the text begins with `what`, and names
  /// the first row that is not, its place in a list, and the length.
  void require_within(std::size_t length, std::string_view what) const;

private:
  [[nodiscard]] static row_range first_rows(std::int64_t count);

  std::variant<std::monostate, row_range, std::vector<std::int64_t>> rows_;
};

}  // namespace muster
