// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <filesystem>

#include <muster/base/cpu_list.hpp>

namespace muster {

/// How many processors this process may keep busy: the smaller of process_cpus() and its control group's CPU quota
/// (every ancestor counts), at least 1. A quota of 1.5 processors counts as 1: spinning burns quota. Which thread asks
/// makes no difference.
///
/// `system_root` is the root of the file system; a test passes a made-up one.
/// Thread safety: safe.
/// Cost: reads a few files of /proc and /sys, about 0.1 ms.
[[nodiscard]] unsigned effective_cpus(const std::filesystem::path& system_root = "/");
/// As effective_cpus(), of these processors: effective_cpus_of(allowed_cpus()) is how many the calling thread may use.
[[nodiscard]] unsigned effective_cpus_of(const cpu_list& allowed, const std::filesystem::path& system_root = "/");

}  // namespace muster
