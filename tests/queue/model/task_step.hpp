// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>

#include <muster/queue/slot_protocol.hpp>

#include "task_state.hpp"

namespace muster::model {

/// The model's operations happen one after another: the order that the protocol asks for makes no difference here.
inline constexpr std::memory_order any = std::memory_order_seq_cst;

/// Whether an operation of `who` commutes with everything that other processes may do before `who` takes another step.
/// Why that matters: docs/design/model.md.
[[nodiscard]] bool commutes(const state& now, std::size_t who, access uses, const scenario& what);

/// What tells a state from others: the same for two that differ only in how often slots and rings were used before, and
/// in what nobody will look at.
[[nodiscard]] fingerprint name_of(const state& of);

/// Whether the worker may die now.
[[nodiscard]] bool may_die(const state& now, std::size_t worker, const scenario& what);

/// One step of one process, on a state that it may change: an operation, and, when the scenario is to be reduced, those
/// after it that no other process can tell from having happened at once.
class step {
public:
  step(state& on, std::size_t who, const scenario& what) : state_(on), who_(who), what_(what) {}

  /// How many different steps the process may take, some of which may be impossible now.
  [[nodiscard]] static std::size_t choices(const state& now, std::size_t who);

  /// False when the process cannot go on now.
  bool take(std::size_t choice = 0);
  /// What its first operation uses.
  [[nodiscard]] access uses() const { return execution_.first_; }

private:
  enum class ended : std::uint8_t { in_body, after_body, too_long };

  ended run_body();
  void finish();
  [[nodiscard]] std::uint64_t own_bit() const;
  void run();
  static bool may_follow(const void* self, const access& what);

  // Operations that no word has.
  template <class F>
  std::uint64_t perform(const access& what, F operation) {
    return execution_.perform(what, operation);
  }
  void lock();
  void unlock() { unlocks_ = true; }
  void never();
  [[nodiscard]] bool may_owe() const;
  model_lane::found look_at_lane();
  void futex_wait(std::size_t index, std::uint64_t expected);
  void futex_wake(std::size_t index);

  // Waking, as board does.
  void wake(std::size_t worker);
  void take_sleeper(std::uint8_t store, std::uint8_t after);
  void wake_taken();

  // A worker, as worker_end.
  void run_worker(std::size_t self);
  void worker_looks(std::size_t self);
  void worker_chains();
  bool sees_doom();
  void worker_begins(std::size_t self);
  void worker_completes();
  void worker_rings();
  void worker_parks(std::size_t self);
  void next_duty(std::uint8_t pc);
  [[nodiscard]] std::uint8_t after_duties() const;

  // The parent, as dispatcher.
  [[nodiscard]] bool has_sink(std::size_t which) const;
  void move_to(std::size_t which, phase where);
  void place(std::size_t which);
  void leave_slot(std::size_t which, bool wake_sleeper = true);
  void settle(std::size_t which, outcome how);
  void collect(std::size_t which);
  void settle_done(std::size_t which);
  void note(std::size_t which, wrong what) {
    if (parent_.all[which].found == wrong::none) parent_.all[which].found = what;
  }

  void run_client();
  void client_cancels();
  void client_waits();
  void client_checks_slot();
  void client_takes();

  void run_supervisor();
  void supervisor_awaits();
  std::uint64_t next_event();
  std::uint64_t next_timeout(std::size_t slot);
  void supervisor_dooms();
  void supervisor_kills();
  void begin_ring(std::size_t worker);
  void drain_entry();
  void after_ring();
  void wake_for_fed();
  void recover_next_slot();
  void recover_slot(std::size_t slot, std::size_t worker);
  void recover_claimed(std::size_t slot, std::size_t worker);
  outcome outcome_of(std::size_t slot, std::size_t worker);
  void end_recovery(std::size_t worker);
  void wake_next();

  [[nodiscard]] bool leaves_out(mutation which) const { return what_.left_out == which; }

  state& state_;
  const std::size_t who_;
  const scenario& what_;
  local_values mine_;
  parent_data parent_;
  execution execution_;
  std::size_t choice_ = 0;
  bool unlocks_ = false;
};

}  // namespace muster::model
