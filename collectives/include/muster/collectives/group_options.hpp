// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <muster/base/detail/duration.hpp>

namespace muster {

/// How a group is made; the same for all its ranks.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct group_options {
  /// How long an operation waits for the other ranks, unless its call says otherwise: for all of them together, from
  /// when the first of them was waited for, and once more where it takes another exchange (group_traffic::exchanges).
  /// At most a year.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  /// Up to so many bytes of a rank's contribution are copied through the group's own memory, which takes one exchange;
  /// more is read and written in place, which takes two. Each rank has room for two such contributions.
  std::size_t inline_bytes = 4096;
  /// How long a rank looks before it sleeps; where there are more ranks than processors it lets others run between its
  /// looks. Nothing: what spin_policy::of_process() finds.
  std::optional<std::chrono::nanoseconds> spin = {};
  /// Elements on devices are combined in the order of ranks, to the bits that the host gives, also where devices do it
  /// directly: that takes up to twice the time and memory for a copy of the elements. Otherwise floating-point numbers
  /// are combined there in the transport's order, which is the same for all ranks.
  bool is_ordered_on_devices = false;
};

/// How a group's collectives over tensors on devices go.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct device_way {
  bool is_direct = false;  ///< from device to device; else by way of the host
  std::string how;         ///< "directly, by NCCL 2.28.9 on cuda:0", or why not
};

/// How one operation is called.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct call_options {
  /// Instead of the group's.
  std::optional<std::chrono::nanoseconds> timeout = {};
};

/// What a rank's collectives have cost so far; of asynchronous ones, those that have ended and were waited for.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct group_traffic {
  std::uint64_t calls = 0;          ///< collectives
  std::uint64_t exchanges = 0;      ///< how often all have waited for one another: 1 or 2 a call
  std::uint64_t words_looked = 0;   ///< of other ranks, in these exchanges: each a cache line that must come here
  std::uint64_t bytes_read = 0;     ///< of tensors and slots, one's own included
  std::uint64_t bytes_written = 0;  ///< likewise
};

}  // namespace muster
