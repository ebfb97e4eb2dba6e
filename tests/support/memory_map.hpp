// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace muster::test {

/// The kernel's flags ("dd": not dumped, "dc": not inherited; each with a blank before and behind it) of every mapping
/// of the process (0: this one) whose file's name has `name` in it.
[[nodiscard]] inline std::vector<std::string> flags_of_mappings(std::string_view name, pid_t pid = 0) {
  constexpr std::string_view key = "VmFlags:";
  std::vector<std::string> found;
  std::ifstream lines(pid == 0 ? std::string("/proc/self/smaps") : "/proc/" + std::to_string(pid) + "/smaps");
  bool is_it = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find('-') < line.find(' ')) is_it = line.find(name) != std::string::npos;  // a mapping's first line
    if (is_it && line.starts_with(key)) found.push_back(line.substr(key.size()) + ' ');
  }
  return found;
}

}  // namespace muster::test
