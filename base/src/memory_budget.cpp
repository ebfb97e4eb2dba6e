// SPDX-License-Identifier: BSL-1.0
#include <muster/base/memory_budget.hpp>

#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include <muster/base/cgroup.hpp>
#include <muster/base/detail/float_state.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kibibyte = 1024;

// A value of a file with lines "name 123", "Name:   123 kB" or "Node 0 Name:   123 kB"; none where there is no such
// line.
std::optional<std::uint64_t> field_of(const fs::path& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto at = line.starts_with("Node ") ? std::min(line.find(' ', 5), line.size()) : 0;
    detail::text_reader words(line.substr(at));
    std::string found;
    std::uint64_t value = 0;
    if (words >> found >> value && found == name) return value;
  }
  return std::nullopt;
}

/// What the machine has, and how much of it can be had.
struct machine_memory {
  std::uint64_t total = 0;  // 0: unknown
  std::uint64_t available = 0;
  const char* source = "";
};

// Free, and what pages of files take, of which the active half is the ones that are wanted again; from before
// MemAvailable, and of NUMA nodes, which have none.
std::uint64_t estimate_available(const fs::path& file) {
  const auto kib = [&](const char* name) { return field_of(file, name).value_or(0); };
  return (kib("MemFree:") + kib("Inactive(file):") + kib("Active(file):") / 2) * kibibyte;
}

machine_memory memory_in_meminfo(const fs::path& system_root) {
  const auto file = system_root / "proc/meminfo";
  const auto available = field_of(file, "MemAvailable:");
  return {.total = field_of(file, "MemTotal:").value_or(0) * kibibyte,
          .available = available ? *available * kibibyte : estimate_available(file),
          .source = "MemAvailable in /proc/meminfo"};
}

// Sandboxes hide /proc/meminfo (ProcSubset=pid of systemd, the option subset=pid of procfs), and leave /sys.
machine_memory memory_of_nodes(const fs::path& system_root) {
  machine_memory found{.source = "free memory and pages of files in /sys/devices/system/node"};
  std::error_code none;
  for (fs::directory_iterator each(system_root / "sys/devices/system/node", none), end; !none && each != end;
       each.increment(none)) {
    const auto file = each->path() / "meminfo";
    found.total += field_of(file, "MemTotal:").value_or(0) * kibibyte;
    found.available += estimate_available(file);
  }
  return found;
}

// It does not know what pages of files take, so that less seems to be available than is.
machine_memory memory_of_sysinfo() {
  struct sysinfo found{};
  system_call("sysinfo", [&] { return ::sysinfo(&found); });
  return {.total = std::uint64_t{found.totalram} * found.mem_unit,
          .available = std::uint64_t{found.freeram + found.bufferram} * found.mem_unit,
          .source = "free memory that sysinfo(2) tells of"};
}

machine_memory memory_of_machine(const fs::path& system_root) {
  if (const auto found = memory_in_meminfo(system_root); found.total != 0) return found;
  if (const auto found = memory_of_nodes(system_root); found.total != 0) return found;
  return memory_of_sysinfo();
}

// The number in a one-line file; none where the file is missing or empty, or says "max".
std::optional<std::uint64_t> number_in(const fs::path& file) {
  detail::text_reader in(first_line_of(file).value_or(""));
  std::uint64_t value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
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
    const auto limit = number_in(directory / names.limit);
    if (!limit || *limit >= UINT64_MAX / 4) continue;  // version 1 writes "no limit" as a huge number
    const auto used = number_in(directory / names.usage).value_or(0);
    const auto droppable = std::min(used, field_of(directory / "memory.stat", names.droppable).value_or(0));
    admit(budget, *limit, used - droppable, (directory / names.limit).string());
  }
}

memory_budget read_budget(const fs::path& system_root) {
  memory_budget budget;
  const auto machine = memory_of_machine(system_root);
  admit(budget, machine.total, machine.total - std::min(machine.total, machine.available), machine.source);
  const auto meminfo = system_root / "proc/meminfo";
  if (const auto limit = field_of(meminfo, "CommitLimit:"); limit && never_overcommits(system_root)) {
    admit(budget, *limit * kibibyte, field_of(meminfo, "Committed_AS:").value_or(0) * kibibyte,
          "CommitLimit in /proc/meminfo");
  }
  admit_groups(budget, system_root);
  return budget;
}

}  // namespace

// The standard library's paths compute with doubles, and the thread's floating-point flags are the program's.
memory_budget available_memory(const fs::path& system_root) {
  return in_fixed_float_state([&system_root] { return read_budget(system_root); });
}

bool never_overcommits(const fs::path& system_root) {
  constexpr std::uint64_t never = 2;
  return number_in(system_root / "proc/sys/vm/overcommit_memory") == never;
}

}  // namespace muster
