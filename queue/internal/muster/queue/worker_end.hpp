// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/detail/known_descriptor.hpp>
#include <muster/base/device.hpp>
#include <muster/memory/detail/arena.hpp>
#include <muster/memory/wait/step_aside.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/detail/worker_cache.hpp>
#include <muster/queue/nested_end.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster {

class task_call;

/// A worker's end of a board: claims tasks, runs them, completes them.
///
/// Thread safety: an object belongs to one thread.
/// Process safety: one per worker index; the process may die at any instruction. A child that a task has forked has no
/// part in it, and ends when it returns from the task.
class worker_end {
public:
  struct options {
    std::size_t index = 0;
    known_descriptor bell{};                        ///< eventfd that the supervisor may sleep on; borrowed
    known_descriptor loop_bell{};                   ///< the same of the program's loop, if there is one; borrowed
    std::uint64_t max_tasks = 0;                    ///< leave after so many; 0: never
    muster::device device{};                        ///< that it is pinned to, for errors
    const std::atomic<bool>* unfit = nullptr;       ///< once it is true: leave after the task at hand; borrowed
    void (*note_failed_task)() noexcept = nullptr;  ///< called inside the catch block of a task that has thrown
  };

  /// Lifetime: borrows everything.
  worker_end(board& board, arena& memory, token_decoder& functions, options settings);
  worker_end(const worker_end&) = delete;
  worker_end& operator=(const worker_end&) = delete;
  ~worker_end();

  /// Claims and runs one task, after sleeping until there is one. False when this worker is to leave: by order, or
  /// because it has run max_tasks tasks, or is unfit.
  /// Unblocked by: a task; an order.
  bool run_next();
  /// How many tasks it has run; of a chunk, every element counts.
  [[nodiscard]] std::uint64_t finished() const noexcept { return finished_; }

private:
  friend class nested_end;

  struct claimed_task {
    std::size_t slot = 0;
    slot_word word;
  };

  bool claim(lane& from, claimed_task& task);
  bool claim_any(claimed_task& task);
  bool has_work();
  bool is_wanted();
  void run(const claimed_task& task);
  [[nodiscard]] bool notes_times() const noexcept { return line_.timing.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] static std::uint64_t now() noexcept;
  void note_begin(std::size_t slot, std::uint64_t when) noexcept;
  std::uint64_t note_end(std::size_t slot) noexcept;
  void announce(const claimed_task& task, const slot_word& asked);
  void ring_bell();
  void write_to(const known_descriptor& bell) const;
  [[noreturn]] void exit_without(const known_descriptor& bell) const;
  bool spin(claimed_task& task);
  void note_meeting() noexcept;
  void park();
  void wake_another();
  [[nodiscard]] bool told_to_leave() const noexcept;
  [[nodiscard]] bool is_unfit() const noexcept {
    return options_.unfit != nullptr && options_.unfit->load(std::memory_order_relaxed);
  }
  void finish(task_call& call, void (*what)()) const noexcept;
  void fail(task_call& call) const noexcept;
  [[nodiscard]] bool is_ordered_to_leave() const noexcept;
  // A worker beyond the active ones is not alone, however few these are.
  [[nodiscard]] bool has_others() const noexcept { return options_.index > 0 || board_.active() > 1; }
  bool claim_own(claimed_task& task);
  [[nodiscard]] worker_order order() const noexcept;

  const process_mark made_in_;
  board& board_;
  arena& memory_;
  token_decoder& functions_;
  const options options_;
  const known_descriptor stderr_;  // as it was when the worker began
  worker_line& line_;
  const spin_policy spin_;
  step_aside aside_;
  worker_cache cache_;
  std::uint64_t claims_ = 0;  // for aging
  std::uint64_t finished_ = 0;
  // When the last task ended, if the next was there already; else 0. That one begins then: of tiny tasks, a reading of
  // the clock is a good part.
  std::uint64_t free_since_ = 0;
  bool must_end_ = false;                     // it has handles of memory that the parent lets go of
  const std::shared_ptr<nested_end> nested_;  // calls that tasks have made may outlive this
};

}  // namespace muster
