// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace muster {

/// How often this process and its ancestors have forked since one of them first asked. An object that belongs to the
/// process that made it compares this with what it was then, to know whether it is in a forked child: asking the kernel
/// who one is costs a system call each time.
///
/// Forks are seen by way of pthread_atfork: not those that go past the C library.
/// Thread safety: safe.
[[nodiscard]] unsigned fork_count() noexcept;

}  // namespace muster
