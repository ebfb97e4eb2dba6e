// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/memfd.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/memory/detail/mapping.hpp>
#include <muster/memory/detail/wait/place.hpp>
#include <muster/memory/wait/idle_set.hpp>
#include <muster/memory/wait/spin_policy.hpp>
#include <muster/queue/completion_ring.hpp>
#include <muster/queue/detail/frame_layout.hpp>
#include <muster/queue/detail/slot_word.hpp>
#include <muster/queue/lane.hpp>
#include <muster/queue/request_cell.hpp>
#include <muster/queue/ring_news.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster {

/// The most workers of one board.
inline constexpr std::size_t most_workers = 1000;

/// One task in flight: two pairs of cache lines that a process touches one at a time. The first is written by the
/// parent and read by the worker, who puts a small reply in place of the token; the second is written by the worker
/// when the reply is larger. Arguments stay intact until the task is done: a retry needs them.
struct alignas(64) task_slot {
  std::atomic<std::uint64_t> word;
  std::uint64_t token;
  alignas(16) std::array<std::byte, inline_argument_bytes> arguments;

  alignas(64) std::array<std::byte, inline_reply_bytes> reply;
  std::uint64_t reply_bytes;  ///< sealed: reply_seal.hpp
};
static_assert(sizeof(task_slot) == 128);

/// When a worker began and ended the task that is in the slot of the same number, if its line asks for that: ns,
/// monotonic clock, which is the same in all processes. Written by the worker, before it completes the task.
struct task_times {
  std::atomic<std::uint64_t> begin;
  std::atomic<std::uint64_t> end;
};

/// What the parent may order a worker to do.
enum class worker_order : std::uint32_t {
  work,
  leave_when_idle,  ///< finish what is queued, then leave
  leave,            ///< finish the task at hand, then leave
  retire            ///< finish what only this worker may run, then leave
};

/// What one worker and the parent tell each other.
struct alignas(128) worker_line {
  std::atomic<std::uint32_t> parked;  ///< futex: 1 while the worker sleeps; others set it to 0 and wake
  std::atomic<std::uint32_t> order;   ///< worker_order, by the parent
  std::atomic<std::uint32_t> timing;  ///< not 0: note when tasks begin and end; by the parent

  // By the worker, for the supervisor that finds it dead.
  alignas(64) std::atomic<std::uint64_t> current;  ///< {1:1, slot:16, generation:32} while user code runs
  std::atomic<std::uint64_t> element;              ///< which element of a chunk it is at; sealed: reply_seal.hpp
  std::atomic<std::uint64_t> started;              ///< when it began that, if the task is timed: ns, monotonic clock
  std::atomic<std::uint64_t> finished;             ///< tasks completed by this incarnation
  std::atomic<std::uint32_t> leaving;              ///< 1 once it has decided to exit in good order
  place_word place;                                ///< where it ran when it last began a task, or looked for one

  alignas(64) std::atomic<std::uint64_t> ring_tail;
};
static_assert(sizeof(worker_line) == 256);

/// How big a board is.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct board_sizes {
  std::size_t workers = 1;        ///< at most
  std::size_t active = 0;         ///< at first; 0: as many
  std::size_t task_slots = 1024;  ///< tasks in flight; a power of two, at most 32768
};

/// The shared memory between a parent and the workers of one crew: slots, lanes, completion rings, who sleeps, and
/// which modules define functions. A memfd of its own, so that the crews of one program cannot touch each other's.
/// Layout: docs/formats/board.md.
///
/// Thread safety: distinct objects: safe. Shared objects: safe; what it gives access to has its own rules.
/// Process safety: each process has its own board object over the same memory; forked children have neither the mapping
/// nor the file, unless asked for.
class board {
public:
  static constexpr std::size_t shared_lanes = 3;  ///< by priority, the most urgent first

  /// Makes one. Throws errc::invalid_argument for sizes out of range, errc::out_of_memory. `pages`: whether it has its
  /// memory from the start, as where the kernel would answer a lack by SIGBUS. `children`: whether forked children have
  /// it too.
  board(const board_sizes& sizes, const spin_policy& spin, memfd_pages pages = pages_without_signals(),
        mapping::inherit children = mapping::inherit::no);
  /// Maps one that was received. Throws errc::corrupted when it is none of this version.
  explicit board(unique_fd file);

  [[nodiscard]] const unique_fd& file() const noexcept { return file_; }
  [[nodiscard]] const board_sizes& sizes() const noexcept { return sizes_; }
  [[nodiscard]] spin_policy spin() const noexcept { return spin_; }

