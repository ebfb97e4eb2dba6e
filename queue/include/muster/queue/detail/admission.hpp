// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/base/requirements.hpp>

namespace muster {

/// On what grounds a dispatcher accepts a task.
///
/// Thread safety: a value; safe.
enum class admission {
  limited,    ///< if there is room under max_pending
  unlimited,  ///< in any case, until close()
  reserved    ///< in any case, until stop(): there is a dispatcher::reservation for it
};

}  // namespace muster
