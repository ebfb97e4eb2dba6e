// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/base/requirements.hpp>

namespace muster {

/// What happens to a task that would be one too many.
///
/// Thread safety: a value.
enum class overflow_policy {
  block,        ///< the call waits for room, at most `overflow_wait`, then throws errc::overflow
  throw_error,  ///< the call throws errc::overflow
  fail_task     ///< the task fails with errc::overflow
};

}  // namespace muster
