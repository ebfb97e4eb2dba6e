// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// Whose lanes the tasks of a call go to: everybody's, one worker's, or those of all workers in turn.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class lane_route {
public:
  /// Whichever worker is free.
  constexpr lane_route() noexcept = default;
  [[nodiscard]] static constexpr lane_route to(std::size_t worker) noexcept {
    return lane_route(static_cast<std::uint32_t>(worker));
  }
  /// Each next task to the next worker.
  [[nodiscard]] static constexpr lane_route in_turn() noexcept { return lane_route(all_in_turn); }

  [[nodiscard]] constexpr bool is_shared() const noexcept { return where_ == anybody; }
  [[nodiscard]] constexpr bool is_in_turn() const noexcept { return where_ == all_in_turn; }
  /// Requires: it is one worker's.
  [[nodiscard]] constexpr std::size_t worker() const noexcept { return where_; }
  /// How many of `all` workers may run the tasks.
  [[nodiscard]] constexpr std::size_t workers(std::size_t all) const noexcept {
    return is_shared() || is_in_turn() ? all : 1;
  }

private:
  static constexpr std::uint32_t anybody = UINT32_MAX;
  static constexpr std::uint32_t all_in_turn = UINT32_MAX - 1;

  explicit constexpr lane_route(std::uint32_t where) noexcept : where_(where) {}

  std::uint32_t where_ = anybody;
};

}  // namespace muster::detail
