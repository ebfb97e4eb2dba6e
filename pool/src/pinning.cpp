// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/pinning.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>

#include <muster/base/cgroup.hpp>
#include <muster/base/effective_cpus.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "near_cpus.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

// As sysfs has it; nothing when there is no such file, or something else in it.
std::optional<cpu_list> read_cpus(const fs::path& file) {
  const auto line = first_line_of(file);
  return line ? parse_cpu_list(*line) : std::nullopt;
}

}  // namespace

std::optional<cpu_list> detail::cpus_near(const fs::path& system_root, const std::string& address) {
  return read_cpus(system_root / "sys/bus/pci/devices" / address / "local_cpulist");
}

cpu_list detail::in_both(const cpu_list& one, const cpu_list& other) {
  cpu_list both;
  std::set_intersection(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(both));
  return both;
}

/// Asks the machine.
///
/// Thread safety: belongs to one thread.
class pinning::resolver {
public:
  explicit resolver(const fs::path& system_root)
      : system_root_(system_root), system_(system_root / "sys"), allowed_(process_cpus()) {}

  [[nodiscard]] std::vector<cpu_list> lists_of(const pinning& given) const {
    switch (given.choice_) {
      case choice::none: return {};
      case choice::as_caller: return {allowed_cpus()};
      case choice::each_cpu: return each_cpu();
      case choice::each_node: return each_node();
      case choice::one_node: return of_node(given.node_);
      case choice::near_device: return near_device(given.address_);
      case choice::lists: return usable_of(given.lists_);
    }
    return {};
  }

private:
  // Processors of one core share what makes it fast.
  [[nodiscard]] std::vector<cpu_list> each_cpu() const {
    std::map<unsigned, unsigned> taken;  // of each core
    std::vector<std::pair<unsigned, unsigned>> order;
    for (const auto cpu : allowed_) {
      const auto siblings = read_cpus(system_ / text("devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
      const auto core = siblings && !siblings->empty() ? siblings->front() : cpu;
      order.emplace_back(taken[core]++, cpu);
    }
    std::sort(order.begin(), order.end());
    std::vector<cpu_list> lists;
    lists.reserve(order.size());
    for (const auto& [round, cpu] : order) lists.push_back({cpu});
    return lists;
  }

  // Some nodes have memory only, or processors that others use.
  [[nodiscard]] std::vector<cpu_list> each_node() const {
    const auto nodes = read_cpus(system_ / "devices/system/node/online").value_or(cpu_list());
    std::vector<cpu_list> lists;
    for (const auto node : nodes) {
      auto cpus = usable(cpus_of(node).value_or(cpu_list()));
      if (!cpus.empty()) lists.push_back(std::move(cpus));
    }
    if (lists.empty()) lists.push_back(allowed_);  // no nodes: all is near
    return lists;
  }

  [[nodiscard]] std::vector<cpu_list> of_node(unsigned number) const {
    const auto cpus = cpus_of(number);
    if (!cpus) refuse(text("there is no NUMA node ", number));
    return {usable(*cpus, text("NUMA node ", number, " has processors ", describe(*cpus)))};
  }

  [[nodiscard]] std::vector<cpu_list> near_device(const std::string& address) const {
    const auto cpus = detail::cpus_near(system_root_, address);
    if (!cpus) refuse(text("there is no PCI device '", address, "' (one would be 0000:3b:00.0)"));
    return {usable(*cpus, text("PCI device ", address, " is near processors ", describe(*cpus)))};
  }

  [[nodiscard]] std::vector<cpu_list> usable_of(const std::vector<cpu_list>& given) const {
    std::vector<cpu_list> lists;
    for (auto each : given) {
      std::sort(each.begin(), each.end());
      lists.push_back(usable(each, text("processors '", describe(each), "' were given")));
    }
    return lists;
  }

  [[nodiscard]] std::optional<cpu_list> cpus_of(unsigned node) const {
    return read_cpus(system_ / text("devices/system/node/node", node, "/cpulist"));
  }
  [[nodiscard]] cpu_list usable(const cpu_list& cpus) const { return detail::in_both(cpus, allowed_); }
  [[nodiscard]] cpu_list usable(const cpu_list& cpus, const std::string& what) const {
    auto both = usable(cpus);
    if (both.empty()) refuse(what);
    return both;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw error(errc::invalid_argument,
                text("pool_options::pin: ", what, "; this program may use processors ", describe(allowed_)));
  }

  const fs::path system_root_;
  const fs::path system_;  // its /sys
  const cpu_list allowed_;
};

unsigned pinning::processors(const std::string& system_root) const {
  return choice_ == choice::as_caller ? effective_cpus_of(allowed_cpus(), system_root) : effective_cpus(system_root);
}

std::vector<cpu_list> pinning::resolve(const std::string& system_root) const {
  return resolver(system_root).lists_of(*this);
}

}  // namespace muster
