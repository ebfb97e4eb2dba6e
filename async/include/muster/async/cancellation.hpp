// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster {

/// How far a cancellation may go when a worker has begun the task. One that none has begun is withdrawn in any case,
/// and has had no effect then.
///
/// Thread safety: a value; safe.
enum class cancellation : std::uint8_t {
  withdraw,  ///< no further: the task goes on
  ask,       ///< the task is asked to stop (this_task::stop_requested()), and may go on
  kill       ///< its worker, which has nothing else, is killed and replaced; threads are asked, maps given up
};

}  // namespace muster
