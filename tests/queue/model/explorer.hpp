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

  /// That one will be looked for soon.
  void expect(const fingerprint& of) const { __builtin_prefetch(&entries_[of.low & (entries_.size() - 1)]); }
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
/// `name(state)` tells it from others; `successors(state, list)` fills the list, and returns whether anything but a
/// crash can happen next; `check(state, is_end)` says what is wrong, or nothing. A path that comes back to itself is a
/// failure: something could go on for ever.
template <class State, class Name, class Successors, class Check>
verdict explore(const State& first, std::size_t most_states, Name name, Successors successors, Check check) {
  struct frame {
    State state;
    fingerprint name;
    bool entered = false;
  };
  verdict result;
  seen_states seen;
  std::vector<State> next;
  std::vector<fingerprint> names;
  std::vector<frame> open{{first, name(first)}};
  while (!open.empty() && result.failure.empty()) {
    const auto here = open.back().name;
    if (open.back().entered || seen.look_for(here) != seen_states::found::nothing) {
      if (open.back().entered) seen.leave(here);
      open.pop_back();
      continue;
    }
    open.back().entered = true;
    seen.enter(here);
    if (++result.states > most_states) result.failure = "too many states";
    next.clear();
    names.clear();
    const bool is_end = !successors(open.back().state, next);
    if (auto wrong = check(open.back().state, is_end); !wrong.empty()) result.failure = std::move(wrong);
    for (const auto& each : next) {
      names.push_back(name(each));
      seen.expect(names.back());
    }
    result.transitions += next.size();
    for (std::size_t each = 0; each < next.size(); ++each) {
      const auto found = seen.look_for(names[each]);
      if (found == seen_states::found::on_path) result.failure = "it can go on for ever";
      if (found == seen_states::found::nothing) open.push_back({next[each], names[each]});
    }
  }
  return result;
}

}  // namespace muster::model
