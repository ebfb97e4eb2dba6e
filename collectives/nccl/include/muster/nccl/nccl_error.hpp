// SPDX-License-Identifier: BSL-1.0
#pragma once

// What NCCL's error codes mean for whoever called: to each an errc, by what can be done about it.
//
//     device_lost         a call of CUDA's failed in NCCL, or NCCL itself is broken: the device may be, too
//     peer_lost           another process of the communicator failed or went away
//     out_of_memory       the system refused something: memory, descriptors, shared memory, sockets
//     invalid_argument    everything else: the call is wrong
//
// Thread safety: pure functions; safe.

#include <string>
#include <string_view>

#include <nccl.h>

#include <muster/base/error.hpp>

namespace muster::detail {

/// Requires: cause is neither ncclSuccess nor ncclInProgress.
[[nodiscard]] errc errc_of(ncclResult_t cause) noexcept;

/// As nccl.h has it, "ncclSystemError"; "an unknown error" for codes that are not listed here.
[[nodiscard]] std::string_view name_of(ncclResult_t cause) noexcept;

/// Throws errc_of(cause) with the text "NAME(ARGUMENTS) failed in process PID: NUMBER, CAUSE (WHAT NCCL SAYS): WHAT TO
/// DO".
[[noreturn]] void throw_nccl_error(ncclResult_t cause, std::string_view name, const std::string& arguments,
                                   std::string_view says);

}  // namespace muster::detail
