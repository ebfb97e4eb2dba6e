// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <string_view>

#include <muster/base/system_call.hpp>

namespace muster::test {

/// While it lives, the first thread that makes the checked system call with that name stands before it until it is let
/// go: as if it had been forked, or killed, there.
/// Requires: `name` is a literal; no refused_calls meanwhile.
///
/// Thread safety: one at a time.
class held_up_call {
public:
  explicit held_up_call(const char* name) {
    name_ = name;
    state_ = awaited;
    detail::refused_calls = &hold;
  }
  held_up_call(const held_up_call&) = delete;
  held_up_call& operator=(const held_up_call&) = delete;
  ~held_up_call() {
    let_go();
    detail::refused_calls = nullptr;
  }

  /// Waits until a thread stands there.
  static void wait() { state_.wait(awaited); }
  static void let_go() {
    state_ = passed;
    state_.notify_all();
  }

private:
  enum state { awaited, there, passed };

  static int hold(std::string_view name) {
    auto found = awaited;
    if (name != name_.load() || !state_.compare_exchange_strong(found, there)) return 0;
    state_.notify_all();
    state_.wait(there);
    return 0;
  }

  static inline std::atomic<const char*> name_ = "";
  static inline std::atomic<state> state_ = passed;
};

}  // namespace muster::test
