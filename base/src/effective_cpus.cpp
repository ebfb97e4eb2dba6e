// SPDX-License-Identifier: BSL-1.0
#include <muster/base/effective_cpus.hpp>

#include <algorithm>
#include <limits>

#include <muster/base/cgroup.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr double unlimited = std::numeric_limits<double>::infinity();

// cpu.max: "QUOTA PERIOD" or "max PERIOD".
double quota_of_version_2(const fs::path& directory) {
  detail::text_reader in(first_line_of(directory / "cpu.max").value_or("max"));
  double quota = 0;
  double period = 0;
  return in >> quota >> period && period > 0 ? quota / period : unlimited;
}

// cpu.cfs_quota_us is -1 where there is no limit.
double quota_of_version_1(const fs::path& directory) {
  detail::text_reader quota_text(first_line_of(directory / "cpu.cfs_quota_us").value_or("-1"));
  detail::text_reader period_text(first_line_of(directory / "cpu.cfs_period_us").value_or("0"));
  double quota = 0;
  double period = 0;
  return quota_text >> quota && period_text >> period && quota > 0 && period > 0 ? quota / period : unlimited;
}

double cpu_quota(const fs::path& system_root) {
  const cgroup group("cpu", system_root);
  double smallest = unlimited;
  for (const auto& directory : group.directories()) {
    smallest = std::min(smallest, group.version() == 2 ? quota_of_version_2(directory) : quota_of_version_1(directory));
  }
  return smallest;
}

}  // namespace

unsigned effective_cpus(const fs::path& system_root) { return effective_cpus_of(process_cpus(), system_root); }

unsigned effective_cpus_of(const cpu_list& allowed, const fs::path& system_root) {
  const auto count = static_cast<double>(allowed.size());
  return std::max(1U, static_cast<unsigned>(std::min(count, cpu_quota(system_root))));
}

}  // namespace muster
