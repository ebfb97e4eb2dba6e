// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include <boost/intrusive/list_hook.hpp>

#include <muster/memory/detail/block.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/task_labels.hpp>
#include <muster/queue/task_reply.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster {

class task_record;

class completion_sink;

/// A sink's place in the list of those to call.
///
/// Thread safety: the list's.
class finished_link {
private:
  friend class finished_list;

  completion_sink* next_finished_ = nullptr;
  task_record* finished_record_ = nullptr;
};

/// Learns in the parent that a task has ended.
///
/// Called once per task, by the thread that observes the end: often the supervisor, so it must not run user code, must
/// not block and must not throw. It does not touch the record, which its holder may have given back by then.
/// A sink belongs to one task at a time: it is a link of the list of those to call, so that telling an end allocates
/// nothing.
class completion_sink : public finished_link {
public:
  virtual void settled(task_record& record) noexcept = 0;
  /// Instead of settled(), when whoever holds the record gives it up before the task has ended.
  virtual void abandoned() noexcept {}

protected:
  ~completion_sink() = default;
};

enum class task_phase : std::uint8_t {
  unused,   ///< in the pool of records
  waiting,  ///< accepted, no slot yet
  posted,   ///< in a slot
  settled   ///< the reply is in the record
};

/// What the parent knows of one task, in private memory: the truth that shared words are compared with. Records are
/// pooled; a warm task allocates none.
///
/// Thread safety: guarded by the dispatcher's mutex, except the atomics.
class task_record {
public:
  /// Where the task is, in one word so that a waiter reads it without the lock.
  struct location {
    std::uint32_t generation = 0;
    std::uint16_t slot = 0;
    task_phase phase = task_phase::unused;
  };

  [[nodiscard]] location where() const noexcept {
    const auto word = where_.load(std::memory_order_acquire);
    return {.generation = static_cast<std::uint32_t>(word >> 32U),
            .slot = static_cast<std::uint16_t>(word >> 16U),
            .phase = static_cast<task_phase>(word & 0xffU)};
  }
  [[nodiscard]] task_phase phase() const noexcept { return where().phase; }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  /// Element of a chunk at which its worker died. Requires: settled with worker_died.
  [[nodiscard]] std::uint64_t element() const noexcept { return element_; }

private:
  friend class dispatcher;

  void move_to(location where) noexcept {
    where_.store(std::uint64_t{where.generation} << 32U | std::uint64_t{where.slot} << 16U |
                     static_cast<std::uint8_t>(where.phase),
                 std::memory_order_release);
  }

  using argument_line = std::array<std::byte, inline_argument_bytes>;
  void keep_arguments(const argument_line& line) noexcept {
    std::memcpy(reply_.line().data(), line.data(), line.size());
  }
  [[nodiscard]] argument_line kept_arguments() noexcept {
    argument_line line;
    std::memcpy(line.data(), reply_.line().data(), line.size());
    return line;
  }

  std::atomic<std::uint64_t> where_ = 0;
  std::atomic<std::uint32_t> epoch_ = 0;    // futex: grows when a sleeper must look again
  std::atomic<bool> slot_sleeper_ = false;  // somebody may sleep on the slot's word: set before asking for a wake
  bool record_sleeper_ = false;             // somebody sleeps on epoch_
  bool overdue_ = false;                    // its worker is about to be killed for it
  bool detached_ : 1 = false;               // nobody will take the reply
  bool chunk_ : 1 = false;                  // its sink resumes it after a death
  bool block_arguments_ : 1 = false;
  bool has_terms_ : 1 = false;  // the dispatcher knows more of it
  bool timed_ : 1 = false;      // the dispatcher takes its times
  bool notified_ : 1 = false;   // in its slot it has been flagged so that its end is entered into a ring
  bool doomed_ : 1 = false;     // it was cancelled while it ran: its worker is killed for it
  std::uint16_t lane_ = 0;
  std::uint16_t caller_ = 0;  // index, plus one, of the worker whose task called it; 0: the parent
  std::int16_t worker_ = -1;
  bool retries_errors_ : 1 = false;  // ends only when the parent has looked at its reply; constant while it is pending
  bool unwoken_ : 1 = false;         // no worker was woken for it: one that spins will find it
  bool has_place_ : 1 = false;       // under max_pending
  std::uint32_t attempt_ = 1;
  std::uint32_t retries_left_ = 0;
  std::uint32_t deaths_ = 0;  // workers that died while they ran it
  pid_t pid_ = 0;
  function_token function_{};
  std::uint64_t id_ = 0;
  static constexpr std::uint64_t most_element = (std::uint64_t{1} << 40U) - 1;
  std::uint64_t element_ : 40 = 0;
  std::uint64_t timing_ : 24 = 0;  // where its times are, if they are taken
  label_ref label_;
  // Among those that wait for a slot: cancelling one of very many takes it out at once, and to wait allocates nothing.
  boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> waits_;
  completion_sink* sink_ = nullptr;
  // When settled. Until then it keeps the arguments, so that a pending task costs no room for both: their block and
  // what goes with it, and while the task waits for a slot their line.
  task_reply reply_;
};

}  // namespace muster
