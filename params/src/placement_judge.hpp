// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <muster/params/assign.hpp>

namespace muster::detail {

/// The devices of models, by their numbers.
using placing = std::vector<std::size_t>;

[[noreturn]] void refuse_assignment(const std::string& why);

/// What placements are judged by. Throws errc::invalid_argument for what nothing can be judged by.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, all members are const. Lifetime: borrows what it is
/// given.
class placement_judge {
public:
  placement_judge(std::span<const std::uint64_t> sizes, const model_connections& connections,
                  std::span<const device_room> devices, const assign_options& how);

  [[nodiscard]] std::size_t models() const noexcept { return sizes_.size(); }
  [[nodiscard]] std::size_t devices() const noexcept { return devices_.size(); }
  [[nodiscard]] std::uint64_t size_of(std::size_t model) const { return sizes_[model]; }
  /// What models may take of a device.
  [[nodiscard]] std::uint64_t room_of(std::size_t which) const;
  [[nodiscard]] bool fits(const placing& where) const;
  [[nodiscard]] placement_cost cost(std::span<const std::size_t> where) const;
  [[noreturn]] void throw_does_not_fit() const;

private:
  void require() const;
  [[nodiscard]] double power_of(const device_room& which) const;
  [[nodiscard]] double mean_connection(std::span<const std::size_t> where) const;
  [[nodiscard]] double mean_imbalance(std::span<const std::size_t> where) const;

  const std::span<const std::uint64_t> sizes_;
  const model_connections& connections_;
  const std::span<const device_room> devices_;
  const assign_options how_;
  double total_size_ = 0;
  double total_connection_ = 0;
  double total_distance_ = 0;
  double total_power_ = 0;
};

}  // namespace muster::detail
