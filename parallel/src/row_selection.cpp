// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstdint>
#include <string>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/parallel/row_selection.hpp>

namespace muster {

namespace {

template <class T>
std::vector<std::int64_t> widened(const std::vector<T>& indexes) {
  return {indexes.begin(), indexes.end()};
}

template <class... Why>
[[noreturn]] void refuse(std::string_view what, const Why&... why) {
  throw error(errc::invalid_argument, text(what, ": ", why...));
}

constexpr auto at_least_one = ": it needs at least 1; do not call for nothing";

[[noreturn]] void throw_no_such_row(std::string_view what, const std::string& row, std::size_t length) {
  refuse(what, row, "; it has ", length, length == 1 ? " row" : " rows", ", which are counted from 0");
}

// Its rows are any that are not negative and below `end`.
void require_list(std::span<const std::int64_t> list, std::size_t end, std::size_t length, std::string_view what) {
  if (list.empty()) refuse(what, "an empty list of its ", length, " rows was given", at_least_one);
  const auto missing = std::ranges::find_if(
      list, [end](std::int64_t index) { return index < 0 || static_cast<std::size_t>(index) >= end; });
  if (missing == list.end()) return;
  throw_no_such_row(
      what, text("there is no row ", *missing, ", which is at place ", missing - list.begin(), " of the list"), length);
}

}  // namespace

row_selection::row_selection(const std::vector<std::size_t>& indexes) : rows_(widened(indexes)) {}

row_selection::row_selection(const std::vector<int>& indexes) : rows_(widened(indexes)) {}

row_range row_selection::range(std::size_t length) const noexcept {
  if (const auto* const range = std::get_if<row_range>(&rows_)) return *range;
  const auto* const first = std::get_if<first_rows>(&rows_);
  return {.first = 0, .last = first != nullptr ? static_cast<std::size_t>(first->count) : length};
}

std::size_t row_selection::count(std::size_t length) const noexcept {
  return is_list() ? list().size() : range(length).size();
}

void row_selection::require_possible(std::size_t length, std::string_view what) const {
  if (is_list()) return require_list(list(), SIZE_MAX, length, what);
  const auto* const first = std::get_if<first_rows>(&rows_);
  if (first != nullptr && first->count < 1) {
    refuse(what, "the first ", first->count, " rows of its ", length, " were asked for", at_least_one);
  }
  const auto* const range = std::get_if<row_range>(&rows_);
  if (range == nullptr || range->first < range->last) return;
  refuse(what, "rows ", range->first, " to before ", range->last, " of its ", length,
         " were asked for: the first must be before the last");
}

void row_selection::require_within(std::size_t length, std::string_view what) const {
  if (is_list()) return require_list(list(), length, length, what);
  require_possible(length, what);
  const auto rows = range(length);
  if (rows.last <= length) return;
  const bool is_first = std::holds_alternative<first_rows>(rows_);
  const auto asked =
      is_first ? text("the first ", rows.last, " rows") : text("rows ", rows.first, " to before ", rows.last);
  throw_no_such_row(what, text(asked, " were asked for, but there is no row ", std::max(rows.first, length)), length);
}

}  // namespace muster
