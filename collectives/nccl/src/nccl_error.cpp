// SPDX-License-Identifier: BSL-1.0
#include <muster/nccl/nccl_error.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>

#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

struct known_error {
  ncclResult_t code;
  errc kind;
  std::string_view name;
  std::string_view advice;
};

constexpr std::array known = {
    known_error{ncclUnhandledCudaError, errc::device_lost, "ncclUnhandledCudaError",
                "NCCL_DEBUG=WARN shows which call of CUDA's failed; if the device is broken, start a new process"},
    known_error{ncclSystemError, errc::out_of_memory, "ncclSystemError",
                "NCCL_DEBUG=WARN shows which call failed; see that /dev/shm has room, that files may be opened, and "
                "that NCCL_SOCKET_IFNAME names an interface that there is"},
    known_error{ncclInternalError, errc::device_lost, "ncclInternalError",
                "NCCL_DEBUG=WARN shows what happened; NCCL or the driver may be broken"},
    known_error{ncclInvalidArgument, errc::invalid_argument, "ncclInvalidArgument", "the call is wrong"},
    known_error{ncclInvalidUsage, errc::invalid_argument, "ncclInvalidUsage",
                "NCCL_DEBUG=WARN shows what is wrong: several ranks on one device, or ranks of different versions"},
    known_error{ncclRemoteError, errc::peer_lost, "ncclRemoteError",
                "another rank has failed, or its process has ended: see what it says"},
};

known_error find(ncclResult_t cause) noexcept {
  const auto* const found = std::ranges::find(known, cause, &known_error::code);
  return found != known.end() ? *found
                              : known_error{cause, errc::invalid_argument, "an unknown error", "the call is wrong"};
}

}  // namespace

errc errc_of(ncclResult_t cause) noexcept { return find(cause).kind; }

std::string_view name_of(ncclResult_t cause) noexcept { return find(cause).name; }

void throw_nccl_error(ncclResult_t cause, std::string_view name, const std::string& arguments, std::string_view says) {
  const auto found = find(cause);
  throw error(found.kind, text(name, '(', arguments, ") failed in process ", ::getpid(), ": ", static_cast<int>(cause),
                               ", ", found.name, " (", says, "): ", found.advice));
}

}  // namespace muster::detail
