// SPDX-License-Identifier: BSL-1.0
#pragma once

// What memory there is before it is touched. Over a control group's limit the kernel answers a page fault on shared
// memory with the OOM killer, not with an error, so big requests are admitted against these figures first.

#include <cstdint>
#include <filesystem>
#include <string>

namespace muster {

/// How much memory this process can still touch, and what sets that limit.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct memory_budget {
  std::uint64_t available_bytes = UINT64_MAX;
  std::uint64_t limit_bytes = UINT64_MAX;  ///< the machine's memory, or the control group's limit if that is smaller
  std::string limited_by = "nothing";      ///< for messages: "MemAvailable", or the file that holds the limit
};

/// Looks at MemAvailable and at every control group above this process (version 1 and 2); page cache that can be
/// dropped counts as available. Where there is no /proc/meminfo (ProcSubset=pid), at the NUMA nodes of /sys, and
/// without those at sysinfo(2), which does not count page cache: so what is unknown is never taken for much. A limit of
/// a control group that cannot be read is none. `system_root` is the root of the file system; a test passes a made-up
/// one. Cost: reads a few files of /proc and /sys, about 0.1 ms. Thread safety: safe.
[[nodiscard]] memory_budget available_memory(const std::filesystem::path& system_root = "/");

/// Whether the kernel gives no page that it cannot promise (vm.overcommit_memory = 2). It answers a page fault on
/// shared memory with SIGBUS then where somebody else has taken what there was a moment ago; who populates what it has
/// claimed gets an error instead. False where the kernel does not say (ProcSubset=pid).
///
/// Thread safety: safe.
[[nodiscard]] bool never_overcommits(const std::filesystem::path& system_root = "/");

}  // namespace muster
