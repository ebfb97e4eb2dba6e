// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace muster::test {

/// The kernel's flags ("dd": not dumped, "dc": not inherited; each with a blank before and behind it) of every mapping
/// of this process whose file's name has `name` in it.
[[nodiscard]] inline std::vector<std::string> flags_of_mappings(std::string_view name) {
  constexpr std::string_view key = "VmFlags:";
  std::vector<std::string> found;
  std::ifstream lines("/proc/self/smaps");
  bool is_it = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find('-') < line.find(' ')) is_it = line.find(name) != std::string::npos;  // a mapping's first line
    if (is_it && line.starts_with(key)) found.push_back(line.substr(key.size()) + ' ');
  }
  return found;
}

/// From now on this process ends by a signal when it writes to a mapping of a file whose name has `name` in it. False
/// when there is none, or it could not be protected.
[[nodiscard]] inline bool forbid_writing_to(std::string_view name) {
  std::ifstream lines("/proc/self/maps");
  bool is_done = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(name) == std::string::npos) continue;
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): /proc writes it as a number
    if (::mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ) != 0) return false;
    is_done = true;
  }
  return is_done;
}

}  // namespace muster::test
