// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

#include <Eigen/Core>

#include <muster/collectives/graph.hpp>
#include <muster/device/eigen.hpp>

namespace kalman {

/// A tensor of two dimensions, as Eigen sees it.
[[nodiscard]] inline auto map_of(const muster::tensor& what) { return muster::as_matrix<float>(what); }

/// Its elements as float.
[[nodiscard]] muster::tensor tensor_of(const Eigen::MatrixXd& exact);

/// One step of a Kalman filter of n dimensions in float, on two ranks. Rank 0 finds the new mu, rank 1 the new Sigma;
/// both are states of rank 0. Its inputs are "H", "R" and "data", of n rows each.
///
/// Split as in M. Rocklin, gist 3750410 (2012): rank 0 computes A = Sigma Hᵀ and B = R + H A, and sends what rank 1
/// needs.
[[nodiscard]] muster::graph make_filter(std::size_t n);

}  // namespace kalman
