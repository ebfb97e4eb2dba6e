// SPDX-License-Identifier: BSL-1.0
#include <muster/params/assign.hpp>

#include <fstream>
#include <string>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "placement_search.hpp"

namespace muster {

std::uint64_t size_of(const state_dict& model, double multiplier) {
  return static_cast<std::uint64_t>(static_cast<double>(model.nbytes()) * multiplier);
}

std::vector<device_room> rooms_here() {
  std::ifstream in("/proc/meminfo");
  std::string name;
  std::uint64_t kibibytes = 0;
  for (std::string rest; in >> name >> kibibytes && name != "MemAvailable:";) std::getline(in, rest);
  return {{.device = device::cpu(), .free_bytes = kibibytes << 10U}};
}

placement_cost cost_of(std::span<const std::size_t> where, std::span<const std::uint64_t> sizes,
                       const model_connections& connections, std::span<const device_room> devices,
                       const assign_options& how) {
  if (where.size() != sizes.size()) detail::refuse_assignment("a placement has as many devices as there are models");
  for (const auto each : where) {
    if (each >= devices.size()) detail::refuse_assignment(text("a model is on device ", each, " of ", devices.size()));
  }
  return detail::placement_judge(sizes, connections, devices, how).cost(where);
}

placement assign(std::span<const std::uint64_t> sizes, const model_connections& connections,
                 std::span<const device_room> devices, const assign_options& how) {
  const detail::placement_judge by(sizes, connections, devices, how);
  placement made{.is_optimal = detail::are_at_most(by.models(), by.devices(), how.most_placements)};
  const auto best = made.is_optimal ? detail::best_of_all(by) : detail::best_of_some(by, how.seed);
  made.cost = by.cost(best);
  for (const auto each : best) made.devices.push_back(devices[each].device);
  return made;
}

placement assign(const std::vector<state_dict>& models, const model_connections& connections,
                 std::span<const device_room> devices, const assign_options& how) {
  std::vector<std::uint64_t> sizes;
  for (const auto& each : models) sizes.push_back(size_of(each));
  return assign(sizes, connections, devices, how);
}

placement assign(const std::vector<state_dict>& models, const model_connections& connections,
                 const assign_options& how) {
  const auto here = rooms_here();
  return assign(models, connections, here, how);
}

}  // namespace muster
