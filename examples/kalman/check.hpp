// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

#include <Eigen/Core>

#include <muster/device/tensor.hpp>

#include "problem.hpp"

namespace kalman {

/// How much a filter's numbers may differ from those of the same in double, relative to the largest of them.
inline constexpr double tolerance = 1e-5;

/// How much they differ. Throws std::runtime_error, which names `what`, if it is more than that, or if an element is no
/// number.
double check(const char* what, const muster::tensor& found, const Eigen::MatrixXd& expected);

/// Throws std::runtime_error unless it is of numbers, symmetric and positive definite.
void require_covariance(const muster::tensor& found);

/// Throws std::runtime_error, which names `what`, unless both are the same bits.
void require_same(const char* what, const muster::tensor& a, const muster::tensor& b);

/// Filters the measurements once more in one thread, beside the reference, and compares after each of them.
struct checked_run {
  checked_run(const problem& given, std::size_t steps);

  muster::tensor mu;
  muster::tensor sigma;
  double largest_error = 0;
};

}  // namespace kalman
