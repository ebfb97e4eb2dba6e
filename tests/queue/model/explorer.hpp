// SPDX-License-Identifier: BSL-1.0
#pragma once

// Goes depth first through every state that can be reached from a first one. Why what is left out may be left out:
// docs/design/model.md.

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace muster::model {

/// 127 bits of a state's encoding: two states with the same are taken for one.
struct fingerprint {
  std::uint64_t low = 0;
  std::uint64_t high = 0;  // the lowest bit is 0
  friend bool operator==(const fingerprint&, const fingerprint&) = default;
};
[[nodiscard]] fingerprint fingerprint_of(const void* bytes, std::size_t size);

/// The states seen, 16 bytes each, and which of them lie on the path from the first state to the present one.
///
/// Thread safety: an object belongs to one thread.
class seen_states {
public:
  enum class found : std::uint8_t { nothing, left, on_path };

  seen_states() : entries_(std::size_t{1} << 16U) {}

  [[nodiscard]] found look_for(const fingerprint& of) const;
  void enter(const fingerprint& of);
  void leave(const fingerprint& of) { entry_of(of).high &= ~std::uint64_t{1}; }
  [[nodiscard]] std::size_t size() const { return size_; }

private:
  [[nodiscard]] std::size_t index_of(const fingerprint& of) const;
  fingerprint& entry_of(const fingerprint& of) { return entries_[index_of(of)]; }
  void grow();

  std::vector<fingerprint> entries_;  // a power of two; both zero: none
  std::size_t size_ = 0;
};

/// What an exploration found.
struct verdict {
  std::size_t states = 0;
  std::size_t transitions = 0;
  std::size_t ends = 0;           ///< in which nothing can happen any more
  std::uint64_t ends_digest = 0;  ///< of the ends' results, each counted once
  std::string failure;            ///< empty: none
};

/// Visits every state that can be reached from `first`.
///
/// `encode(state)` gives the bytes that tell it from others; `successors(state, emit)` calls emit(next) for each, and
/// returns whether anything but a crash can happen next; `check(state, is_end)` says what is wrong, or nothing. A path
/// that comes back to itself is a failure: something could go on for ever.
template <class State, class Encode, class Successors, class Check>
verdict explore(const State& first, std::size_t most_states, Encode encode, Successors successors, Check check) {
  struct frame {
    State state;
    fingerprint name;
    bool entered = false;
  };
  verdict result;
  seen_states seen;
  std::vector<frame> open{{first, encode(first)}};
  while (!open.empty() && result.failure.empty()) {
    const auto name = open.back().name;
    if (open.back().entered || seen.look_for(name) != seen_states::found::nothing) {
      if (open.back().entered) seen.leave(name);
      open.pop_back();
      continue;
    }
    open.back().entered = true;
    seen.enter(name);
    const State state = open.back().state;
    if (++result.states > most_states) result.failure = "too many states";
    const bool is_end = !successors(state, [&](const State& next) {
      ++result.transitions;
      const auto next_name = encode(next);
      const auto found = seen.look_for(next_name);
      if (found == seen_states::found::on_path) result.failure = "it can go on for ever";
      if (found == seen_states::found::nothing) open.push_back({next, next_name});
    });
    if (auto wrong = check(state, is_end); !wrong.empty()) result.failure = std::move(wrong);
  }
  return result;
}

}  // namespace muster::model
