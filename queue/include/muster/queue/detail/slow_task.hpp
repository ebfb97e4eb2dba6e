// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <muster/base/detail/duration.hpp>

namespace muster {

/// A task that took long.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct slow_task {
  std::string label;
  std::uint64_t task = 0;  ///< its number
  std::uint64_t elements = 1;
  std::chrono::nanoseconds time{};
  std::size_t worker = 0;
};

}  // namespace muster
