// SPDX-License-Identifier: BSL-1.0
#pragma once

// An explicit-state model checker for code that is written over a `Word` policy.
//
// It works as follows. A *process* is a sequence of *bodies*, functions from one checkpoint to the next. Every
// operation of a body on shared words is a step at which any other process may come in between. A state holds the
// words, the private data, and for each process where it is: the values that its local variables had at the last
// checkpoint, and the results of the operations since. To make a process take one more step its body is run again from
// the checkpoint with those results, up to the first operation that is new; then it is left by longjmp. So the very
// source that runs in the product runs here, and a state is a plain value that can be compared and kept.
//
// Bodies therefore have no objects with destructors, and depend on nothing but locals, results and (while they hold the
// lock) private data. Memory is sequentially consistent here.

#include <array>
#include <atomic>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace muster::model {

inline constexpr std::size_t most_words = 40;
inline constexpr std::size_t most_steps = 28;  // operations of one body
inline constexpr std::uint8_t nobody = 0xff;

/// Where one process is. A plain value: all bytes count.
template <class Locals>
struct process_state {
  Locals locals{};
  std::array<std::uint64_t, most_steps> results{};  // of the operations since the checkpoint
  std::uint8_t steps = 0;
  std::uint8_t asleep_on = nobody;  // which word
  std::uint8_t gone = 0;            // killed, or at its end
  std::array<std::uint8_t, 5> padding{};
};

/// The operations of the process that is being run.
class execution {
public:
  /// Runs one operation, or gives its result from before.
  template <class F>
  std::uint64_t perform(F operation) {
    if (position_ < recorded_) return results_[position_++];
    if (done_) std::longjmp(out_, left);
    const auto result = static_cast<std::uint64_t>(operation());
    if (blocked_) std::longjmp(out_, stuck);
    results_[position_++] = result;
    done_ = true;
    return result;
  }
  /// To be called inside an operation: it cannot be done now.
  void block() { blocked_ = true; }

  static constexpr int left = 1;
  static constexpr int stuck = 2;

  std::jmp_buf out_;
  std::uint64_t* words_ = nullptr;
  std::uint64_t* results_ = nullptr;
  std::size_t recorded_ = 0;
  std::size_t position_ = 0;
  bool done_ = false;
  bool blocked_ = false;

  static execution*& current() {
    static execution* running = nullptr;  // one at a time: the checker is single-threaded
    return running;
  }
};

/// What stands for std::atomic<std::uint64_t>: each operation is one step. Orders are taken as sequentially consistent.
class word {
public:
  constexpr word() = default;
  explicit constexpr word(std::size_t index) : index_(index) {}

  [[nodiscard]] std::size_t index() const { return index_; }

  [[nodiscard]] std::uint64_t load(std::memory_order) const {
    return now().perform([&] { return value(); });
  }
  void store(std::uint64_t desired, std::memory_order) {
    now().perform([&] { return value() = desired; });
  }
  std::uint64_t exchange(std::uint64_t desired, std::memory_order) {
    return change([&](std::uint64_t) { return desired; });
  }
  std::uint64_t fetch_or(std::uint64_t bits, std::memory_order) {
    return change([&](std::uint64_t before) { return before | bits; });
  }
  std::uint64_t fetch_and(std::uint64_t bits, std::memory_order) {
    return change([&](std::uint64_t before) { return before & bits; });
  }
  bool compare_exchange_strong(std::uint64_t& expected, std::uint64_t desired, std::memory_order, std::memory_order) {
    const auto wanted = expected;
    const auto before = change([&](std::uint64_t found) { return found == wanted ? desired : found; });
    expected = before;
    return before == wanted;
  }
  bool compare_exchange_weak(std::uint64_t& expected, std::uint64_t desired, std::memory_order a, std::memory_order b) {
    return compare_exchange_strong(expected, desired, a, b);
  }

private:
  static execution& now() { return *execution::current(); }
  [[nodiscard]] std::uint64_t& value() const { return now().words_[index_]; }
  template <class F>
  std::uint64_t change(F how) {
    return now().perform([&] {
      const auto before = value();
      value() = how(before);
      return before;
    });
  }

  std::size_t index_ = 0;
};

/// What an exploration found.
struct verdict {
  std::size_t states = 0;
  std::size_t ends = 0;  ///< in which nothing can happen any more
  std::string failure;   ///< empty: none
};

/// 128 bits of a state: two states with the same are taken for one.
struct fingerprint {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const fingerprint&, const fingerprint&) = default;
};
struct fingerprint_hash {
  std::size_t operator()(const fingerprint& of) const { return of.low; }
};
[[nodiscard]] fingerprint fingerprint_of(const void* bytes, std::size_t size);

/// Visits every state that can be reached from `first`.
///
/// `successors(state, emit)` calls emit(next) for each, and returns whether anything but a crash can happen next;
/// `check(state, is_end)` says what is wrong with a state, or nothing. `State` is a plain value without padding.
template <class State, class Successors, class Check>
verdict explore(const State& first, std::size_t most_states, Successors successors, Check check) {
  static_assert(std::has_unique_object_representations_v<State>);
  verdict found;
  std::unordered_set<fingerprint, fingerprint_hash> seen;
  std::vector<State> open{first};
  seen.insert(fingerprint_of(&first, sizeof first));
  while (!open.empty() && found.failure.empty()) {
    const State state = open.back();
    open.pop_back();
    if (++found.states > most_states) found.failure = "too many states";
    const bool is_end = !successors(state, [&](const State& next) {
      if (seen.insert(fingerprint_of(&next, sizeof next)).second) open.push_back(next);
    });
    found.ends += is_end ? 1 : 0;
    if (auto wrong = check(state, is_end); !wrong.empty()) found.failure = std::move(wrong);
  }
  return found;
}

}  // namespace muster::model
