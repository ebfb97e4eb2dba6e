// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

#include <muster/base/unique_fd.hpp>

namespace muster {

/// Makes an anonymous shared-memory file of `bytes` zero bytes that nobody can shrink or grow.
///
/// It has no name anywhere, takes memory only for the pages that are touched, is freed with its last descriptor and
/// mapping however the processes die, is not limited by the size of /dev/shm, and cannot be executed (where the
/// kernel knows MFD_NOEXEC_SEAL). `label` shows up in /proc/PID/maps.
/// Throws muster::error: EMFILE when descriptors run out; errc::out_of_memory when RLIMIT_FSIZE is below `bytes`
/// (the kernel would answer with SIGXFSZ).
/// Thread safety: safe.
[[nodiscard]] unique_fd make_memfd(const char* label, std::size_t bytes);

}  // namespace muster
