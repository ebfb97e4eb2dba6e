// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <utility>

#include <muster/base/detail/duration.hpp>

namespace muster::detail {

/// How long a stream waits for a result before it asks an input that may make it wait.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class input_pace {
public:
  /// What takes longer is slow.
  static constexpr std::chrono::nanoseconds quick = std::chrono::microseconds(100);

  /// How long to wait for a result, where there is to be one, before the input is asked again: nothing, if the last
  /// element was quick; else as long as it took, so that the input is halved in speed at most.
  [[nodiscard]] std::chrono::nanoseconds patience() const noexcept { return patience_; }

  /// An element took so long.
  void observe(std::chrono::nanoseconds took) noexcept {
    const bool first = std::exchange(first_, false);
    if (took > quick) {
      patience_ = took;
    } else if (!first) {  // of one element nothing is known yet
      patience_ = patience_.zero();
    }
  }

private:
  bool first_ = true;
  std::chrono::nanoseconds patience_ = std::chrono::milliseconds(1);
};

}  // namespace muster::detail
