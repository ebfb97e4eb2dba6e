// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

namespace muster::detail {

/// How a stream asks an input that may make it wait: for one element at first, for twice as many each time, and for one
/// again as soon as one was slow. So what such an input has given is sent before it is asked again, and a result gets
/// its time before that too.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class input_pace {
public:
  /// What takes longer is slow.
  static constexpr std::chrono::nanoseconds quick = std::chrono::microseconds(100);

  /// How many elements to ask for.
  [[nodiscard]] std::size_t most() const noexcept { return most_; }
  /// How long to wait for a result, where there is to be one, before the input is asked again: nothing, if it is quick;
  /// else as long as the last element took, so that it is halved in speed at most.
  [[nodiscard]] std::chrono::nanoseconds patience() const noexcept { return patience_; }

  /// An element took so long.
  void observe(std::chrono::nanoseconds took) noexcept {
    const bool first = std::exchange(first_, false);
    if (took > quick) {
      patience_ = took;
      most_ = 1;
    } else if (!first) {  // of one element nothing is known yet
      patience_ = patience_.zero();
    }
  }
  /// A batch was taken, and none of it was slow.
  void grow() noexcept {
    constexpr std::size_t enough = std::size_t{1} << 20U;
    most_ = std::min(2 * most_, enough);
  }

private:
  bool first_ = true;
  std::chrono::nanoseconds patience_ = std::chrono::milliseconds(1);
  std::size_t most_ = 1;
};

}  // namespace muster::detail
