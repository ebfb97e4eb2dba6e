// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <muster/collectives/group_options.hpp>
#include <muster/collectives/reduction.hpp>
#include <muster/device/tensor.hpp>

#include "device_member.hpp"
#include "device_reduction.hpp"

namespace muster::detail {

/// The collective operations of one rank over tensors on devices, made of the steps of a transport. All ranks have
/// compared what they call, and have joined.
///
/// What moves goes as bytes, whatever its type. What is combined goes one of two ways, which all ranks choose alike
/// (device_reduction.hpp): *native*, the transport combines; or *ordered*, each rank is sent one part of all ranks'
/// elements, combines it in the order of ranks by the device's own kernels, and sends it on to who is to have it.
///
/// Tensors that are not contiguous are copied on the device, before and after.
///
/// Thread safety: an object belongs to one thread.
/// Lifetime: borrows all that it is given.
class device_calls {
public:
  device_calls(device_member& by, const rank_end& end, const char* operation, const call_options& how)
      : by_(by), end_(end), operation_(operation), how_(how) {}

  void broadcast(const tensor& what, std::size_t root);
  void all_reduce(const tensor& in, const tensor& out, const reduction& with);
  /// `out` counts at the root.
  void reduce(const tensor& in, const tensor& out, std::size_t root, const reduction& with);
  /// `counts`: elements of each rank.
  void reduce_scatter(const tensor& in, const tensor& out, std::span<const std::size_t> counts, const reduction& with);
  void all_gather(const tensor& in, const tensor& out, std::span<const std::size_t> counts);
  /// `out` counts at the root.
  void gather(const tensor& in, const tensor& out, std::span<const std::size_t> counts, std::size_t root);
  /// `in` counts at the root.
  void scatter(const tensor& in, const tensor& out, std::span<const std::size_t> counts, std::size_t root);
  /// Elements that go to each rank, and that come from each.
  void all_to_all(const tensor& in, const tensor& out, std::span<const std::size_t> outgoing,
                  std::span<const std::size_t> incoming);

private:
  [[nodiscard]] std::size_t rank() const noexcept { return end_.rank(); }
  [[nodiscard]] std::size_t size() const noexcept { return end_.size(); }
  [[nodiscard]] reduction_plan plan_of(const tensor& in, const reduction& with) const;
  void carry_out(std::span<const device_step> steps, std::vector<tensor> kept);
  void all_to_all_rows(const tensor& in, const tensor& out, std::span<const std::size_t> outgoing,
                       std::span<const std::size_t> incoming);
  void gather_rows(const tensor& own, const tensor& out, std::span<const std::size_t> counts, std::size_t root);
  void all_gather_rows(const tensor& own, const tensor& out, std::span<const std::size_t> counts);
  void combine_part(const reduction_plan& plan, const tensor& in, const tensor& part,
                    std::span<const std::size_t> counts);

  device_member& by_;
  const rank_end& end_;
  const char* operation_;
  const call_options& how_;
};

}  // namespace muster::detail
