// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace muster::detail {

/// Runs this process as a worker, from handshake to exit.
[[noreturn]] void run_worker();

}  // namespace muster::detail
