// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>

#include <muster/base/requirements.hpp>

namespace muster {

/// How far the memory that a process uses has swung lately: between the most and the least bytes that it has used at
/// once in the present period and the one before. A period is `period` releases, its own and of others' memory.
///
/// What a process keeps warm is measured by this and not by what it frees: a process that only frees what others have
/// allocated has a swing of 0.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class run_demand {
public:
  static constexpr std::size_t period = 256;

  void take(std::size_t bytes) noexcept {
    used_ += bytes;
    present_.most = std::max(present_.most, used_);
  }
  /// Requires: that much was taken.
  void give(std::size_t bytes) noexcept {
    used_ -= bytes;
    present_.least = std::min(present_.least, used_);
    count_release();
  }
  /// Counts a release of memory that was not taken.
  void count_release() noexcept {
    if (++releases_ < period) return;
    releases_ = 0;
    before_ = present_;
    present_ = {used_, used_};
  }
  /// Forgets what has been.
  void reset() noexcept {
    releases_ = 0;
    before_ = present_ = {used_, used_};
  }

  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] std::size_t swing() const noexcept {
    return std::max(before_.most, present_.most) - std::min(before_.least, present_.least);
  }

private:
  struct range {
    std::size_t most = 0;
    std::size_t least = 0;
  };

  std::size_t used_ = 0;
  std::size_t releases_ = 0;
  range before_;
  range present_;
};

}  // namespace muster
