// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <muster/queue/detail/outgoing_message.hpp>
#include <muster/rpc/detail/rpc_core.hpp>

namespace muster::detail {

/// Sends a request that is encoded, of a call's attempt: waits for room, within the time of the call, which ends where
/// there is none, or where its member is gone.
void push_request(rpc_core& core, outgoing_message& message, pending_call& call, const call_peer& peer,
                  std::uint32_t generation);

}  // namespace muster::detail
