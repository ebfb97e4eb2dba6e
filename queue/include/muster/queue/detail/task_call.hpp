// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/detail/kept_for_next_task.hpp>
#include <muster/memory/detail/block.hpp>
#include <muster/queue/detail/frame_layout.hpp>
#include <muster/queue/detail/seal_number.hpp>
#include <muster/queue/detail/slot_word.hpp>
#include <muster/serialize/detail/attachments.hpp>

namespace muster {

class arena;
class error_info;
class stop_watch;
class task_reply;
class token_decoder;
class worker_cache;
struct carried_blocks;
struct task_slot;
struct worker_line;

/// One execution of a task, as its function in the worker sees it: arguments in, reply out.
///
/// Thread safety: an object belongs to the thread that runs the task, except stop_requested().
class task_call {
public:
  /// Which part of a call fails decides how its error is told.
  enum class step { decoding, running, encoding };

  /// Lifetime: borrows everything.
  task_call(task_slot& slot, const slot_word& claimed, worker_line& line, arena& memory, token_decoder& functions,
            worker_cache& cache, const process_mark& made_in) noexcept;
  task_call(const task_call&) = delete;
  task_call& operator=(const task_call&) = delete;
  ~task_call();

  /// The encoded arguments, where they lie. Throws errc::corrupted when the slot refers to no block.
  [[nodiscard]] std::span<const std::byte> arguments() const;

  /// Room for an encoded reply of exactly `bytes` bytes, which the caller fills; the last room that was asked for
  /// counts. Throws errc::out_of_memory; ends a forked child, whose reply nobody wants. `attachments`: how many blocks
  /// go with it, by way of a sender.
  [[nodiscard]] std::span<std::byte> make_reply(std::size_t bytes, std::size_t attachments = 0);
  /// Takes the blocks of the reply for which room was made last.
  class sender final : public attachment_sink {
  public:
    explicit sender(task_call& call) noexcept : call_(call) {}
    std::uint64_t attach(const shared_block& what) override;

  private:
    task_call& call_;
  };
  /// Where the blocks of the arguments come from. They are borrowed: who keeps a handle for longer than the call gets a
  /// hold of his own when it ends.
  class borrower final : public attachment_source {
  public:
    explicit borrower(task_call& call) noexcept : call_(call) {}
    shared_block take(std::uint64_t name) override;
    [[nodiscard]] bool lends_for_task() const noexcept override { return true; }

  private:
    task_call& call_;
  };

  /// The slot's own reply line, for replies that others must be able to read while they grow. Ask for it each time.
  [[nodiscard]] std::span<std::byte, inline_reply_bytes> reply_line() noexcept;

  /// The exception that is being handled, as the error that this call would end with.
  [[nodiscard]] error_info describe_current_exception() const noexcept;
  /// Ends the task with an error. Never throws: what does not fit is cut short.
  void fail(const error_info& error) noexcept;
  void fail_with_current_exception() noexcept;

  /// Ends the process, with a message, if it is a child that the task has forked: it has come back from user code.
  void end_forked_child() const noexcept {
    if (!made_in_.is_here()) [[unlikely]]
      end_child();
  }
  void enter(step which) noexcept {
    step_ = which;
    if (which == step::running) detail::kept_for_next_task::drop();
  }
  /// Says which element of a chunk comes next: a death from here on is that element's. Asked for once per chunk, so
  /// that what it needs is at hand for each element.
  class element_marker {
  public:
    explicit element_marker(task_call& call) noexcept;
    void at(std::uint64_t index) const noexcept {
      if (timed_) call_.note_start();
      mark_.store(seal_number(index), std::memory_order_release);
    }

  private:
    task_call& call_;
    std::atomic<std::uint64_t>& mark_;
    const bool timed_;
  };

  [[nodiscard]] bool stop_requested() const noexcept;
  /// What gives the same as a token. Cost: the first time, a thread.
  [[nodiscard]] stop_watch& watch_stop();
  [[nodiscard]] arena& memory() const noexcept { return memory_; }
  [[nodiscard]] token_decoder& functions() const noexcept { return functions_; }
  [[nodiscard]] worker_cache& cache() const noexcept { return cache_; }

  /// Which attempt at the task this is, or, in a chunk, at the element that it is at; from 1.
  [[nodiscard]] unsigned attempt() const noexcept;
  /// Says that this is a chunk: only its first element can have been tried before.
  void begin_chunk(std::uint64_t first_element) noexcept { first_element_ = first_element; }

  /// Counts further tasks that this call stood for: the elements of a chunk after the first.
  void count_more(std::uint64_t tasks) noexcept { count_ += tasks; }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

  /// The call that this thread is running, or nullptr.
  [[nodiscard]] static task_call* current() noexcept;

private:
  friend class worker_end;
  friend class nested_end;
  friend class current_call;
  friend class inner_call;

  /// For the parent, who watches the time. Does not return when the parent has given the task up.
  void note_start() noexcept;
  /// The parent is about to kill this process.
  [[noreturn]] static void await_death() noexcept;

  /// To be called when user code has returned: what it has kept of the borrowed blocks becomes its own. False when that
  /// was impossible; then this process must end, since the parent will let go of them.
  [[nodiscard]] bool keep_borrowed() noexcept;
  /// What the reply says of itself in the slot's word. Lends the reply's block.
  [[nodiscard]] slot_flag finish() noexcept;
  /// The reply, for whoever waits for it in this very process. The slot has nothing of it then.
  [[nodiscard]] task_reply take_reply();

  /// Whether the slot's word still names this execution. If it does not, somebody has overwritten it, and the slot may
  /// belong to another task by now: nothing must be written there any more.
  [[nodiscard]] bool owns_slot() const noexcept;
  [[noreturn]] static void end_child() noexcept;
  [[nodiscard]] std::span<std::byte> line_room(std::size_t bytes) noexcept;
  [[nodiscard]] std::span<std::byte> make_reply_with(std::size_t bytes, std::size_t attachments);
  [[nodiscard]] task_reply take_reply_with(bool failed);
  [[nodiscard]] bool keep_all_borrowed() noexcept;

  [[nodiscard]] carried_blocks& blocks();
  void give_back_carried() noexcept;
  [[nodiscard]] std::size_t sent_count() const noexcept;
  /// They will not arrive.
  void drop_sent() noexcept;

  task_slot& slot_;
  const slot_word claimed_;
  worker_line& line_;
  arena& memory_;
  token_decoder& functions_;
  worker_cache& cache_;
  const process_mark& made_in_;
  step step_ = step::decoding;
  slot_flag reply_ = slot_flag::small_reply;
  std::size_t line_bytes_ = 0;
  std::size_t frame_bytes_ = 0;
  alignas(64) std::array<std::byte, inline_reply_bytes> nowhere_;  // for replies of who has lost his slot
  block payload_;
  std::unique_ptr<carried_blocks> carried_;
  std::unique_ptr<stop_watch> stop_watch_;
  std::uint64_t count_ = 1;
  const std::uint32_t attempt_;
  std::optional<std::uint64_t> first_element_;  // of a chunk
};

/// What a task's token names: a function that decodes, runs and encodes. One type for all.
using task_thunk = void(task_call&);

}  // namespace muster
