// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which model goes to which device: Machin's ModelAssigner, as the optimum of its cost.
//
//     auto found = muster::assign({actor, critic}, {{{0, 1}, 1.0}});   // models, and how much they exchange
//     for (auto where : found.devices) …

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <muster/base/device.hpp>
#include <muster/params/state_dict.hpp>

namespace muster {

/// What a device has for models.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct device_room {
  muster::device device{};       ///< which one
  std::uint64_t free_bytes = 0;  ///< of its memory
  double load = 0;               ///< how busy it is: 0 idle, 1 wholly
};

/// How models are assigned. Weights and distances are Machin's, with its defaults.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct assign_options {
  double max_mem_ratio = 0.5;          ///< of a device's free memory, how much models may take; more they never do
  double cpu_weight = 0;               ///< how much the host computes, where an idle GPU computes 1
  double connection_weight = 2;        ///< of the cost of connections between devices
  double complexity_match_weight = 1;  ///< of the cost of models that are not where computing power is
  double gpu_gpu_distance = 1;         ///< between two GPUs
  double cpu_gpu_distance = 10;        ///< between the host and a GPU
  std::size_t most_placements = 10'000'000;  ///< up to so many are looked at one by one; of more, some
  std::uint64_t seed = 1;                    ///< of which ones
};

/// What a placement costs, by what.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct placement_cost {
  double connections = 0;  ///< connection_weight times the mean, over pairs of models, of connection times distance
  double balance = 0;      ///< complexity_match_weight times the mean square, over devices, of share of models' bytes
                           ///< less share of computing power

  /// Returns the sum.
  [[nodiscard]] double total() const noexcept { return connections + balance; }
};

/// Where each model goes.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct placement {
  std::vector<muster::device> devices{};  ///< by model
  placement_cost cost{};                  ///< of that
  bool is_optimal = false;                ///< whether all placements were looked at

  /// Returns the models, each on its device: copied there, or as it is where it lies there already. Throws
  /// errc::invalid_argument unless there are as many as were assigned; as tensor::to.
  [[nodiscard]] std::vector<state_dict> move(const std::vector<state_dict>& models) const;
};

/// Connections between models: from which to which, and how much. Models are counted from 0.
using model_connections = std::map<std::pair<std::size_t, std::size_t>, double>;

/// Returns how many bytes a model takes, times `multiplier`, as for gradients.
[[nodiscard]] std::uint64_t size_of(const state_dict& model, double multiplier = 2);
/// Returns the GPUs of this process, if the program is linked with muster::cuda, and the host, each with the memory
/// that is free. How busy they are is not known: `load` is 0. Opens the GPUs.
[[nodiscard]] std::vector<device_room> rooms_here();

/// Returns the placement of least cost of models of so many bytes, the first of equal ones, in the order of devices;
/// the same for the same arguments. Throws errc::out_of_memory, with sizes and rooms, where they do not fit;
/// errc::invalid_argument for no devices, a device that is given twice, connections of models that are not there, and
/// numbers that are negative or not finite.
/// Thread safety: safe. Cost: placements are looked at one by one, up to assign_options::most_placements.
[[nodiscard]] placement assign(std::span<const std::uint64_t> sizes, const model_connections& connections,
                               std::span<const device_room> devices, const assign_options& how = {});
/// The same, for models, and by default for what is here.
///@{
[[nodiscard]] placement assign(const std::vector<state_dict>& models, const model_connections& connections,
                               std::span<const device_room> devices, const assign_options& how = {});
[[nodiscard]] placement assign(const std::vector<state_dict>& models, const model_connections& connections = {},
                               const assign_options& how = {});
///@}
/// Returns what a placement of such models costs, each on that device by its number; also one that does not fit.
[[nodiscard]] placement_cost cost_of(std::span<const std::size_t> where, std::span<const std::uint64_t> sizes,
                                     const model_connections& connections, std::span<const device_room> devices,
                                     const assign_options& how = {});

}  // namespace muster