  /// How many workers there are to be at the moment: the first ones. In a worker somebody may have overwritten it.
  [[nodiscard]] std::size_t active() const noexcept { return active_->load(std::memory_order_relaxed); }
  /// How many there have ever been to be, for the parent: what lies beyond has never been touched.
  [[nodiscard]] std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  /// For the parent. Requires: from 1 to sizes().workers; no two calls at once.
  void set_active(std::size_t workers) noexcept;

  [[nodiscard]] task_slot& slot(std::size_t index) noexcept { return slots_[index]; }
  [[nodiscard]] task_times& times(std::size_t slot) noexcept { return times_[slot]; }
  [[nodiscard]] worker_line& line(std::size_t worker) noexcept { return lines_[worker]; }
  [[nodiscard]] request_cell& request(std::size_t worker, std::size_t cell) noexcept {
    return requests_[worker * requests_per_worker + cell];
  }
  [[nodiscard]] lane& lane_at(std::size_t index) noexcept { return lanes_[index]; }
  [[nodiscard]] lane& private_lane(std::size_t worker) noexcept { return lane_at(shared_lanes + worker); }
  [[nodiscard]] completion_ring ring(std::size_t worker) noexcept;
  /// For a worker: enters that into its ring, where the parent finds it. The worker rings the bell afterwards.
  void enter(std::size_t worker, completion_ring::entry what) noexcept;
  /// For the parent: a bit for each of the workers 64 × group and on that may have new entries in its ring. On a board
  /// for up to 64 workers those are all; on a larger one, the workers that have entered something since the last call.
  [[nodiscard]] std::uint64_t take_news(std::size_t group) noexcept;
  [[nodiscard]] std::size_t groups() const noexcept { return news_.size(); }
  /// Whether rings have news, where the board says so: of more than 64 workers. nullopt: each ring is to be looked at.
  [[nodiscard]] std::optional<bool> has_news() noexcept;
  [[nodiscard]] idle_set sleeping() noexcept { return idle_set(sleeping_); }
  /// One at a time, of the first 64 workers.
  [[nodiscard]] idle_set spinning() noexcept { return idle_set(spinning_); }
  /// Where the thread ran that last waited for a task.
  [[nodiscard]] place_word& caller_place() noexcept { return *caller_place_; }
  /// 1 while the parent sleeps and wants the bell rung for a completion.
  [[nodiscard]] std::atomic<std::uint32_t>& bell_armed() noexcept { return *bell_armed_; }
  [[nodiscard]] module_directory modules() noexcept { return module_directory(modules_, module_directory_size); }

  /// Writes again what a process reads when it maps the board, in case somebody has overwritten it; true if somebody
  /// had. For the parent.
  bool restore_header() noexcept;
  /// Puts fresh memory, all zero but for the header, in the place of the old one. References stay good; whoever still
  /// maps the old file keeps it for himself. For the parent. Requires: no worker lives; nobody sleeps on a word of it.
  void renew() noexcept;

  /// Wakes the worker if it sleeps; true when it did.
  bool wake(std::size_t worker) noexcept;
  /// Wakes the worker whether or not it seems to sleep. Cost: a system call.
  void wake_always(std::size_t worker) noexcept;
  /// Wakes one sleeping worker, if there is one.
  bool wake_any() noexcept;
  /// Wakes every worker that sleeps, also one that somebody took out of the set and died before waking. Cost: a system
  /// call for each.
  void wake_all() noexcept;

private:
  [[nodiscard]] ring_news news() noexcept { return ring_news(news_); }
  [[nodiscard]] std::atomic<std::uint32_t>* wake_word_of(std::size_t worker) noexcept;

  void attach();
  void replace_file(unique_fd other) noexcept;

  unique_fd file_;
  std::optional<kept_from_children> file_kept_;
  board_sizes sizes_;
  spin_policy spin_;
  memfd_pages pages_ = memfd_pages::when_touched;
  mapping memory_;
  std::atomic<std::uint64_t> kept_active_ = 0;          // the parent's
  std::atomic<std::size_t> used_ = 0;                   // likewise
  std::atomic<std::uint64_t>* active_ = &kept_active_;  // in a worker: what the parent wrote last
  std::size_t ring_entries_ = 0;

  std::span<task_slot> slots_;
  std::span<worker_line> lines_;
  std::span<task_times> times_;
  std::span<request_cell> requests_;
  std::vector<lane> lanes_;  // constant once made, like all that leads into the memory
  std::span<std::atomic<std::uint64_t>> rings_;
  std::span<std::atomic<std::uint64_t>> sleeping_;
  std::span<std::atomic<std::uint64_t>> spinning_;
  std::span<std::atomic<std::uint64_t>> news_;
  bool has_news_ = false;
  place_word* caller_place_ = nullptr;
  std::atomic<std::uint32_t>* bell_armed_ = nullptr;
  module_entry* modules_ = nullptr;
};

}  // namespace muster
