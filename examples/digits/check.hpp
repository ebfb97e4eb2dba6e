// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "train.hpp"

namespace digits {

/// What one number of ranks gave.
struct checked_run {
  unsigned ranks = 1;
  std::vector<double> losses;     ///< by step
  double largest_difference = 0;  ///< of the losses, relative, to those of the first
};

/// How far they may be apart: sums are rounded in another order where rows are dealt out to others.
constexpr double loss_tolerance = 1e-4;

/// How far a loss is from another, relative to that; NaN or infinite where either is no finite number.
[[nodiscard]] double loss_difference(double found, double expected);

/// Trains with 1, 2 and 4 ranks. Throws std::runtime_error, with ranks and step, as soon as a loss is not finite, the
/// replicas differ by a bit or the losses by more than loss_tolerance. `after_step` is called after each.
[[nodiscard]] std::vector<checked_run> check_ranks(
    settings how, const samples& train, std::size_t steps, const std::function<void()>& after_step = [] {});

}  // namespace digits
