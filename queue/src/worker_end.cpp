// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/worker_end.hpp>

#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <optional>

#include <muster/base/clock.hpp>
#include <muster/base/detail/futex.hpp>
#include <muster/base/detail/kept_for_next_task.hpp>
#include <muster/base/detail/pending_work.hpp>
#include <muster/base/log.hpp>
#include <muster/base/spin.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/detail/wait/look.hpp>
#include <muster/memory/wait/parking.hpp>
#include <muster/queue/bell.hpp>
#include <muster/queue/detail/task_call.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "current_call.hpp"
#include "current_task.hpp"

namespace muster {

worker_end::worker_end(board& board, arena& memory, token_decoder& functions, options settings)
    : board_(board),
      memory_(memory),
      functions_(functions),
      options_(settings),
      stderr_(STDERR_FILENO),
      line_(board.line(settings.index)),
      spin_(board.spin()),
      nested_(std::make_shared<nested_end>(*this)) {}

worker_end::~worker_end() { nested_->close(); }

worker_order worker_end::order() const noexcept {
  return static_cast<worker_order>(line_.order.load(std::memory_order_acquire));
}

// Any other value is no order: somebody has overwritten the word, and the parent will see to it.
bool worker_end::is_ordered_to_leave() const noexcept {
  const auto now = order();
  return now == worker_order::leave || now == worker_order::leave_when_idle || now == worker_order::retire;
}

bool worker_end::told_to_leave() const noexcept {
  return must_end_ || is_unfit() || order() == worker_order::leave ||
         (options_.max_tasks != 0 && finished_ >= options_.max_tasks);
}

bool worker_end::run_next() {
  claimed_task task;
  bool was_idle = false;
  while (!told_to_leave()) {
    const auto told = order();
    bool claimed = told == worker_order::retire ? claim_own(task) : claim_any(task);
    if (!claimed) {
      if (told == worker_order::retire || told == worker_order::leave_when_idle) break;
      was_idle = true;
      free_since_ = 0;
      claimed = spin(task);
    }
    if (!claimed) {
      park();
      continue;
    }
    // Whoever published more relied on this worker being awake; now that it is busy, the next one must be.
    if (was_idle && has_others() && has_work()) wake_another();
    run(task);
    return true;
  }
  line_.leaving.store(1, std::memory_order_release);
  if (has_others() && has_work()) wake_another();  // its own end may take long
  return false;
}

bool worker_end::claim_any(claimed_task& task) {
  // Every so often the least urgent lane comes first, so that it never starves. Claims are counted, not looks: how
  // often an idle worker looks is chance.
  constexpr std::uint64_t aging = 16;
  if (claim(board_.private_lane(options_.index), task)) return true;
  const bool reversed = (claims_ + 1) % aging == 0;
  for (std::size_t step = 0; step < board::shared_lanes; ++step) {
    if (!claim(board_.lane_at(reversed ? board::shared_lanes - 1 - step : step), task)) continue;
    ++claims_;
    return true;
  }
  return false;
}

// Who woke this worker for a task that anybody may run relied on it.
bool worker_end::claim_own(claimed_task& task) {
  if (!claim(board_.private_lane(options_.index), task)) return false;
  if (has_work()) wake_another();
  return true;
}

bool worker_end::claim(lane& from, claimed_task& task) {
  for (auto entry = from.look(); entry.some; entry = from.look()) {
    const auto owner = static_cast<unsigned>(options_.index) + 1;
    std::optional<slot_word> won;
    if (entry.hint.slot < board_.sizes().task_slots) {
      auto& word = board_.slot(entry.hint.slot).word;
      prefetch_for_write(&word);
      won = slot_protocol::try_claim(word, entry.hint.generation, owner);
    }
    from.advance(entry);
    if (!won) continue;
    task = {.slot = entry.hint.slot, .word = *won};
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

bool worker_end::is_wanted() { return has_work() || is_ordered_to_leave() || is_unfit(); }

void worker_end::run(const claimed_task& task) {
  auto& where = board_.slot(task.slot);
  task_call call(where, task.word, line_, memory_, functions_, cache_, made_in_);
  if (task.word.has(slot_flag::timed)) call.note_start();
  const bool notes = notes_times();
  if (notes) note_begin(task.slot, free_since_ != 0 ? free_since_ : now());
  line_.element.store(0, std::memory_order_relaxed);
  tell_place(line_.place);
  // From here on a death is the task's. Release: the element belongs to it.
  line_.current.store(current_task(task.slot, task.word.short_generation()), std::memory_order_release);
  {
    const current_call current(call);
    try {
      functions_.decode<task_thunk>(static_cast<function_token>(where.token))(call);
    } catch (...) {
      fail(call);
    }
    nested_->task_returned();
  }
  if (detail::pending_work::is_any()) finish(call, detail::pending_work::settle);
  if (!call.keep_borrowed()) must_end_ = true;
  finished_ += call.count();
  line_.finished.store(finished_, std::memory_order_relaxed);  // statistics
  const auto reply = call.finish();
  const bool goes_on = notes && has_work();
  const auto end = notes ? note_end(task.slot) : 0;
  free_since_ = goes_on ? end : 0;
  if (call.owns_slot()) {  // else somebody has overwritten the word; whose task it is now is for the parent to say
    const auto asked = slot_protocol::complete(where.word, task.word, reply);
    announce(task, asked);
    if (asked.has(slot_flag::doomed)) task_call::await_death();  // it was too late, and is done all the same
  }
  line_.current.store(0, std::memory_order_release);
  note_meeting();
}

// What the task was lent may be changed by others as soon as it has ended.
void worker_end::finish(task_call& call, void (*what)()) const noexcept {
  try {
    what();
  } catch (...) {
    fail(call);
  }
}

// Inside of a catch block.
void worker_end::fail(task_call& call) const noexcept {
  if (options_.note_failed_task != nullptr) options_.note_failed_task();
  call.fail_with_current_exception();
}

std::uint64_t worker_end::now() noexcept { return static_cast<std::uint64_t>(clock::now().time_since_epoch().count()); }

// Where somebody has overwritten the slot's word this may be another task's, whose times are then not believed, or
// wrong.
void worker_end::note_begin(std::size_t slot, std::uint64_t when) noexcept {
  board_.times(slot).begin.store(when, std::memory_order_relaxed);
}

std::uint64_t worker_end::note_end(std::size_t slot) noexcept {
  const auto when = now();
  board_.times(slot).end.store(when, std::memory_order_relaxed);
  return when;
}

void worker_end::announce(const claimed_task& task, const slot_word& asked) {
  if (asked.has(slot_flag::waiter)) {
    futex_wake(futex_address(board_.slot(task.slot).word), INT_MAX, futex_scope::shared);
  }
  if (asked.has(slot_flag::notify)) {
    board_.enter(options_.index,
                 {.generation = task.word.short_generation(), .slot = static_cast<std::uint16_t>(task.slot)});
    ring_bell();
  }
}

void worker_end::ring_bell() {
  const auto whose = bell::take_armed(board_.bell_armed());
  if (whose == 0) return;
  if ((whose & bell::of_supervisor) != 0) write_to(options_.bell);
  if ((whose & bell::of_loop) != 0) write_to(options_.loop_bell);
}

// A task may have closed the bell, and opened a file of its own with that number. A worker that cannot wake the parent
// exits: the parent then drains all rings, and starts another worker.
void worker_end::write_to(const known_descriptor& bell) const {
  if (!bell.is_same()) exit_without(bell);
  const std::uint64_t one = 1;
  // It can only fail when the counter is full, and then the parent has been woken often enough.
  static_cast<void>(!::write(bell.get(), &one, sizeof one));
}

void worker_end::exit_without(const known_descriptor& bell) const {
  if (stderr_.is_same()) {
    log_to_stderr(
        log_level::error,
        text("worker ", options_.index, " (process ", ::getpid(), ") exits: a task has closed descriptor ", bell.get(),
             ", with which the worker wakes its program; a task may close only descriptors that "
             "it has opened"));
  }
  ::_exit(EXIT_FAILURE);
}

// True when it has claimed a task; false when the budget is used up, there is an order, another worker spins, or the
// caller is to run on this processor.
bool worker_end::spin(claimed_task& task) {
  if (spin_.budget.count() == 0) return false;
  bool claimed = false;
  const auto look = [&] { return is_unfit() || (claimed = claim_any(task)) || is_ordered_to_leave(); };
  const auto ask = [&] {
    tell_place(line_.place);
    return prospect_of(board_.caller_place());
  };
  parking::spin_alone(board_.spinning(), options_.index, [&] { return look_until(spin_.budget, look, ask); });
  return claimed;
}

// Not only where it has looked in vain: a worker that wakes its caller on its own processor is mostly preempted by it,
// and finds the next task when it goes on, so that it never looks.
void worker_end::note_meeting() noexcept {
  tell_place(line_.place);
  const auto of_caller = prospect_of(board_.caller_place());
  if (of_caller == prospect::futile && !is_room_aside(board_.active(), board_.sleeping().count(), spin_.processors)) {
    return;
  }
  // Where there is a task already the caller has been here since, and waits.
  aside_.note(line_.place, of_caller, of_caller == prospect::futile && !has_work());
}

// To map again what the last task was lent would take longer than a caller takes to send the next one. So it is with
// memory that is kept warm; both go when no task comes.
void worker_end::park() {
  constexpr auto patience = std::chrono::milliseconds(10);
  cache_.clear();
  const bool keeps = detail::kept_for_next_task::is_any();
  auto seen = memory_.warm();
  const auto until_cold = [&] { return seen.bytes != 0 ? deadline::after(warm_time) : deadline(); };
  auto until = keeps ? deadline::after(patience) : until_cold();
  const auto sleep = [&] {
    futex_wait(futex_address(line_.parked), 1, futex_scope::shared, until);
    if (!until.expired()) return;
    if (detail::kept_for_next_task::is_any()) {
      detail::kept_for_next_task::drop();
      seen = memory_.warm();
    } else {
      seen = memory_.trim_unused(seen);
    }
    until = until_cold();
  };
  parking::park(line_.parked, board_.sleeping(), options_.index, [this] { return is_wanted(); }, sleep);
}

void worker_end::wake_another() {
  if (!board_.spinning().check_any()) board_.wake_any();
}

}  // namespace muster
