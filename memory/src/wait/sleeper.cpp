// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/wait/sleeper.hpp>

#include <climits>

#include <muster/base/detail/futex.hpp>
#include <muster/memory/wait/step_aside.hpp>

namespace muster {

void ring(std::atomic<std::uint32_t>& bell) noexcept {
  if (wait_protocol::is_awaited(bell)) raise_bell(bell);
}

void raise_bell(std::atomic<std::uint32_t>& bell) noexcept {
  const auto raised = wait_protocol::raise(bell);
  futex_wake(futex_address(bell), INT_MAX, futex_scope::shared);
  wait_protocol::withdraw(bell, raised);
}

void note_meeting(participant_id self, place_word& own, prospect of_partner, bool found) noexcept {
  if (self == participant_id::host) return;
  thread_local step_aside aside;
  aside.note(own, of_partner, !found);
}

}  // namespace muster
