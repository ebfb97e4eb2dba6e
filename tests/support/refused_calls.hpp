// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cerrno>
#include <string_view>

#include <muster/base/system_call.hpp>

namespace muster::test {

/// While it lives, the checked system calls of this process with that name fail: all of them, or the next `count`.
/// Requires: `name` is a literal.
///
/// Thread safety: one at a time.
class refused_calls {
public:
  explicit refused_calls(const char* name, int cause = EPERM, int count = -1) {
    name_ = name;
    cause_ = cause;
    left_ = count;
    detail::refused_calls = &refuse;
  }
  refused_calls(const refused_calls&) = delete;
  refused_calls& operator=(const refused_calls&) = delete;
  ~refused_calls() { detail::refused_calls = nullptr; }

private:
  static int refuse(std::string_view name) { return name == name_.load() && left_-- != 0 ? cause_.load() : 0; }

  static inline std::atomic<const char*> name_ = "";
  static inline std::atomic<int> cause_;
  static inline std::atomic<int> left_;
};

}  // namespace muster::test
