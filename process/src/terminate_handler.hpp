// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace muster::detail {

/// From now on this process says over the control socket why std::terminate was called (an exception that left a thread
/// or a noexcept function, with its type and text), and then ends as it would have ended without. A handler that the
/// program has installed before stays, and nothing is said then.
/// Requires: called once.
void report_terminate(int control);

}  // namespace muster::detail
