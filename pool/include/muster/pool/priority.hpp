// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster {

/// Which of the tasks that wait comes first. Every 16th time a worker looks, the least urgent come first, so that none
/// waits for ever; and a task that runs is not interrupted.
///
/// Thread safety: a value; safe.
enum class priority : std::uint8_t { high, normal, low };

}  // namespace muster
