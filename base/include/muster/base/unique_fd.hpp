// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <unistd.h>

#include <utility>

#include <muster/base/requirements.hpp>

namespace muster {

/// Owns a file descriptor and closes it.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Process safety: a forked child inherits the number, not the ownership: it should exec or _exit.
class unique_fd {
public:
  unique_fd() noexcept = default;
  /// Takes ownership of descriptor `number`. A negative number: owns nothing.
  explicit unique_fd(int number) noexcept : number_(number) {}
  /// Takes the descriptor of `other`, which owns nothing afterwards.
  unique_fd(unique_fd&& other) noexcept : number_(other.release()) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    unique_fd moved(std::move(other));
    moved.swap(*this);
    return *this;
  }
  ~unique_fd() {
    if (number_ >= 0) ::close(number_);
  }

  /// Returns the number of the descriptor; negative when this object owns none.
  [[nodiscard]] int get() const noexcept { return number_; }
  [[nodiscard]] explicit operator bool() const noexcept { return number_ >= 0; }

  /// Gives up the descriptor without closing it.
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }
  /// Closes the descriptor, if this object owns one.
  void reset() noexcept { unique_fd().swap(*this); }
  void swap(unique_fd& other) noexcept { std::swap(number_, other.number_); }

private:
  int number_ = -1;
};

}  // namespace muster
