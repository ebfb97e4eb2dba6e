// SPDX-License-Identifier: BSL-1.0
#include <muster/base/memory_budget.hpp>

#include <algorithm>
#include <fstream>

#include <muster/base/cgroup.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

namespace fs = std::filesystem;

// A value of a file with lines "name 123" or "Name:   123 kB"; `otherwise` where there is none.
std::uint64_t field_of(const fs::path& file, const std::string& name, std::uint64_t otherwise) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    detail::text_reader words(line);
    std::string found;
    std::uint64_t value = 0;
    if (words >> found >> value && found == name) return value;
  }
  return otherwise;
}

// The number in a one-line file; `otherwise` where it is missing or says "max".
std::uint64_t number_in(const fs::path& file, std::uint64_t otherwise) {
  detail::text_reader in(first_line_of(file).value_or(""));
  std::uint64_t value = 0;
  return in >> value ? value : otherwise;
}

void admit(memory_budget& budget, std::uint64_t limit, std::uint64_t used, std::string limited_by) {
  budget.limit_bytes = std::min(budget.limit_bytes, limit);
  const auto free = limit - std::min(limit, used);
  if (free >= budget.available_bytes) return;
  budget.available_bytes = free;
  budget.limited_by = std::move(limited_by);
}

struct file_names {
  const char* limit;
  const char* usage;
  const char* droppable;  // in memory.stat: page cache that goes when memory is needed
};

void admit_groups(memory_budget& budget, const fs::path& system_root) {
  const cgroup group("memory", system_root);
  const file_names names = group.version() == 2
                               ? file_names{"memory.max", "memory.current", "inactive_file"}
                               : file_names{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
  for (const auto& directory : group.directories()) {
    const auto limit = number_in(directory / names.limit, UINT64_MAX);
    if (limit >= UINT64_MAX / 4) continue;  // version 1 writes "no limit" as a huge number
    const auto used = number_in(directory / names.usage, 0);
    const auto droppable = std::min(used, field_of(directory / "memory.stat", names.droppable, 0));
    admit(budget, limit, used - droppable, (directory / names.limit).string());
  }
}

}  // namespace

memory_budget available_memory(const fs::path& system_root) {
  constexpr std::uint64_t kibibyte = 1024;
  memory_budget budget;
  const auto meminfo = system_root / "proc/meminfo";
  const auto total = field_of(meminfo, "MemTotal:", UINT64_MAX / kibibyte) * kibibyte;
  const auto available = field_of(meminfo, "MemAvailable:", total / kibibyte) * kibibyte;
  admit(budget, total, total - std::min(total, available), "MemAvailable in /proc/meminfo");
  if (never_overcommits(system_root)) {
    const auto limit = field_of(meminfo, "CommitLimit:", UINT64_MAX / kibibyte) * kibibyte;
    admit(budget, limit, field_of(meminfo, "Committed_AS:", 0) * kibibyte, "CommitLimit in /proc/meminfo");
  }
  admit_groups(budget, system_root);
  return budget;
}

bool never_overcommits(const fs::path& system_root) {
  constexpr std::uint64_t never = 2;
  return number_in(system_root / "proc/sys/vm/overcommit_memory", 0) == never;
}

}  // namespace muster
