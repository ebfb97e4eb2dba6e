// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
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

[[noreturn]] void throw_no_such_row(std::string_view what, const std::string& row, std::size_t length) {
  refuse(what, "there is no row ", row, "; it has ", length, length == 1 ? " row" : " rows",
         ", which are counted from 0");
}

void require_not_negative(std::span<const std::int64_t> list, std::size_t length, std::string_view what) {
  const auto negative = std::ranges::find_if(list, [](std::int64_t index) { return index < 0; });
  if (negative == list.end()) return;
  throw_no_such_row(what, text(*negative, ", which is at place ", negative - list.begin(), " of the list"), length);
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
  constexpr auto advice = ": it needs at least 1; do not call for nothing";
  if (is_list()) {
    if (list().empty()) refuse(what, "an empty list of its ", length, " rows was given", advice);
    return require_not_negative(list(), length, what);
  }
  const auto* const first = std::get_if<first_rows>(&rows_);
  if (first != nullptr && first->count < 1) {
    refuse(what, "the first ", first->count, " rows of its ", length, " were asked for", advice);
  }
  const auto* const range = std::get_if<row_range>(&rows_);
  if (range == nullptr || range->first < range->last) return;
  refuse(what, "rows ", range->first, " to before ", range->last, " of its ", length,
         " were asked for: the first must be before the last");
}

void row_selection::require_within(std::size_t length, std::string_view what) const {
  require_possible(length, what);
  if (is_list()) {
    const auto beyond =
        std::ranges::find_if(list(), [&](std::int64_t index) { return static_cast<std::size_t>(index) >= length; });
    if (beyond == list().end()) return;
    throw_no_such_row(what, text(*beyond, ", which is at place ", beyond - list().begin(), " of the list"), length);
  }
  const auto rows = range(length);
  if (rows.last > length) throw_no_such_row(what, text(rows.last - 1), length);
}

}  // namespace muster
