// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/world_memory.hpp>

#include <algorithm>
#include <new>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

constexpr std::uint64_t magic = 0x6d757374576c0004;  // "mustWl", layout version 4
constexpr std::chrono::nanoseconds longest_spin = std::chrono::milliseconds(1);

struct header {
  std::uint64_t magic;
  std::uint64_t ranks;
  std::int64_t spin_ns;
  std::uint64_t is_crowded;
  std::uint64_t master;
  alignas(128) std::atomic<std::uint32_t> bell;
  place_word place;
  alignas(8) std::atomic<std::uint64_t> failures;
  alignas(128) module_entry modules[module_directory_size];
};

}  // namespace

std::size_t world_shape::total_bytes() const noexcept {
  return sizeof(header) + sizeof(command_line) + ranks * sizeof(world_line);
}

world_memory world_memory::make(std::span<std::byte> bytes, const world_shape& shape) noexcept {
  std::fill_n(bytes.data(), shape.total_bytes(), std::byte{0});
  auto& where = *new (bytes.data()) header{};
  where.ranks = shape.ranks;
  where.spin_ns = std::clamp(shape.spin, std::chrono::nanoseconds(0), longest_spin).count();
  where.is_crowded = shape.is_crowded ? 1U : 0U;
  where.master = shape.master;
  where.magic = magic;
  auto* at = bytes.data() + sizeof(header);
  new (at) command_line{};
  at += sizeof(command_line);
  for (std::size_t rank = 0; rank < shape.ranks; ++rank) new (at + rank * sizeof(world_line)) world_line{};
  return {bytes, shape};
}

world_memory world_memory::attach(std::span<std::byte> bytes) {
  if (bytes.size() >= sizeof(header)) {
    const auto& found = *reinterpret_cast<const volatile header*>(bytes.data());  // each field is read once
    const world_shape shape{.ranks = found.ranks,
                            .spin = std::chrono::nanoseconds(found.spin_ns),
                            .is_crowded = found.is_crowded != 0,
                            .master = found.master};
    const bool is_possible = shape.ranks <= world_shape::most_ranks && shape.master < shape.ranks &&
                             shape.spin.count() >= 0 && shape.spin <= longest_spin &&
                             shape.total_bytes() <= bytes.size();
    if (found.magic == magic && is_possible) return {bytes, shape};
  }
  throw error(errc::corrupted, text("a block of ", bytes.size(),
                                    " bytes was received as a world, but is none: was something else sent, or has "
                                    "somebody overwritten it?"));
}

world_memory::world_memory(std::span<std::byte> bytes, const world_shape& shape) noexcept
    : shape_(shape),
      modules_(reinterpret_cast<header*>(bytes.data())->modules),
      bell_(&reinterpret_cast<header*>(bytes.data())->bell),
      place_(&reinterpret_cast<header*>(bytes.data())->place),
      failures_(&reinterpret_cast<header*>(bytes.data())->failures),
      command_(reinterpret_cast<command_line*>(bytes.data() + sizeof(header))),
      lines_(reinterpret_cast<world_line*>(bytes.data() + sizeof(header) + sizeof(command_line))) {}

}  // namespace muster::detail
