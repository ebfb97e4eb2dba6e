// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the driver's error codes mean for whoever called: to each an errc, by what can be done about it.
//
//     out_of_memory       the device has no room
//     no_device           no such device, no driver, one that is too old, or no code for such a device in this build
//     device_lost         the context is broken: it, and all that is in it, is of no use to this process any more
//     timed_out           the device did not answer in its time
//     invalid_argument    everything else: the call is wrong, or this machine does not support it
//
// Thread safety: pure functions; safe.

#include <string>
#include <string_view>

#include <cuda.h>

#include <muster/base/device.hpp>
#include <muster/base/error.hpp>

namespace muster::detail {

/// Requires: cause is not CUDA_SUCCESS.
[[nodiscard]] errc errc_of(CUresult cause) noexcept;

/// As cuda.h has it, "CUDA_ERROR_OUT_OF_MEMORY"; "an unknown error" for codes that are not listed here.
[[nodiscard]] std::string_view name_of(CUresult cause) noexcept;

/// Whose context this thread's calls are made in from now on, for their messages: cuda_device::scope says so. Returns
/// which one it was before; the host where none was said.
device exchange_called_device(device now) noexcept;

/// Throws errc_of(cause) with the text "NAME(ARGUMENTS) on DEVICE failed in process PID: NUMBER, CAUSE: WHAT TO DO",
/// without "on DEVICE" where that is not known. A task of a pool that ends with errc::device_lost has its worker
/// replaced.
[[noreturn]] void throw_cuda_error(CUresult cause, std::string_view name, const std::string& arguments);

}  // namespace muster::detail
