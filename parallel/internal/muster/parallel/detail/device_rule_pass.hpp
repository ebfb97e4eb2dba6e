// SPDX-License-Identifier: BSL-1.0
#pragma once

// A rule on a device: what rule_kernels.hpp does on the host.
//
// Thread safety: pure functions; safe.

#include <cstdint>
#include <span>
#include <vector>

#include <muster/collectives/reduction.hpp>
#include <muster/device/tensor.hpp>
#include <muster/parallel/rules.hpp>

namespace muster::detail {

/// A range of a variable on a device, and all that becomes of it: rule_pass, for tensors in one dimension that lie on
/// one device. Lifetime: borrows the weights.
struct device_rule_pass {
  reduction_op op = reduction_op::sum;
  std::vector<tensor> gradients = {};
  std::span<const double> weights = {};
  tensor value{};
  tensor new_value{};
  std::vector<tensor> old_states = {};
  std::vector<tensor> new_states = {};
  std::uint64_t step = 1;
};

/// As `apply` of rule_kernels.hpp, with the same bits. Returns when the device has been given it.
/// Requires: what that does; there are elements.
void apply_there(const update_rule& rule, const device_rule_pass& pass);

}  // namespace muster::detail
