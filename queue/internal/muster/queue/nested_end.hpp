// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <muster/async/cancellation.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/fork_count.hpp>
#include <muster/memory/detail/arena.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/detail/outgoing_frame.hpp>
#include <muster/queue/request_cell.hpp>
#include <muster/queue/task_reply.hpp>
#include <muster/serialize/detail/function_token.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster {

class nested_end;
class task_call;
class worker_end;

/// So many calls may run inside of one another in one worker.
inline constexpr std::size_t most_nested_depth = 64;

/// How a call of a task ended, still encoded: as task_reply, but the bytes may still lie with the parent.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe; belongs to the worker's thread.
class nested_reply {
public:
  explicit nested_reply(task_reply reply) noexcept : own_(std::move(reply)) {}
  /// Bytes that the parent keeps while the cell is taken.
  nested_reply(nested_end& end, std::size_t cell, std::span<const std::byte> bytes, bool failed) noexcept
      : end_(&end), cell_(cell), bytes_(bytes), failed_(failed) {}
  nested_reply(const nested_reply&) = delete;
  nested_reply& operator=(const nested_reply&) = delete;
  ~nested_reply();

  [[nodiscard]] bool succeeded() const noexcept { return end_ != nullptr ? !failed_ : own_.succeeded(); }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return end_ != nullptr ? bytes_ : own_.bytes(); }
  /// Requires: !succeeded().
  [[nodiscard]] error_info error() const;
  /// The blocks that came along; none with what another worker has replied.
  [[nodiscard]] std::span<const shared_block> shared() const noexcept { return own_.shared(); }

private:
  task_reply own_;
  nested_end* end_ = nullptr;
  std::size_t cell_ = 0;
  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

/// A call that a task has made to its own pool. Destroying it neither waits nor cancels: the call runs to its end.
///
/// Thread safety: an object belongs to the thread of the worker that made it; others may only destroy it.
/// Process safety: in a forked child calls throw errc::forked, and its end changes nothing.
class nested_call {
public:
  nested_call() noexcept = default;
  nested_call(nested_call&& other) noexcept
      : end_(std::exchange(other.end_, nullptr)),
        cell_(other.cell_),
        generation_(other.generation_),
        local_(std::move(other.local_)) {}
  nested_call& operator=(nested_call&&) = delete;
  ~nested_call();

  /// Waits until the call has ended; false when `until` passed first. If nobody has begun it, this runs it now, which
  /// may take longer than `until`.
  /// Unblocked by: the end of the call in any way: value, error, death of the worker that has it.
  /// Throws errc::invalid_argument in another thread, errc::overflow when the calls are nested too deep.
  bool wait(deadline until = {});
  [[nodiscard]] bool is_done() const;
  /// Requires: the call has ended; called once.
  [[nodiscard]] nested_reply take();
  /// As future::cancel.
  bool cancel(cancellation how = cancellation::ask);

  /// Waits until one of these has ended, of one worker; runs one that no worker has begun. False when `until` passed
  /// first. Unblocked by, and throws: as wait().
  static bool wait_for_any(std::span<nested_call* const> calls, deadline until = {});

private:
  friend class nested_end;
  nested_call(std::shared_ptr<nested_end> end, std::size_t cell, std::uint64_t generation) noexcept
      : end_(std::move(end)), cell_(cell), generation_(generation) {}
  nested_call(std::shared_ptr<nested_end> end, task_reply reply) : end_(std::move(end)), local_(std::move(reply)) {}

  enum class stage {
    over,      ///< it has ended
    again,     ///< another has just changed how it stands
    elsewhere  ///< others have it
  };

  [[nodiscard]] cell_word look() const noexcept;
  void require_this_thread() const;
  /// `found`: what its cell says. `helps`: runs it if no worker has begun it.
  stage advance(cell_word& found, bool helps);
  void settle(task_reply reply);

  std::shared_ptr<nested_end> end_;
  std::size_t cell_ = 0;
  std::uint64_t generation_ = 0;
  std::optional<task_reply> local_;  // it was run here
};

