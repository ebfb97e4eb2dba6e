// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/detail/group_memory.hpp>

#include <algorithm>
#include <new>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

constexpr std::uint64_t magic = 0x6d75737447720004;  // "mustGr", layout version 4
constexpr std::size_t pair_of_lines = 128;           // processors fetch lines in pairs
constexpr std::chrono::nanoseconds longest_spin = std::chrono::milliseconds(1);
constexpr std::chrono::nanoseconds longest_timeout = std::chrono::hours(24 * 366);

struct header {
  std::uint64_t magic;
  std::uint64_t ranks;
  std::uint64_t inline_bytes;
  std::int64_t timeout_ns;
  std::int64_t spin_ns;
  std::uint64_t is_crowded;
  std::uint64_t is_ordered;
  alignas(pair_of_lines) group_memory::word broken;
  group_memory::word succession;
  group_memory::word successor;
};
constexpr std::size_t header_bytes = 2 * pair_of_lines;
static_assert(sizeof(header) == header_bytes);

std::size_t round_up(std::size_t bytes) { return (bytes + pair_of_lines - 1) / pair_of_lines * pair_of_lines; }

std::size_t lines_bytes(const group_shape& shape) { return shape.ranks * sizeof(rank_line); }
std::size_t links_bytes(const group_shape& shape) {
  return round_up(shape.ranks * shape.ranks * sizeof(group_memory::word));
}

}  // namespace

group_shape group_shape::of(std::size_t ranks, std::size_t inline_bytes, std::chrono::nanoseconds timeout,
                            std::chrono::nanoseconds spin, bool is_crowded) {
  const bool is_possible = ranks > 0 && ranks <= most_ranks && inline_bytes <= most_inline &&
                           timeout >= std::chrono::nanoseconds::zero() && timeout <= longest_timeout;
  if (!is_possible) {
    throw error(errc::invalid_argument,
                text("a group of ", ranks, " ranks with inline_bytes ", inline_bytes, " and a timeout of ",
                     timeout.count(), " ns was asked for: 1 to ", most_ranks, " ranks, up to ", most_inline,
                     " bytes, and a timeout from 0 to a year are possible"));
  }
  // Room for what comes before the elements, which is a number for each rank at most; and no line shared by two slots.
  const std::size_t least = 96 + ranks * sizeof(std::uint64_t);
  return {.ranks = ranks,
          .inline_bytes = round_up(std::max(inline_bytes, least) + sizeof(call_line)) - sizeof(call_line),
          .timeout = timeout,
          .spin = std::clamp(spin, std::chrono::nanoseconds(0), longest_spin),
          .is_crowded = is_crowded,
          .is_ordered = false};
}

std::size_t group_shape::slot_bytes() const noexcept { return inline_bytes + sizeof(call_line); }

std::size_t group_shape::total_bytes() const noexcept {
  return header_bytes + lines_bytes(*this) + links_bytes(*this) + 2 * ranks * slot_bytes();
}

group_memory group_memory::make(std::span<std::byte> bytes, const group_shape& shape) noexcept {
  new (bytes.data()) header{.magic = magic,
                            .ranks = shape.ranks,
                            .inline_bytes = shape.inline_bytes,
                            .timeout_ns = shape.timeout.count(),
                            .spin_ns = shape.spin.count(),
                            .is_crowded = shape.is_crowded ? 1U : 0U,
                            .is_ordered = shape.is_ordered ? 1U : 0U,
                            .broken = 0,
                            .succession = 0,
                            .successor = 0};
  const group_memory made(bytes, shape);
  for (std::size_t rank = 0; rank < shape.ranks; ++rank) {
    new (&made.lines_[rank]) rank_line{};
    for (std::size_t to = 0; to < shape.ranks; ++to) new (&made.link(rank, to)) word(0);
    for (std::uint64_t parity = 0; parity < 2; ++parity) new (&made.call(rank, parity)) call_line{};
  }
  return made;
}

group_memory group_memory::attach(std::span<std::byte> bytes) {
  if (bytes.size() >= header_bytes) {
    const auto& found = *reinterpret_cast<const volatile header*>(bytes.data());  // each field is read once
    const group_shape shape{.ranks = found.ranks,
                            .inline_bytes = found.inline_bytes,
                            .timeout = std::chrono::nanoseconds(found.timeout_ns),
                            .spin = std::chrono::nanoseconds(found.spin_ns),
                            .is_crowded = found.is_crowded != 0,
                            .is_ordered = found.is_ordered != 0};
    const bool is_possible = shape.ranks > 0 && shape.ranks <= group_shape::most_ranks &&
                             shape.inline_bytes <= 2 * group_shape::most_inline &&
                             shape.slot_bytes() % pair_of_lines == 0 && shape.timeout.count() >= 0 &&
                             shape.timeout <= longest_timeout && shape.total_bytes() <= bytes.size();
    if (found.magic == magic && is_possible) return {bytes, shape};
  }
  throw error(errc::corrupted, text("a block of ", bytes.size(),
                                    " bytes was received as a group, but is none: was something else sent, or has "
                                    "somebody overwritten it?"));
}

group_memory::group_memory(std::span<std::byte> bytes, const group_shape& shape) noexcept
    : shape_(shape), slot_bytes_(shape.slot_bytes()) {
  auto* at = bytes.data();
  auto& where = *reinterpret_cast<header*>(at);
  broken_ = &where.broken;
  succession_ = &where.succession;
  successor_ = &where.successor;
  at += header_bytes;
  lines_ = reinterpret_cast<rank_line*>(at);
  at += lines_bytes(shape);
  links_ = reinterpret_cast<word*>(at);
  at += links_bytes(shape);
  slots_ = at;
}

}  // namespace muster::detail
