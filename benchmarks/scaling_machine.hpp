// SPDX-License-Identifier: BSL-1.0
#pragma once

// A machine of many cores that exists in the imagination of this program only: it tells how long code that is written
// over a `Word` policy would take there.
//
// It works as follows. Every core runs one *fiber*, an ordinary function on a stack of its own, and has a clock. An
// operation on a shared word first lets all fibers go ahead whose clocks are behind; so operations happen in the order
// of their times, and a run is the same each time. What an operation costs depends on where the word's cache line is:
//
//   in the core's own cache           `hit`, or `locked` for a read-modify-write
//   in another's                      a transfer, by distance; to write, all copies go, so the farthest counts
//   being transferred just now        the same, once that has ended: a line is a server with one queue
//
// A store does not wait for its line; the next read-modify-write of the same core does. A read from a line that several
// have read occupies it for `shared_read` only. A core that spins is not simulated look by look: as long as nobody
// writes to a line that it looks at, it has its own copies, costs nobody anything, and is skipped to the next write.

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "scaling_figures.hpp"

namespace scaling {

/// How long things take on the machine. The transfers are published figures of one-way latencies between cores.
struct machine_costs {
  nanoseconds hit{1};
  nanoseconds locked{6};
  nanoseconds same_cluster{20};
  nanoseconds same_socket{50};
  nanoseconds other_socket{115};
  nanoseconds shared_read{5};
  nanoseconds invalidation{1};  ///< for each copy beyond the first
  nanoseconds pause{20};
  nanoseconds wake_call{1000};  ///< to the waker
  nanoseconds wake_up{3000};    ///< until the sleeper runs
  nanoseconds sleep_call{300};
  std::size_t cluster_cores = 16;
  std::size_t socket_cores = 64;
};

/// A set of cores.
class core_set {
public:
  static constexpr std::size_t most = 320;

  void insert(std::size_t core) { words_[core / 64] |= std::uint64_t{1} << (core % 64); }
  void assign(std::size_t core) {
    words_ = {};
    insert(core);
  }
  [[nodiscard]] bool contains(std::size_t core) const { return (words_[core / 64] >> (core % 64) & 1U) != 0; }
  template <class F>
  void for_each(F f) const {
    for (std::size_t index = 0; index < words_.size(); ++index) {
      for (auto word = words_[index]; word != 0; word &= word - 1) {
        f(index * 64 + static_cast<std::size_t>(std::countr_zero(word)));
      }
    }
  }

private:
  std::array<std::uint64_t, most / 64> words_{};
};

struct cache_line {
  static constexpr std::size_t nobody = core_set::most;

  line_kind kind{};
  core_set holders;            // who has a copy
  std::size_t owner = nobody;  // who may write; then he is the only holder
  nanoseconds free_at{0};      // when the transfer under way ends
};

class simulated_word;

/// The cores, their clocks, the lines.
///
/// Thread safety: an object belongs to one thread, and so do the words that it made.
class machine {
public:
  using word = simulated_word;

  explicit machine(const machine_costs& costs) : costs_(costs) {}
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;
  ~machine() = default;

  /// Words on lines of their own, so many to a line. All lines are with core 0 at first.
  std::span<word> make_words(line_kind kind, std::size_t count, std::size_t per_line);

  /// Where a core is: cores whose places divided by `cluster_cores` are the same are close.
  struct job {
    std::size_t place = 0;
    std::function<void()> body;
  };
  /// Runs each job on a core, to its end. Throws std::logic_error when all of them sleep.
  void run(std::vector<job> jobs);

  // For the jobs.
  [[nodiscard]] nanoseconds now() const { return running_->now; }
  void spend(nanoseconds time) { running_->now += time; }
  void work(nanoseconds time) { spend(time); }
  void pause(std::size_t times) { spend(costs_.pause * static_cast<std::int64_t>(times)); }
  template <class Done>
  bool spin_until(nanoseconds budget, Done done);
  void prefetch_for_write(word& what);
  void sleep_on(word& what, std::uint64_t expected);
  void wake(word& what, std::size_t count);
  [[nodiscard]] event_counts events() const { return running_->events; }

