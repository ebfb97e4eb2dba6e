// SPDX-License-Identifier: BSL-1.0
#pragma once

// The memory of C++20 as an execution graph that grows event by event.
//
// Each location has a modification order. A store may be put anywhere into it that coherence leaves open, not only at
// its end; a load may read any store that coherence leaves open; a read-modify-write comes directly after what it
// reads. Happens-before is kept in vector clocks: a release store, and the read-modify-writes directly after it, hand
// the clock of the release to whoever reads them with acquire. Sequentially consistent operations must allow a total
// order that agrees with "strongly happens before" and with the coherence order ([atomics.order]); a graph that does
// not is dropped. Fences and consume are not there: the product has none.
//
// A load reads only what has been stored before in the order of exploration, so executions in which values come from
// the future of a cycle (load buffering) are left out; everything else that C++20 allows is there.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace muster::weak {

inline constexpr std::size_t most_threads = 4;
inline constexpr std::size_t most_events = 72;  // of one thread
inline constexpr std::size_t most_locations = 24;
inline constexpr std::size_t most_changes = 20;  // of one location
inline constexpr std::size_t most_cells = 12;
inline constexpr std::size_t most_notes = 8;
inline constexpr std::size_t most_ordered = 24;  // sequentially consistent operations
inline constexpr std::uint8_t nobody = 0xff;

/// How many events of each thread happen before.
struct vector_clock {
  std::array<std::uint8_t, most_threads> of{};

  void join(const vector_clock& other) {
    for (std::size_t each = 0; each < most_threads; ++each) {
      if (of[each] < other.of[each]) of[each] = other.of[each];
    }
  }
};

/// An event of a thread, counted from one; time 0: what the memory held at the beginning.
struct event_id {
  std::uint8_t thread = 0;
  std::uint8_t time = 0;
  friend bool operator==(const event_id&, const event_id&) = default;
};

/// One event. A plain value: all bytes count.
struct event {
  std::uint64_t result = 0;
  std::uint64_t written = 0;
  vector_clock released;  // what an acquire that reads this learns
  event_id read_from;
  std::uint8_t location = nobody;  // nobody: not an access of an atomic
  std::uint8_t reads = 0;
  std::uint8_t writes = 0;
  std::uint8_t might_write = 0;  // also a compare-and-swap that failed
  std::array<std::uint8_t, 6> padding{};
};

struct thread_log {
  thread_log() = default;
  thread_log(const thread_log& other) { *this = other; }
  thread_log& operator=(const thread_log& other) {  // most logs are short, and states are copied all the time
    std::copy_n(other.events.begin(), other.length, events.begin());
    knows = other.knows;
    length = other.length;
    return *this;
  }

  std::array<event, most_events> events;  // those beyond the length mean nothing
  vector_clock knows;
  std::uint8_t length = 0;
};

struct location_state {  // a plain value: all bytes count
  std::uint64_t initial = 0;
  std::array<event_id, most_changes> order{};
  vector_clock kernel;  // what whoever sleeps here next cannot miss: the wakes before
  std::uint8_t changes = 0;
  std::array<std::uint8_t, 3> padding{};
};

/// A datum that is no atomic.
struct cell_state {
  std::uint64_t value = 0;
  event_id writer;
  std::array<std::uint8_t, most_threads> read_at{};
};

/// A sequentially consistent operation, and what its thread knew before it.
struct ordered_operation {
  event_id which;
  vector_clock before;
};

struct memory {
  std::array<thread_log, most_threads> threads{};
  std::array<location_state, most_locations> locations{};
  std::array<cell_state, most_cells> cells{};
  std::array<ordered_operation, most_ordered> ordered{};
  std::uint8_t ordered_count = 0;

  [[nodiscard]] const event& at(event_id which) const { return threads[which.thread].events[which.time - 1U]; }
  /// The value at a place of a modification order; place 0 is the initial one.
  [[nodiscard]] std::uint64_t value_at(std::size_t location, std::size_t place) const;
  [[nodiscard]] std::uint64_t last_value(std::size_t location) const;
};

enum class change : std::uint8_t { exchange, set_bits, clear_bits, compare };

/// What one operation on an atomic asks for.
struct request {
  std::uint8_t location = 0;
  std::memory_order order = std::memory_order_relaxed;
  std::memory_order on_failure = std::memory_order_relaxed;
  change how = change::exchange;
  std::uint64_t operand = 0;
  std::uint64_t expected = 0;
};

/// The result of one of the ways in which an operation may come out.
struct outcome {
  std::uint64_t value = 0;    // read
  std::size_t ways = 0;       // how many there are
  bool is_consistent = true;  // false: no total order of the sequentially consistent operations allows it
};

outcome load(memory& in, std::size_t thread, const request& what, std::size_t way);
outcome store(memory& in, std::size_t thread, const request& what, std::size_t way);
outcome modify(memory& in, std::size_t thread, const request& what, std::size_t way);
/// As the kernel reads a word before it puts the thread to sleep: unordered, but no wake that came before is missed.
outcome kernel_load(memory& in, std::size_t thread, const request& what, std::size_t way);

/// An event that is no access of an atomic, so that time goes on. Returns it to be filled in.
event& mark(memory& in, std::size_t thread);

/// Access a plain datum; false when another access races with it.
bool read_cell(memory& in, std::size_t thread, std::size_t cell);
bool write_cell(memory& in, std::size_t thread, std::size_t cell, std::uint64_t value);

}  // namespace muster::weak
