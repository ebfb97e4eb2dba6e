// SPDX-License-Identifier: BSL-1.0
#include "overlap_check.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/overlap.hpp>

namespace muster::detail {

namespace {

[[noreturn]] void refuse(const char* operation, const std::string& what, const char* instead) {
  throw error(errc::invalid_argument, text(operation, ": ", what, "; ", instead));
}

std::size_t elements_of_row(const tensor& which) {
  const auto& shape = which.shape();
  return std::accumulate(shape.begin() + (shape.empty() ? 0 : 1), shape.end(), std::size_t{1}, std::multiplies<>());
}

}  // namespace

// ---- of one rank

void require_output(const char* operation, const tensor& out) {
  if (out.is_read_only()) {
    refuse(operation, text("the output, ", out.dtype(), ' ', out.shape(), ", is read-only"),
           "clone() it, or give another one");
  }
  if (!repeats_elements(out)) return;
  refuse(operation, describe_repetition("the output", out), "give one whose elements have a place each");
}

void require_apart(const char* operation, const tensor& in, const tensor& out) {
  require_output(operation, out);
  if (&in == &out || overlap_of(in, out) != overlap::partial) return;
  refuse(operation, describe_overlap("the input", in, "the output", out),
         "give the same tensor for both, or tensors that do not overlap");
}

std::uint64_t place_of_rows(const char* operation, const tensor& part, const tensor& whole, const tensor& out) {
  require_output(operation, out);
  if (overlap_of(part, whole) == overlap::none) return apart;
  if (const auto row = first_row_in(whole, part)) return *row * elements_of_row(whole);
  const bool is_output = &part == &out;
  refuse(operation,
         describe_overlap(is_output ? "the output" : "the input", part, is_output ? "the input" : "the output", whole),
         is_output ? "the output may be this rank's own rows of the input, or must not overlap it"
                   : "the input may be this rank's own rows of the output, or must not overlap it");
}

namespace {

struct listed {
  address_range range;
  std::size_t index = 0;
};

// Without elements it lies nowhere.
std::vector<listed> sorted_by_address(std::span<const tensor> list) {
  std::vector<listed> found;
  found.reserve(list.size());
  for (std::size_t index = 0; index < list.size(); ++index) {
    if (list[index].size() > 0) found.push_back({.range = range_of(list[index]), .index = index});
  }
  std::ranges::sort(found, std::less<>(), [](const listed& each) { return each.range.first; });
  return found;
}

[[noreturn]] void refuse_listed(const char* operation, std::span<const tensor> list, std::size_t a, std::size_t b) {
  const auto& [first, second] = std::minmax(a, b);
  refuse(
      operation,
      describe_overlap(text("tensor ", first, " of ", list.size()), list[first], text("tensor ", second), list[second]),
      "each element may be part of one tensor only");
}

}  // namespace

std::uint64_t require_distinct(const char* operation, std::span<const tensor> out) {
  for (const auto& each : out) require_output(operation, each);
  const auto all = sorted_by_address(out);
  std::uint64_t repeated = 0;  // a sum: the order of addresses is each rank's own
  for (auto one = all.begin(); one != all.end(); ++one) {
    for (auto next = one + 1; next != all.end() && next->range.first < one->range.last; ++next) {
      const auto found = overlap_of(out[one->index], out[next->index]);
      if (found == overlap::partial) refuse_listed(operation, out, one->index, next->index);
      const auto& [first, second] = std::minmax(one->index, next->index);
      if (found == overlap::same) repeated += fingerprint().add(first).add(second).value();
    }
  }
  return repeated;
}

// ---- of different ranks

void refuse_rows(const call_frame& frame, std::size_t rank, std::uint64_t found, std::uint64_t own,
                 std::uint64_t count) {
  frame.refuse(text("of rank ", rank, " one tensor is elements ", found, " to ", found + count,
                    " of the other, in which elements ", own, " to ", own + count,
                    " are its own: it may be these, or must not overlap"));
}

namespace {

std::string describe(const placed_bytes& which) {
  return text("bytes ", which.first, " to ", which.last, ", which rank ", which.rank, ' ',
              which.is_written ? "writes" : "reads");
}

}  // namespace

void require_apart(const call_frame& frame, std::span<placed_bytes> all) {
  const auto place = [](const placed_bytes& each) {
    return std::tuple(each.block, each.first, each.last, each.rank, each.is_written);
  };
  std::ranges::sort(all, std::less<>(), place);  // all ranks name the same two
  for (auto one = all.begin(); one != all.end(); ++one) {
    for (auto next = one + 1; next != all.end() && next->block == one->block && next->first < one->last; ++next) {
      if (next->rank == one->rank || !(one->is_written || next->is_written)) continue;
      frame.refuse(text("tensors of different ranks overlap: ", describe(*one), ", and ", describe(*next),
                        ", of the same memory; what a rank writes must be its own"));
    }
  }
}

}  // namespace muster::detail