  // For words.
  enum class access { read, store, change };
  void touch(cache_line& line, access how);
  void count_failure(const cache_line& line) { ++running_->events.of(line.kind).failed; }

private:
  struct fiber {
    std::size_t core = 0;
    job what;
    nanoseconds now{0};
    nanoseconds drained{0};  // when its last store has reached its line
    event_counts events;
    std::vector<cache_line*> watched;  // the lines it looked at since it began to watch
    bool watching = false;             // is skipped until one of them is written to
    bool collecting = false;           // notes lines for that
    bool started = false;
    std::uint64_t turn = 0;  // of its newest entry among the ready ones
    std::vector<std::byte> stack;
    ucontext_t first{};
    jmp_buf place{};
  };
  struct ready {
    nanoseconds when;
    std::uint64_t turn;
    fiber* who;
    bool operator<(const ready& other) const {  // the earliest comes first
      return when != other.when ? when > other.when : turn > other.turn;
    }
  };

  static void begin();
  static machine*& current();

  void make_ready(fiber& who, nanoseconds when);
  void drop_outdated();
  [[nodiscard]] bool somebody_is_earlier();
  void go_on_with_the_next();
  void enter(fiber& next);
  void wait_for_turn();
  void give_way();

  [[nodiscard]] nanoseconds distance(std::size_t from, std::size_t to) const;
  [[nodiscard]] nanoseconds nearest(const cache_line& line) const;
  [[nodiscard]] nanoseconds farthest(const cache_line& line) const;
  void fetch_copy(cache_line& line);
  [[nodiscard]] nanoseconds fetch_alone(cache_line& line);
  void alarm_watchers(const cache_line& line);
  void wait_for_change(nanoseconds until);

  const machine_costs costs_;
  std::deque<cache_line> lines_;
  std::deque<std::vector<word>> words_;
  std::deque<fiber> fibers_;
  std::priority_queue<ready> ready_;
  std::map<const word*, std::vector<fiber*>> sleepers_;
  fiber* running_ = nullptr;
  std::uint64_t turns_ = 0;
  jmp_buf out_{};
};

/// What stands for std::atomic<std::uint64_t> there. Memory is sequentially consistent, save that stores cost no wait.
class simulated_word {
public:
  simulated_word(machine& where, cache_line& line) : where_(&where), line_(&line) {}

  [[nodiscard]] std::uint64_t load(std::memory_order) const {
    where_->touch(*line_, machine::access::read);
    return value_;
  }
  void store(std::uint64_t desired, std::memory_order order) {
    where_->touch(*line_, order == std::memory_order_seq_cst ? machine::access::change : machine::access::store);
    value_ = desired;
  }
  std::uint64_t exchange(std::uint64_t desired, std::memory_order) { return change(desired); }
  std::uint64_t fetch_or(std::uint64_t bits, std::memory_order) {
    where_->touch(*line_, machine::access::change);
    return std::exchange(value_, value_ | bits);
  }
  std::uint64_t fetch_and(std::uint64_t bits, std::memory_order) {
    where_->touch(*line_, machine::access::change);
    return std::exchange(value_, value_ & bits);
  }
  bool compare_exchange_strong(std::uint64_t& expected, std::uint64_t desired, std::memory_order, std::memory_order) {
    where_->touch(*line_, machine::access::change);
    if (value_ == expected) {
      value_ = desired;
      return true;
    }
    where_->count_failure(*line_);
    expected = value_;
    return false;
  }
  bool compare_exchange_weak(std::uint64_t& expected, std::uint64_t desired, std::memory_order a, std::memory_order b) {
    return compare_exchange_strong(expected, desired, a, b);
  }

private:
  friend class machine;

  std::uint64_t change(std::uint64_t desired) {
    where_->touch(*line_, machine::access::change);
    return std::exchange(value_, desired);
  }

  machine* where_;
  cache_line* line_;
  std::uint64_t value_ = 0;
};

template <class Done>
bool machine::spin_until(nanoseconds budget, Done done) {
  auto& me = *running_;
  const auto end = me.now + budget;
  for (;;) {
    me.watched.clear();
    me.collecting = true;
    const bool found = done();
    me.collecting = false;
    if (found || me.now >= end) return found;
    me.now += costs_.pause;
    wait_for_change(end);
  }
}

}  // namespace scaling
