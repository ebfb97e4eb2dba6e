// SPDX-License-Identifier: BSL-1.0
#pragma once

// Assertions: a condition that only a bug in muster can break. They stay on in every build: each guards shared
// memory, where going on with a broken invariant would harm other processes.
// A mistake of the caller is not asserted but thrown as muster::error; an expected outcome is returned.
//
// Thread safety: MUSTER_ASSERT may be used from any thread.

namespace muster::detail {

/// Prints the broken condition with its place and process to stderr and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace muster::detail

#define MUSTER_ASSERT(condition)      \
  ((condition) ? static_cast<void>(0) \
               : ::muster::detail::assertion_failed(#condition, __FILE__, __LINE__))  // NOLINT(hicpp-no-array-decay)
