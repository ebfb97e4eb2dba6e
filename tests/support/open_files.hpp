// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <muster/base/text.hpp>

namespace muster::test {

/// How many descriptors of the process lead to files with that in their names, as /proc says; 0: of this process.
[[nodiscard]] inline std::size_t count_open(std::string_view name, pid_t pid = 0) {
  const auto folder = pid == 0 ? std::string("/proc/self/fd") : text("/proc/", pid, "/fd");
  std::size_t count = 0;
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    std::error_code closed;  // meanwhile
    if (std::filesystem::read_symlink(each.path(), closed).native().find(name) != std::string::npos) ++count;
  }
  return count;
}

}  // namespace muster::test
