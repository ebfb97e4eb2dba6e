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

[[noreturn]] void throw_no_such_row(std::string_view what, const std::string& row, std::size_t length) {
  throw error(errc::invalid_argument, text(what, ": there is no row ", row, "; it has ", length,
                                           length == 1 ? " row" : " rows", ", which are counted from 0"));
}

}  // namespace

row_range row_selection::first_rows(std::int64_t count) {
  if (count < 1) {
    throw error(errc::invalid_argument, text("a selection of the first ", count,
                                             " rows was asked for; it needs at least 1: do not call for nothing"));
  }
  return {.first = 0, .last = static_cast<std::size_t>(count)};
}

row_selection::row_selection(row_range range) {
  if (range.first >= range.last) {
    throw error(errc::invalid_argument, text("a selection of rows ", range.first, " to before ", range.last,
                                             " was asked for; the first must be before the last"));
  }
  rows_ = range;
}

row_selection::row_selection(std::span<const std::int64_t> indexes) {
  if (indexes.empty()) {
    throw error(errc::invalid_argument,
                "a selection by an empty list of rows was asked for; it needs at least 1 row: do not call for nothing");
  }
  const auto negative = std::ranges::find_if(indexes, [](std::int64_t index) { return index < 0; });
  if (negative != indexes.end()) {
    throw error(errc::invalid_argument, text("a selection by a list with ", *negative, " at place ",
                                             negative - indexes.begin(), " was asked for; rows are counted from 0"));
  }
  rows_ = std::vector<std::int64_t>(indexes.begin(), indexes.end());
}

row_selection::row_selection(const std::vector<std::size_t>& indexes) : row_selection(widened(indexes)) {}

row_selection::row_selection(const std::vector<int>& indexes) : row_selection(widened(indexes)) {}

row_range row_selection::range(std::size_t length) const noexcept {
  const auto* const range = std::get_if<row_range>(&rows_);
  return range != nullptr ? *range : row_range{.first = 0, .last = length};
}

std::size_t row_selection::count(std::size_t length) const noexcept {
  return is_list() ? list().size() : range(length).size();
}

std::size_t row_selection::lowest() const noexcept {
  if (is_list()) return static_cast<std::size_t>(*std::ranges::min_element(list()));
  return range(0).first;
}

void row_selection::require_within(std::size_t length, std::string_view what) const {
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
