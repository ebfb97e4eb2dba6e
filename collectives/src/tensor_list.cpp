// SPDX-License-Identifier: BSL-1.0
#include "tensor_list.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/collectives/detail/call_header.hpp>
#include <muster/device/overlap.hpp>

namespace muster::detail {

// ---- as one row

void require_one_type(std::span<const tensor> list) {
  const auto differs = [&](const tensor& each) { return each.dtype() != list.front().dtype(); };
  const auto found = std::ranges::find_if(list, differs);
  if (found == list.end()) return;
  throw error(errc::invalid_argument,
              text("several tensors in one call must be of one type: the first is ", list.front().dtype(),
                   " and number ", found - list.begin(), " is ", found->dtype(), "; make a call for each type"));
}

std::uint64_t fingerprint_of(std::span<const tensor> list) {
  fingerprint made;
  made.add(list.size());
  for (const auto& each : list) made.add(each.shape());
  return made.value();
}

namespace {

// Calls `each(tensor, its part of the row)`.
template <class Each>
void for_each_part(const tensor& row, std::span<const tensor> list, Each each) {
  std::size_t at = 0;
  for (const auto& one : list) {
    each(one, row.slice(at, at + one.size()).reshape(one.shape()));
    at += one.size();
  }
}

}  // namespace

tensor joined_row(std::span<const tensor> list) {
  if (list.empty()) return tensor::empty<float>({0});
  const auto add = [](std::size_t sum, const tensor& each) { return sum + each.size(); };
  const auto total = std::accumulate(list.begin(), list.end(), std::size_t{0}, add);
  const auto row = tensor::empty(list.front().dtype(), {total}, list.front().device());
  for_each_part(row, list, [](const tensor& one, const tensor& part) { part.copy_from(one); });
  return row;
}

void take_apart(const tensor& row, std::span<const tensor> list) {
  for_each_part(row, list, [](const tensor& one, const tensor& part) { one.copy_from(part); });
}

// ---- what differs

// Lists may be long, and what ranks tell one another at once is short: they compare fingerprints, some at a time, and
// name the shapes of one tensor only.
namespace {

constexpr std::size_t per_page = 60;
using page = std::array<std::uint64_t, per_page>;
static_assert(sizeof(page) <= rank_end::most_told);

// Behind the last tensor. Of a shape, never.
constexpr std::uint64_t end_of_list = 0;

// The first that is the same tensor.
std::size_t first_of_same(std::span<const tensor> list, std::size_t index) {
  const auto is_same = [&](const tensor& each) { return overlap_of(each, list[index]) == overlap::same; };
  const auto found = std::ranges::find_if(list.first(index), is_same);
  return static_cast<std::size_t>(found - list.begin());
}

page page_from(std::span<const tensor> list, std::size_t first) {
  page made{};
  for (std::size_t each = 0; each < per_page && first + each < list.size(); ++each) {
    const auto index = first + each;
    made[each] = fingerprint().add(list[index].shape()).add(first_of_same(list, index)).value() | 1U;
  }
  return made;
}

std::string describe(std::span<const tensor> list, std::size_t index) {
  if (index >= list.size()) return "missing";
  const auto same = first_of_same(list, index);
  return same == index ? text(list[index].shape()) : text(list[index].shape(), ", which is tensor ", same, " again,");
}

using notes = std::vector<std::vector<std::byte>>;

// Counted from the first of the page.
std::optional<std::size_t> first_difference(const notes& pages) {
  std::optional<std::size_t> least;
  const auto& front = pages.front();
  for (const auto& each : pages) {
    const auto differs = std::ranges::mismatch(front, each).in1;
    if (differs == front.end()) continue;
    const auto at = static_cast<std::size_t>(differs - front.begin()) / sizeof(page::value_type);
    least = std::min(at, least.value_or(at));
  }
  return least;
}

std::string shapes_of(std::size_t index, const notes& shapes) {
  text_writer out;
  out << "tensor " << index << " is ";
  for (std::size_t rank = 0; rank < shapes.size(); ++rank) {
    const auto& shape = shapes[rank];
    out << (rank == 0 ? "" : ", ");
    out.write(reinterpret_cast<const char*>(shape.data()), static_cast<std::streamsize>(shape.size()));
    out << " on rank " << rank;
  }
  return std::move(out).str();
}

}  // namespace

std::string difference_of_lists(rank_end& end, const char* operation, const call_options& how,
                                std::span<const tensor> own) {
  for (std::size_t first = 0;; first += per_page) {
    const auto mine = page_from(own, first);
    if (const auto at = first_difference(end.exchange_notes(operation, how, std::as_bytes(std::span(mine))))) {
      const auto index = first + *at;
      const auto shape = describe(own, index);
      return shapes_of(index, end.exchange_notes(operation, how, std::as_bytes(std::span(shape))));
    }
    if (mine.back() == end_of_list) return "";
  }
}

}  // namespace muster::detail
