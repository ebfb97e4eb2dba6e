// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/worker_end.hpp>

#include <unistd.h>

#include <climits>

#include <muster/base/futex.hpp>
#include <muster/base/spin.hpp>
#include <muster/queue/bell.hpp>
#include <muster/queue/parking.hpp>
#include <muster/queue/slot_protocol.hpp>
#include <muster/queue/task_call.hpp>

#include "current_call.hpp"
#include "current_task.hpp"

namespace muster {

worker_end::worker_end(board& board, arena& memory, token_decoder& functions, options settings)
    : board_(board),
      memory_(memory),
      functions_(functions),
      options_(settings),
      line_(board.line(settings.index)),
      spin_(board.spin()) {}

worker_order worker_end::order() const noexcept {
  return static_cast<worker_order>(line_.order.load(std::memory_order_acquire));
}

bool worker_end::told_to_leave() const noexcept {
  return order() == worker_order::leave || (options_.max_tasks != 0 && finished_ >= options_.max_tasks);
}

bool worker_end::run_next() {
  std::size_t slot = 0;
  slot_word claimed;
  bool slept = false;
  for (;;) {
    if (told_to_leave()) break;
    if (claim_any(slot, claimed)) {
      // Whoever published more relied on this worker being awake; now that it is busy, the next one must be.
      if (slept && board_.sizes().workers > 1 && has_work()) wake_another();
      run(slot, claimed);
      return true;
    }
    if (order() == worker_order::leave_when_idle) break;
    slept = idle();
  }
  line_.leaving.store(1, std::memory_order_release);
  return false;
}

bool worker_end::claim_any(std::size_t& slot, slot_word& claimed) {
  constexpr std::uint64_t aging = 16;  // every so often the least urgent lane comes first, so that it never starves
  if (claim(board_.private_lane(options_.index), slot, claimed)) return true;
  const bool reversed = ++looks_ % aging == 0;
  for (std::size_t step = 0; step < board::shared_lanes; ++step) {
    if (claim(board_.lane_at(reversed ? board::shared_lanes - 1 - step : step), slot, claimed)) return true;
  }
  return false;
}

bool worker_end::claim(lane from, std::size_t& slot, slot_word& claimed) {
  for (auto entry = from.look(); entry.some; entry = from.look()) {
    slot = entry.hint.slot;
    if (slot < board_.sizes().slots) prefetch_for_write(&board_.slot(slot).word);
    const auto owner = static_cast<unsigned>(options_.index) + 1;
    const auto won = slot < board_.sizes().slots
                         ? slot_protocol::try_claim(board_.slot(slot).word, entry.hint.generation, owner)
                         : std::nullopt;
    from.advance(entry);
    if (!won) continue;
    claimed = *won;
    return true;
  }
  return false;
}

bool worker_end::has_work() {
  if (board_.private_lane(options_.index).has_entry()) return true;
  for (std::size_t index = 0; index < board::shared_lanes; ++index) {
    if (board_.lane_at(index).has_entry()) return true;
  }
  return false;
}

bool worker_end::is_wanted() { return has_work() || order() != worker_order::work; }

void worker_end::run(std::size_t slot, const slot_word& claimed) {
  auto& where = board_.slot(slot);
  task_call call(where, claimed, line_, memory_, functions_, cache_);
  line_.element.store(0, std::memory_order_relaxed);
  // From here on a death is the task's. Release: the element belongs to it.
  line_.current.store(current_task(slot, claimed.short_generation()), std::memory_order_release);
  {
    const current_call current(call);
    try {
      functions_.decode<task_thunk>(static_cast<function_token>(where.token))(call);
    } catch (...) {
      call.fail_with_current_exception();
    }
  }
  finished_ += call.count();
  line_.finished.store(finished_, std::memory_order_relaxed);  // statistics
  const auto asked = slot_protocol::complete(where.word, claimed, call.finish());
  if (asked.has(slot_flag::waiter)) futex_wake(futex_address(where.word), INT_MAX, futex_scope::shared);
  if (asked.has(slot_flag::notify)) {
    board_.ring(options_.index)
        .push({.generation = claimed.short_generation(), .slot = static_cast<std::uint16_t>(slot)});
    ring_bell();
  }
  line_.current.store(0, std::memory_order_release);
}

void worker_end::ring_bell() {
  if (!bell::must_ring(board_.bell_armed())) return;
  const std::uint64_t one = 1;
  // It can only fail when the counter is full, and then the parent has been woken often enough.
  static_cast<void>(!::write(options_.bell, &one, sizeof one));
}

// True when the worker was asleep for somebody to wake, or spun in his place.
bool worker_end::idle() {
  if (!spin()) park();
  return true;
}

bool worker_end::spin() {
  if (spin_.budget.count() == 0 || options_.index >= 64) return false;
  const auto spin_alone = [this] { return spin_until(spin_.budget, [this] { return is_wanted(); }); };
  if (board_.sizes().workers == 1) return spin_alone();
  if (board_.spinning().count() + 1 >= spin_.processors) return false;  // the parent needs a processor too
  return parking::spin_visibly(board_.spinning(), options_.index, spin_alone);
}

void worker_end::park() {
  cache_.clear();
  parking::park(
      line_.parked, board_.sleeping(), options_.index, [this] { return is_wanted(); },
      [this] { futex_wait(futex_address(line_.parked), 1, futex_scope::shared); });
}

void worker_end::wake_another() {
  if (!board_.spinning().check_any()) board_.wake_any();
}

}  // namespace muster
