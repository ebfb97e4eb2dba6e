// SPDX-License-Identifier: BSL-1.0
#include <muster/params/assign.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

using placing = std::vector<std::size_t>;  // devices by model

[[noreturn]] void refuse_assignment(const std::string& why) {
  throw error(errc::invalid_argument, text("models cannot be assigned: ", why));
}

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

/// What placements are judged by.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, all members are const.
class judge {
public:
  judge(std::span<const std::uint64_t> sizes, const model_connections& connections,
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

  [[nodiscard]] std::size_t models() const noexcept { return sizes_.size(); }
  [[nodiscard]] std::size_t devices() const noexcept { return devices_.size(); }
  [[nodiscard]] std::uint64_t size_of(std::size_t model) const { return sizes_[model]; }
  [[nodiscard]] std::uint64_t room_of(std::size_t which) const {
    return static_cast<std::uint64_t>(static_cast<double>(devices_[which].free_bytes) * how_.max_mem_ratio);
  }
  [[nodiscard]] bool fits(const placing& where) const {
    std::vector<std::uint64_t> used(devices());
    for (std::size_t model = 0; model < models(); ++model) {
      if (sizes_[model] > room_of(where[model]) - used[where[model]]) return false;
      used[where[model]] += sizes_[model];
    }
    return true;
  }

  [[nodiscard]] placement_cost cost(std::span<const std::size_t> where) const {
    return {.connections = how_.connection_weight * mean_connection(where),
            .balance = how_.complexity_match_weight * mean_imbalance(where)};
  }

  [[noreturn]] void throw_does_not_fit() const {
    std::string rooms;
    for (std::size_t each = 0; each < devices(); ++each) {
      rooms += text(rooms.empty() ? "" : ", ", devices_[each].device, ": ", room_of(each));
    }
    std::string all;
    for (const auto each : sizes_) all += text(all.empty() ? "" : ", ", each);
    throw error(errc::out_of_memory,
                text("models of ", all, " bytes do not fit into what they may take of the devices (", rooms,
                     "; assign_options::max_mem_ratio is ", how_.max_mem_ratio, ")"));
  }

private:
  void require() const {
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

  [[nodiscard]] double power_of(const device_room& which) const {
    return which.device.is_cpu() ? how_.cpu_weight : std::max(0.0, 1 - which.load);
  }

  [[nodiscard]] double mean_connection(std::span<const std::size_t> where) const {
    double sum = 0;
    for (const auto& [pair, weight] : connections_) {
      const auto distance = distance_of(devices_[where[pair.first]].device, devices_[where[pair.second]].device, how_);
      sum += share_of(weight, total_connection_) * share_of(distance, total_distance_);
    }
    const auto pairs = static_cast<double>(models() * models());
    return share_of(sum, pairs);
  }

  [[nodiscard]] double mean_imbalance(std::span<const std::size_t> where) const {
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

  const std::span<const std::uint64_t> sizes_;
  const model_connections& connections_;
  const std::span<const device_room> devices_;
  const assign_options how_;
  double total_size_ = 0;
  double total_connection_ = 0;
  double total_distance_ = 0;
  double total_power_ = 0;
};

/// The best placement that was looked at.
///
/// Thread safety: belongs to its thread.
class best_found {
public:
  explicit best_found(const judge& by) : by_(by) {}

  /// Whether it is the best so far.
  bool look_at(const placing& where) {
    if (!by_.fits(where)) return false;
    const auto cost = by_.cost(where).total();
    if (!(cost < least_)) return false;
    least_ = cost;
    best_ = where;
    return true;
  }
  [[nodiscard]] bool is_there() const noexcept { return best_.has_value(); }
  [[nodiscard]] const placing& get() const {
    if (!best_) by_.throw_does_not_fit();
    return *best_;
  }

private:
  const judge& by_;
  double least_ = std::numeric_limits<double>::infinity();
  std::optional<placing> best_;
};

bool are_at_most(std::size_t models, std::size_t devices, std::size_t most) {
  std::size_t all = 1;
  for (std::size_t each = 0; each < models; ++each) {
    if (all > most / devices) return false;
    all *= devices;
  }
  return true;
}

// As a number counts, whose digits are devices.
bool count_on(placing& where, std::size_t devices) {
  for (auto digit = where.rbegin(); digit != where.rend(); ++digit) {
    if (++*digit < devices) return true;
    *digit = 0;
  }
  return false;
}

placing first_fit(const judge& by) {
  placing where(by.models());
  std::vector<std::uint64_t> used(by.devices());
  std::vector<std::size_t> order(by.models());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return by.size_of(a) != by.size_of(b) ? by.size_of(a) > by.size_of(b) : a < b; });
  for (const auto model : order) {
    std::size_t roomiest = 0;
    for (std::size_t each = 1; each < by.devices(); ++each) {
      const auto room = [&](auto which) { return by.room_of(which) - std::min(used[which], by.room_of(which)); };
      if (room(each) > room(roomiest)) roomiest = each;
    }
    where[model] = roomiest;
    used[roomiest] += by.size_of(model);
  }
  return where;
}

// Moves one model, or exchanges two, as long as that makes it better.
void improve(placing where, const judge& by, best_found& best) {
  for (bool goes_on = best.look_at(where) || best.is_there(); goes_on;) {
    goes_on = false;
    for (std::size_t model = 0; model < by.models(); ++model) {
      for (std::size_t to = 0; to < by.devices(); ++to) {
        auto moved = where;
        moved[model] = to;
        if (best.look_at(moved)) goes_on = true;
      }
      for (std::size_t other = 0; other < model; ++other) {
        auto exchanged = where;
        std::swap(exchanged[model], exchanged[other]);
        if (best.look_at(exchanged)) goes_on = true;
      }
    }
    if (goes_on) where = best.get();
  }
}

void search(const judge& by, const assign_options& how, best_found& best) {
  improve(first_fit(by), by, best);
  std::mt19937_64 random(how.seed);
  constexpr int attempts = 50;
  for (int each = 0; each < attempts; ++each) {
    placing where(by.models());
    for (auto& to : where) to = static_cast<std::size_t>(random() % by.devices());
    improve(where, by, best);
  }
}

}  // namespace

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
  if (where.size() != sizes.size()) refuse_assignment("a placement has as many devices as there are models");
  for (const auto each : where) {
    if (each >= devices.size()) refuse_assignment(text("a model is on device ", each, " of ", devices.size()));
  }
  return judge(sizes, connections, devices, how).cost(where);
}

placement assign(std::span<const std::uint64_t> sizes, const model_connections& connections,
                 std::span<const device_room> devices, const assign_options& how) {
  const judge by(sizes, connections, devices, how);
  best_found best(by);
  placement made{.is_optimal = are_at_most(by.models(), by.devices(), how.most_placements)};
  if (made.is_optimal) {
    placing where(by.models());
    do {
      best.look_at(where);
    } while (count_on(where, by.devices()));
  } else {
    search(by, how, best);
  }
  made.cost = by.cost(best.get());
  for (const auto each : best.get()) made.devices.push_back(devices[each].device);
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
