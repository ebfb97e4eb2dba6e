// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <optional>

#include <muster/base/detail/duration.hpp>

namespace muster {

/// How a queue between processes is made.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct queue_options {
  /// Encoded messages of up to so many bytes lie in the queue itself; longer ones take a block of the arena each, 64
  /// KiB or more. 0: enough for types that are nothing but their bytes, 240 for others. At most 1 GiB less 16.
  std::size_t inline_bytes = 0;
  /// How long one looks before one sleeps. Nothing: what spin_policy::of_process() finds.
  std::optional<std::chrono::nanoseconds> spin = {};
};

}  // namespace muster
