// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/memory/arena.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/reply_seal.hpp>
#include <muster/queue/slot_word.hpp>
#include <muster/queue/task_reply.hpp>
#include <muster/queue/worker_cache.hpp>
#include <muster/serialize/error_info.hpp>
#include <muster/serialize/function_token.hpp>

namespace muster {

/// One execution of a task, as its function in the worker sees it: arguments in, reply out.
///
/// Thread safety: an object belongs to the thread that runs the task, except stop_requested().
class task_call {
public:
  /// Which part of a call fails decides how its error is told.
  enum class step { decoding, running, encoding };

  /// Lifetime: borrows everything.
  task_call(task_slot& slot, const slot_word& claimed, worker_line& line, arena& memory, token_decoder& functions,
            worker_cache& cache) noexcept
      : slot_(slot), claimed_(claimed), line_(line), memory_(memory), functions_(functions), cache_(cache) {}
  task_call(const task_call&) = delete;
  task_call& operator=(const task_call&) = delete;

  /// The encoded arguments, where they lie. Throws errc::corrupted when the slot refers to no block.
  [[nodiscard]] std::span<const std::byte> arguments() const;

  /// Room for an encoded reply of exactly `bytes` bytes, which the caller fills; the last room that was asked for
  /// counts. Throws errc::out_of_memory.
  [[nodiscard]] std::span<std::byte> make_reply(std::size_t bytes);

  /// The slot's own reply line, for replies that others must be able to read while they grow. Ask for it each time.
  [[nodiscard]] std::span<std::byte, inline_reply_bytes> reply_line() noexcept;

  /// The exception that is being handled, as the error that this call would end with.
  [[nodiscard]] error_info describe_current_exception() const noexcept;
  /// Ends the task with an error. Never throws: what does not fit is cut short.
  void fail(const error_info& error) noexcept;
  void fail_with_current_exception() noexcept { fail(describe_current_exception()); }

  void enter(step which) noexcept { step_ = which; }
  /// Says which element of a chunk comes next: a death from here on is that element's.
  void at_element(std::uint64_t index) noexcept {
    if (claimed_.has(slot_flag::timed)) note_start();
    line_.element.store(seal_number(index), std::memory_order_release);
  }

  [[nodiscard]] bool stop_requested() const noexcept {
    return slot_word(slot_.word.load(std::memory_order_relaxed)).has(slot_flag::stop);
  }
  [[nodiscard]] arena& memory() const noexcept { return memory_; }
  [[nodiscard]] token_decoder& functions() const noexcept { return functions_; }
  [[nodiscard]] worker_cache& cache() const noexcept { return cache_; }

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

  /// What the reply says of itself in the slot's word. Lends the reply's block.
  [[nodiscard]] slot_flag finish() noexcept;
  /// The reply, for whoever waits for it in this very process. The slot has nothing of it then.
  [[nodiscard]] task_reply take_reply();

  /// Whether the slot's word still names this execution. If it does not, somebody has overwritten it, and the slot may
  /// belong to another task by now: nothing must be written there any more.
  [[nodiscard]] bool owns_slot() const noexcept {
    constexpr auto flags = slot_word::flag_bits(slot_flag{0xff});
    return ((slot_.word.load(std::memory_order_relaxed) ^ claimed_.bits()) & ~flags) == 0;
  }
  [[nodiscard]] std::span<std::byte> line_room(std::size_t bytes) noexcept;

  task_slot& slot_;
  const slot_word claimed_;
  worker_line& line_;
  arena& memory_;
  token_decoder& functions_;
  worker_cache& cache_;
  step step_ = step::decoding;
  slot_flag reply_ = slot_flag::small_reply;
  std::size_t line_bytes_ = 0;
  alignas(64) std::array<std::byte, inline_reply_bytes> nowhere_;  // for replies of who has lost his slot
  block payload_;
  std::uint64_t count_ = 1;
};

/// What a task's token names: a function that decodes, runs and encodes. One type for all.
using task_thunk = void(task_call&);

}  // namespace muster
