// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/base/requirements.hpp>

#include <sched.h>

#include <cstddef>

#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

namespace muster {

/// The processor on which the calling thread runs. It may run on another one by the time the caller uses the answer.
///
/// Thread safety: safe.
/// Cost: one load where the C library has registered the thread with the kernel (restartable sequences: glibc 2.35 and
/// later, unless switched off); else a call of some 20 ns.
[[nodiscard]] inline unsigned current_cpu() noexcept {
#if defined(RSEQ_SIG)
  if (__rseq_size != 0) {
    const auto* const area = static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset;
    return *reinterpret_cast<const volatile __u32*>(area + offsetof(struct rseq, cpu_id));  // the kernel writes it
  }
#endif
  const int found = ::sched_getcpu();
  return found < 0 ? 0 : static_cast<unsigned>(found);
}

}  // namespace muster
