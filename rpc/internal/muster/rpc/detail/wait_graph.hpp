// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include <muster/rpc/detail/group_table.hpp>

namespace muster::detail {

/// A call that is under way: which word of which member, at which use. Packed: `{member:12, slot:20, generation:32}`.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct call_id {
  std::uint32_t member = 0;  ///< that calls
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;  ///< 0: of no call

  [[nodiscard]] constexpr bool is_any() const noexcept { return generation != 0; }
  [[nodiscard]] constexpr std::uint64_t pack() const noexcept {
    return std::uint64_t{member} << 52U | std::uint64_t{slot & 0xfffffU} << 32U | generation;
  }
  [[nodiscard]] static constexpr call_id unpack(std::uint64_t packed) noexcept {
    return {.member = static_cast<std::uint32_t>(packed >> 52U),
            .slot = static_cast<std::uint32_t>(packed >> 32U & 0xfffffU),
            .generation = static_cast<std::uint32_t>(packed)};
  }
  friend bool operator==(const call_id&, const call_id&) = default;
};

/// Which call waits for which: one that has begun waits for the call that its thread waits for; one that has come to a
/// busy serial line waits for the one before it. Each has one such edge at most, in its line of the group's table:
/// `{own generation:16, member:12, slot:20, generation:16}`. An edge counts while the generations of both are as it
/// says.
///
/// What adds the last edge of a circle finds it, since all steps here are sequentially consistent: it writes first, and
/// follows afterwards. A circle is missed where a call in the middle of a line was withdrawn and its word is used
/// again: its calls then end at their deadlines. One is found that is none any more where a member of it gives up
/// meanwhile.
///
/// Thread safety: safe. Process safety: any process may be killed at any step: an edge that stays counts no more than
/// its calls do.
class wait_graph {
public:
  /// Lifetime: borrows the table.
  explicit wait_graph(const group_table& table) noexcept : table_(table) {}

  void set(const call_id& which, const call_id& waits_for) const noexcept;
  void clear(const call_id& which) const noexcept;
  /// What it waits for; nothing for a call that is over, or was never there.
  [[nodiscard]] std::optional<call_id> next(const call_id& which) const noexcept;
  /// The calls of the circle that `first` is in, in order; none where it is in none. Cost: goes over all that it waits
  /// for, at most `most_steps`.
  [[nodiscard]] std::vector<call_id> circle_of(const call_id& first) const;

  static constexpr std::size_t most_steps = 4096;

private:
  [[nodiscard]] bool is_possible(const call_id& which) const noexcept;
  [[nodiscard]] std::vector<call_id> walk(const call_id& first) const;

  const group_table& table_;
};

}  // namespace muster::detail
