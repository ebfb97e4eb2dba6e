// SPDX-License-Identifier: BSL-1.0
#pragma once

// The life of tasks as a model: two clients of a parent, its supervisor, and two workers that may be killed at any
// step. What they do to slots, lanes, rings and the set of sleepers is the product's source over model::word; the way
// in which dispatcher and worker_end put those steps together is repeated here, step by step.

#include <cstdint>
#include <string>

#include "explorer.hpp"

namespace muster::model {

/// Steps that can be left out, one at a time. The tests show which are needed.
enum class mutation : std::uint8_t {
  none,
  park_without_second_look,       ///< worker: sleeps although work came after it had looked
  complete_without_wake,          ///< worker: does not look for WAITER
  complete_without_ring,          ///< worker: does not look for NOTIFY
  no_chain_wake,                  ///< worker: does not wake the next when there is more
  post_without_wake,              ///< parent
  wait_without_request,           ///< parent: sleeps without asking for a wake
  recover_without_done_slots,     ///< supervisor: takes only claimed slots for the dead one's
  recover_without_requeue,        ///< supervisor: fails also what had not begun
  recover_without_waking_waiter,  ///< supervisor: moves a task without waking who sleeps on its slot
  recover_without_wake_all,       ///< supervisor: a wake owed by the dead one is lost
  recover_without_bell,           ///< supervisor: a ring owed by the dead one is lost
  timeout_without_doom,           ///< supervisor: kills without binding the worker to the task
  timeout_without_done,           ///< supervisor: ends what had been completed before the kill
  timeout_before_begin,           ///< supervisor: ends a doomed task that its worker had not begun
  timeout_kept,                   ///< supervisor: remembers that a task was doomed when it posts it again
  timeout_reposted,               ///< supervisor: posts again what had run too long
  complete_despite_doom,          ///< worker: does not look for DOOMED in what its completion returns
  begin_despite_doom,             ///< worker: does not look for it before it begins
  retry_without_wake,             ///< supervisor: posts a task again after an error and wakes nobody
};

struct scenario {
  bool first_has_sink = false;  ///< the first client's task has a sink; else it waits in get()
  bool second_has_sink = true;
  bool first_cancels = false;
  bool second_cancels = false;    ///< the second client cancels its task after posting it
  std::uint8_t retries = 0;       ///< of both
  std::uint8_t errors = 0;        ///< so many first runs of a task with a sink end in an error
  std::uint8_t crashes = 1;       ///< how many workers may die, at any step
  std::uint8_t deaths_each = 1;   ///< how often each worker and those who take its place may
  bool then_in_recovery = false;  ///< any but the first only until the dead worker has been replaced
  std::uint8_t timeouts = 0;      ///< how often the supervisor may find that a task runs too long
  std::uint8_t workers = 2;
  std::uint8_t clients = 2;
  bool reduced = true;  ///< leave out orders of steps that nobody can tell apart
  mutation left_out = mutation::none;
};

/// Explores everything that can happen.
[[nodiscard]] verdict explore_tasks(const scenario& what, std::size_t most_states = 60'000'000);

}  // namespace muster::model
