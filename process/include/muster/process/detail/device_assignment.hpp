// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <vector>

#include <muster/base/cpu_list.hpp>
#include <muster/base/device.hpp>

namespace muster {

/// What a worker that is pinned to a device gets besides what all workers get. It goes with the worker's index: a
/// replacement gets the same.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct device_assignment {
  muster::device device;                   ///< as the program names it
  std::vector<std::string> environment{};  ///< `NAME=value`, each in the place of what the program has of that name
  cpu_list cpus{};                         ///< near the device; empty: nothing is known of that
};

}  // namespace muster
