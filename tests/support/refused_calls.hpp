// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cerrno>
#include <string_view>

#include <muster/base/system_call.hpp>

namespace muster::test {

/// While it lives, the checked system calls of this process with that name fail: all of them, or `count`; but not the
/// first `skipped`.
/// Requires: `name` is a literal.
///
/// Thread safety: one at a time.
class refused_calls {
public:
  explicit refused_calls(const char* name, int cause = EPERM, int count = -1, int skipped = 0) {
    name_ = name;
    cause_ = cause;
    left_ = count;
    all_ = count < 0;
    skipped_ = skipped;
    detail::refused_calls = &refuse;
  }
  refused_calls(const refused_calls&) = delete;
  refused_calls& operator=(const refused_calls&) = delete;
  ~refused_calls() { detail::refused_calls = nullptr; }

  /// How many more are to fail; -1 once one was made after the last of them.
  [[nodiscard]] static int left() { return left_; }

private:
  static int refuse(std::string_view name) {
    if (name != name_.load() || skipped_-- > 0) return 0;
    auto left = left_.load();
    while (left >= 0 && !left_.compare_exchange_weak(left, left - 1)) continue;
    return all_ || left > 0 ? cause_.load() : 0;
  }

  static inline std::atomic<const char*> name_ = "";
  static inline std::atomic<int> cause_;
  static inline std::atomic<int> left_;
  static inline std::atomic<bool> all_;
  static inline std::atomic<int> skipped_;
};

}  // namespace muster::test
