// SPDX-License-Identifier: BSL-1.0
#pragma once

// Runs the product's templates, written over a `Word` policy, as threads on the memory of memory.hpp, in every way in
// which they may come out.
//
// It works as follows. A thread is a function. Each of its operations is an event; to make it take one more step the
// function is run again from its start with the results of its events so far, up to the first operation that is new,
// and left by longjmp at the one after. So the source of the product runs, and a state is a plain value. From a state
// every thread that can go on takes a step, in every way (what is read, where in the modification order is written);
// states are told apart by fingerprints of the graph. Others need not take theirs first where that changes nothing: a
// store can come at once, since later events may still be ordered before it; so can any access of a location that
// nobody else will write to any more. Who writes where, and when for the last time, is learnt by going through all
// until nothing new is learnt.
//
// Threads therefore have no objects with destructors, and depend on nothing but results of operations.

#include <array>
#include <atomic>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "memory.hpp"
#include "mutation.hpp"

namespace muster::weak {

enum class step_kind : std::uint8_t { none, store, access, sleep, wake, lock, bell, death };
enum class life : std::uint8_t { runs, ended, killed };

/// Where a thread is.
struct thread_state {
  life how = life::runs;
  step_kind next = step_kind::none;  // what it is about to do; none: not known yet
  std::uint8_t next_of = nobody;     // of which location or thread
  std::uint8_t asleep_on = nobody;   // location
};

struct kernel_object {
  std::uint8_t count = 0;  // lock: held; bell: was rung
  vector_clock knows;
};

struct state {
  memory shared;
  std::array<thread_state, most_threads> threads{};
  std::array<std::uint64_t, most_notes> notes{};
  kernel_object lock;
  kernel_object bell;
  std::uint8_t deaths_left = 0;
};

/// The threads, and what must hold at each end.
struct scenario {
  std::string name;
  std::vector<std::function<void()>> threads;
  std::uint32_t may_sleep = 0;  ///< set of threads of which it is no failure that they sleep at the end
  std::uint32_t may_die = 0;    ///< set of threads of which one may be killed at any step
  std::function<void(state&)> prepare = [](state&) {};
  std::function<const char*(const state&)> check = [](const state&) -> const char* { return nullptr; };
};

struct verdict {
  std::size_t states = 0;
  std::size_t ends = 0;
  std::string failure;  ///< empty: none
  std::string trace;    ///< how it came about: the events of each thread
};

/// The running thread, as its operations see it.
class execution {
public:
  execution(state& on, std::size_t thread, std::size_t way, const mutation& weak,
            std::map<spot, std::memory_order>* seen)
      : state_(on), thread_(thread), way_(way), weak_(weak), seen_(seen) {}

  /// Takes a step.
  void take(const std::function<void()>& body);
  [[nodiscard]] std::size_t ways() const { return ways_; }
  [[nodiscard]] bool is_consistent() const { return is_consistent_; }
  [[nodiscard]] const char* failure() const { return failure_; }

  site at(site where) { return std::exchange(site_, where); }
  std::uint64_t load(std::uint8_t location, part of, std::memory_order order);
  void store(std::uint8_t location, part of, std::uint64_t value, std::memory_order order);
  std::uint64_t modify(part of, request what);

  std::uint64_t read_cell(std::size_t cell);
  void write_cell(std::size_t cell, std::uint64_t value);
  void count(std::size_t index);
  [[noreturn]] void fail(const char* why);

  /// Returns false when the word holds something else; else after it was woken.
  bool futex_wait(std::uint8_t location, std::uint64_t expected);
  void futex_wake(std::uint8_t location);
  void lock();
  void unlock();
  void ring();
  void await_bell();
  void await_death(std::size_t of);

  static execution*& current() {
    static execution* running = nullptr;  // one at a time: the checker is single-threaded
    return running;
  }

private:
  template <class F>
  std::uint64_t perform(step_kind kind, std::uint8_t of, F operation);
  template <class F>
  std::uint64_t record(F operation);
  std::memory_order order_at(const spot& where, std::memory_order order);
  std::uint64_t taken(const outcome& how);
  bool run_until_left(const std::function<void()>& body);

  state& state_;
  const std::size_t thread_;
  const std::size_t way_;
  const mutation& weak_;
  std::map<spot, std::memory_order>* seen_;
  std::jmp_buf out_{};
  site site_ = site::any;
  std::size_t position_ = 0;
  std::size_t recorded_ = 0;
  bool may_step_ = true;
  std::size_t ways_ = 1;
  bool is_consistent_ = true;
  const char* failure_ = nullptr;
};

inline execution& now() { return *execution::current(); }

/// What stands for std::atomic.
class word {
public:
  constexpr word() = default;
  constexpr word(std::size_t location, part of) : location_(static_cast<std::uint8_t>(location)), part_(of) {}

  [[nodiscard]] std::uint8_t location() const { return location_; }

  [[nodiscard]] std::uint64_t load(std::memory_order order) const { return now().load(location_, part_, order); }
  void store(std::uint64_t value, std::memory_order order) { now().store(location_, part_, value, order); }
  std::uint64_t exchange(std::uint64_t value, std::memory_order order) {
    return modify(change::exchange, value, order);
  }
  std::uint64_t fetch_or(std::uint64_t bits, std::memory_order order) { return modify(change::set_bits, bits, order); }
  std::uint64_t fetch_and(std::uint64_t bits, std::memory_order order) {
    return modify(change::clear_bits, bits, order);
  }
  bool compare_exchange_strong(std::uint64_t& expected, std::uint64_t value, std::memory_order order,
                               std::memory_order on_failure) {
    const auto wanted = expected;
    expected = now().modify(part_, {.location = location_,
                                    .order = order,
                                    .on_failure = on_failure,
                                    .how = change::compare,
                                    .operand = value,
                                    .expected = wanted});
    return expected == wanted;
  }
  /// Does not fail without a reason.
  bool compare_exchange_weak(std::uint64_t& expected, std::uint64_t value, std::memory_order order,
                             std::memory_order on_failure) {
    return compare_exchange_strong(expected, value, order, on_failure);
  }

private:
  std::uint64_t modify(change how, std::uint64_t operand, std::memory_order order) {
    return now().modify(part_, {.location = location_, .order = order, .how = how, .operand = operand});
  }

  std::uint8_t location_ = nobody;
  part part_ = part::slot;
};

/// A datum that is no atomic: accesses that race are a failure.
class plain {
public:
  constexpr explicit plain(std::size_t cell) : cell_(cell) {}
  [[nodiscard]] std::uint64_t read() const { return now().read_cell(cell_); }
  void write(std::uint64_t value) const { now().write_cell(cell_, value); }

private:
  std::size_t cell_;
};

/// When each thread of a scenario writes to each location for the last time, or tries to, as far as it is known.
using last_writes = std::array<std::array<std::uint8_t, most_locations>, most_threads>;

/// How to go through it.
struct options {
  mutation weak{};
  std::map<spot, std::memory_order>* seen = nullptr;  ///< gets the operations that were met, with their orders
  last_writes* known = nullptr;                       ///< of the same scenario, from before; gets what is learnt
  bool in_any_order = false;                          ///< also orders that change nothing: slower, the same ends
  std::size_t most_states = 3'000'000;
};

/// Goes through everything that can happen.
verdict explore(const scenario& what, const options& how = {});

}  // namespace muster::weak
