// SPDX-License-Identifier: BSL-1.0
#include "placement_judge.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

void refuse_assignment(const std::string& why) {
  throw error(errc::invalid_argument, text("models cannot be assigned: ", why));
}

namespace {

void require_number(double value, const char* name) {
  if (std::isfinite(value) && value >= 0) return;
  refuse_assignment(text(name, " is ", value, ": it is to be finite, and not negative"));
}

double distance_of(device a, device b, const assign_options& how) {
  if (a == b) return 0;
  return a.is_cpu() || b.is_cpu() ? how.cpu_gpu_distance : how.gpu_gpu_distance;
}

// 0 where there is nothing to divide.
double share_of(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

placement_judge::placement_judge(std::span<const std::uint64_t> sizes, const model_connections& connections,
                                 std::span<const device_room> devices, const assign_options& how)
    : sizes_(sizes), connections_(connections), devices_(devices), how_(how) {
  require();
  total_size_ = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  for (const auto& [pair, weight] : connections) total_connection_ += weight;
  for (const auto& a : devices) {
    for (const auto& b : devices) total_distance_ += distance_of(a.device, b.device, how);
    total_power_ += power_of(a);
  }
}

std::uint64_t placement_judge::room_of(std::size_t which) const {
  return static_cast<std::uint64_t>(static_cast<double>(devices_[which].free_bytes) * how_.max_mem_ratio);
}

bool placement_judge::fits(const placing& where) const {
  std::vector<std::uint64_t> used(devices());
  for (std::size_t model = 0; model < models(); ++model) {
    if (sizes_[model] > room_of(where[model]) - used[where[model]]) return false;
    used[where[model]] += sizes_[model];
  }
  return true;
}

placement_cost placement_judge::cost(std::span<const std::size_t> where) const {
  return {.connections = how_.connection_weight * mean_connection(where),
          .balance = how_.complexity_match_weight * mean_imbalance(where)};
}

void placement_judge::throw_does_not_fit() const {
  std::string rooms;
  for (std::size_t each = 0; each < devices(); ++each) {
    rooms += text(rooms.empty() ? "" : ", ", devices_[each].device, ": ", room_of(each));
  }
  std::string all;
  for (const auto each : sizes_) all += text(all.empty() ? "" : ", ", each);
  throw error(errc::out_of_memory, text("models of ", all, " bytes do not fit into what they may take of the devices (",
                                        rooms, "; assign_options::max_mem_ratio is ", how_.max_mem_ratio, ")"));
}

void placement_judge::require() const {
  if (devices_.empty()) refuse_assignment("there are no devices");
  for (auto each = devices_.begin(); each != devices_.end(); ++each) {
    require_number(each->load, "device_room::load");
    const auto is_same = [&](const auto& other) { return other.device == each->device; };
    if (std::any_of(devices_.begin(), each, is_same)) refuse_assignment(text(each->device, " is there twice"));
  }
  for (const auto& [pair, weight] : connections_) {
    require_number(weight, "a connection");
    if (std::max(pair.first, pair.second) >= models()) {
      refuse_assignment(text("models ", pair.first, " and ", pair.second, " are connected, of ", models()));
    }
  }
  require_number(how_.max_mem_ratio, "max_mem_ratio");
  require_number(how_.cpu_weight, "cpu_weight");
  require_number(how_.connection_weight, "connection_weight");
  require_number(how_.complexity_match_weight, "complexity_match_weight");
  require_number(how_.gpu_gpu_distance, "gpu_gpu_distance");
  require_number(how_.cpu_gpu_distance, "cpu_gpu_distance");
}

double placement_judge::power_of(const device_room& which) const {
  return which.device.is_cpu() ? how_.cpu_weight : std::max(0.0, 1 - which.load);
}

double placement_judge::mean_connection(std::span<const std::size_t> where) const {
  double sum = 0;
  for (const auto& [pair, weight] : connections_) {
    const auto distance = distance_of(devices_[where[pair.first]].device, devices_[where[pair.second]].device, how_);
    sum += share_of(weight, total_connection_) * share_of(distance, total_distance_);
  }
  const auto pairs = static_cast<double>(models() * models());
  return share_of(sum, pairs);
}

double placement_judge::mean_imbalance(std::span<const std::size_t> where) const {
  std::vector<double> shares(devices());
  for (std::size_t model = 0; model < models(); ++model) {
    shares[where[model]] += share_of(static_cast<double>(sizes_[model]), total_size_);
  }
  double sum = 0;
  for (std::size_t each = 0; each < devices(); ++each) {
    const auto off = shares[each] - share_of(power_of(devices_[each]), total_power_);
    sum += off * off;
  }
  return sum / static_cast<double>(devices());
}

}  // namespace muster::detail
