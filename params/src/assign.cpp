// SPDX-License-Identifier: BSL-1.0
#include <muster/params/assign.hpp>

#include <fstream>
#include <string>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/detail/device_block.hpp>

#include "placement_search.hpp"

namespace muster {

std::uint64_t size_of(const state_dict& model, double multiplier) {
  return static_cast<std::uint64_t>(static_cast<double>(model.nbytes()) * multiplier);
}

std::vector<state_dict> placement::move(const std::vector<state_dict>& models) const {
  if (models.size() != devices.size()) {
    detail::refuse_assignment(text(models.size(), " models are to be moved, and ", devices.size(), " were assigned"));
  }
  std::vector<state_dict> moved;
  moved.reserve(models.size());
  for (std::size_t each = 0; each < models.size(); ++each) moved.push_back(models[each].to(devices[each]));
  return moved;
}

namespace {

std::uint64_t free_bytes_of_host() {
  std::ifstream in("/proc/meminfo");
  std::string name;
  std::uint64_t kibibytes = 0;
  for (std::string rest; in >> name >> kibibytes && name != "MemAvailable:";) std::getline(in, rest);
  return kibibytes << 10U;
}

}  // namespace

std::vector<device_room> rooms_here() {
  std::vector<device_room> all;
  if (auto* const gpus = find_kind_of(device::cuda())) {
    for (const auto& [which, bytes] : gpus->free_memory()) all.push_back({.device = which, .free_bytes = bytes});
  }
  all.push_back({.device = device::cpu(), .free_bytes = free_bytes_of_host()});
  return all;
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
  sizes.reserve(models.size());
  for (const auto& each : models) sizes.push_back(size_of(each));
  return assign(sizes, connections, devices, how);
}

placement assign(const std::vector<state_dict>& models, const model_connections& connections,
                 const assign_options& how) {
  const auto here = rooms_here();
  return assign(models, connections, here, how);
}

}  // namespace muster
