// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

#include <muster/base/clock.hpp>

namespace muster {

class rpc_group;

/// The call that this thread serves for an RPC group. All but stop_requested() throw errc::invalid_argument where it
/// serves none.
///
/// Thread safety: functions without state; safe.
namespace this_call {

/// Returns the membership that serves it: to call further members, and to publish.
[[nodiscard]] rpc_group group();
/// Returns the name of the member that calls.
[[nodiscard]] std::string caller();
/// Returns when the caller stops waiting.
[[nodiscard]] muster::deadline deadline();
/// Returns whether the caller does not want the result any more: it has cancelled the call, its deadline has passed, or
/// it is dead. False where no call is served.
[[nodiscard]] bool stop_requested() noexcept;

}  // namespace this_call
}  // namespace muster
