// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

#include <muster/base/unique_fd.hpp>

namespace muster {

/// Whether a file's pages are there from the start, or each from when it is touched: where the kernel never overcommits
/// (never_overcommits()) a page that it lacks is a signal then, SIGBUS.
enum class memfd_pages { when_touched, at_once };

/// at_once where the kernel never overcommits, else when_touched: for what is written to without asking.
/// Thread safety: safe.
[[nodiscard]] memfd_pages pages_without_signals();

/// Makes an anonymous shared-memory file of `bytes` zero bytes that nobody can shrink or grow.
///
/// It has no name anywhere, takes memory only for the pages that are touched, unless `pages` says otherwise, is freed
/// with its last descriptor and mapping however the processes die, is not limited by the size of /dev/shm, and cannot
/// be executed (where the kernel knows MFD_NOEXEC_SEAL). `label` shows up in /proc/PID/maps. Throws muster::error:
/// EMFILE when descriptors run out; errc::out_of_memory when RLIMIT_FSIZE is below `bytes` (the kernel would answer
/// with SIGXFSZ), and when there is no memory for pages that are to be there at once. Thread safety: safe.
[[nodiscard]] unique_fd make_memfd(const char* label, std::size_t bytes, memfd_pages pages = memfd_pages::when_touched);

}  // namespace muster
