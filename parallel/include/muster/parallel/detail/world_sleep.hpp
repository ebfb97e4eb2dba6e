// SPDX-License-Identifier: BSL-1.0
#pragma once

// How the caller of a world and its ranks wait for one another's words: they look for a while, then sleep on a bell of
// their own, and on the word of the domain's deaths, since who owes them a wake may die.

#include <atomic>
#include <cstdint>
#include <memory>

#include <muster/base/clock.hpp>
#include <muster/base/spin.hpp>
#include <muster/memory/domain.hpp>
#include <muster/parallel/detail/world_memory.hpp>
#include <muster/memory/wait/wait_protocol.hpp>

namespace muster::detail {

/// Wakes whoever sleeps on a bell. What he is to see was published before, sequentially consistently.
///
/// Thread safety: safe.
/// Cost: where nobody sleeps, a look.
void ring(std::atomic<std::uint32_t>& bell) noexcept;

/// One who sleeps on a bell.
///
/// Thread safety: one thread at a time.
/// Lifetime: borrows the bell.
class world_sleeper {
public:
  world_sleeper(std::shared_ptr<domain> where, const world_shape& shape, std::atomic<std::uint32_t>& bell)
      : domain_(std::move(where)), spin_(shape.spin), is_crowded_(shape.is_crowded), bell_(bell) {}

  /// Waits until `done`; false when `until` passed first. `look` is asked often: when it says so, `done` is asked,
  /// which looks at everything, deaths included, and is asked before each sleep too. Unblocked by: ring(); the death of
  /// a participant.
  template <class Look, class Done>
  bool wait(const Look& look, const Done& done, deadline until = {}) {
    for (;;) {
      if (is_crowded_ ? yield_until(spin_, look) : spin_until(spin_, look)) {
        if (done()) return true;
      }
      const auto deaths = domain_->deaths().load(std::memory_order_acquire);
      const auto announced = wait_protocol::announce(bell_);
      if (done()) return true;
      if (!sleep(announced, deaths, until)) return done();
    }
  }

private:
  [[nodiscard]] bool sleep(std::uint32_t announced, std::uint32_t deaths, deadline until) const;

  std::shared_ptr<domain> domain_;
  std::chrono::nanoseconds spin_;
  bool is_crowded_;
  std::atomic<std::uint32_t>& bell_;
};

}  // namespace muster::detail