/// What is told, by the thread of a task, that the task has returned, while it can still make calls; before its end is
/// published.
///
/// Thread safety: belongs to the worker's thread.
class task_companion {
public:
  task_companion() = default;
  task_companion(const task_companion&) = delete;
  task_companion& operator=(const task_companion&) = delete;
  virtual ~task_companion() = default;
  virtual void task_returned() noexcept = 0;
};

/// The worker's side of calls that its tasks make to their own pool.
///
/// It works as follows. A call is written into a free *request cell* of this worker and entered into its completion
/// ring; the parent makes an ordinary task of it as soon as there is a slot, and writes the reply into the cell. Who
/// waits for a call that nobody has begun runs it in place: from the cell when the parent has not accepted it, else
/// from its slot. So a task never waits for a worker to become free, only for tasks that run, and a pool of one worker
/// does not lock up. When no cell is free the call is run at once.
///
/// Thread safety: an object belongs to its worker's thread.
/// Process safety: the process may die at any instruction; the parent's recovery clears the cells. In a forked child it
/// gives errc::forked.
class nested_end : public std::enable_shared_from_this<nested_end> {
public:
  /// Lifetime: borrows the worker's end until close().
  explicit nested_end(worker_end& worker);
  nested_end(const nested_end&) = delete;
  nested_end& operator=(const nested_end&) = delete;

  /// That of the worker whose thread this is, if it is inside of a task; else nullptr.
  [[nodiscard]] static nested_end* current() noexcept;
  /// The same. Throws errc::invalid_argument, saying what to do, outside of a task; errc::forked in a child that the
  /// task has forked.
  [[nodiscard]] static nested_end& require_current();

  [[nodiscard]] arena& memory() noexcept;
  [[nodiscard]] token_encoder& functions();

  /// Has a call run. Never waits for others; runs the call at once when too many are under way.
  /// Throws errc::overflow when the calls are nested too deep.
  [[nodiscard]] nested_call submit(function_token function, outgoing_frame frame);

  /// What is told when the task at hand returns, and later ones that are as deep inside of others; nullptr: nothing.
  [[nodiscard]] std::shared_ptr<task_companion>& companion() {
    if (companions_.size() <= depth_) companions_.resize(depth_ + 1);
    return companions_[depth_];
  }
  void task_returned() const noexcept {
    if (companions_.size() > depth_ && companions_[depth_] != nullptr) companions_[depth_]->task_returned();
  }

  /// Calls that outlive the worker's end find nobody.
  void close() noexcept;

private:
  friend class nested_call;
  friend class nested_reply;

  [[nodiscard]] request_cell& cell(std::size_t index) noexcept;
  [[nodiscard]] std::optional<std::size_t> find_free_cell() noexcept;
  void require_here() const { made_in_.require_here("the pool of a task"); }
  void require_depth() const;
  void enter_into_ring(std::size_t cell, std::uint64_t generation);
  struct posted_task {
    std::size_t slot = 0;
    slot_word word;
  };
  using argument_line = std::array<std::byte, inline_argument_bytes>;
  task_reply run_unposted(std::uint64_t token, const argument_line& arguments, bool in_block);
  task_reply run_taken_back(std::size_t cell, bool in_block);
  void drop_taken_back(std::size_t cell, bool in_block);
  void reclaim(const argument_line& arguments);
  [[nodiscard]] std::optional<posted_task> try_claim(std::size_t cell);
  task_reply run_claimed(const posted_task& task);
  void drop_claimed(const posted_task& task);
  void complete(const posted_task& task, task_call& call);
  task_reply run(task_call& call);
  void ask_to_stop(std::size_t cell) noexcept;
  struct seen_cell {
    std::size_t cell = 0;
    cell_word word;
  };
  void spin_or_sleep(std::span<const seen_cell> seen, deadline until);
  void abandon(std::size_t cell, std::uint64_t generation) noexcept;
  void release(std::size_t cell) noexcept;

  const process_mark made_in_;
  worker_end& worker_;
  std::atomic<bool> closed_ = false;        // then nothing above is touched; release when the worker's end is closed
  std::optional<token_encoder> functions_;  // made when first needed
  std::size_t next_cell_ = 0;               // where to look first
  std::size_t depth_ = 0;                   // calls that run inside of one another
  std::vector<std::shared_ptr<task_companion>> companions_;  // by that depth
};

}  // namespace muster
