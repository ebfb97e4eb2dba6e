// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <Eigen/Core>
#include <Eigen/LU>

namespace kalman {

/// What the filter knows at first, and what it is told later: numbers that a float holds, the same for the same seed in
/// every run and in every process that takes part.
///
/// Sigma and R are G Gᵀ / n + I and H is G / √n, with a G of normally distributed numbers for each: so B = R + H Sigma
/// Hᵀ is well conditioned, which it is not for numbers that are just random.
struct problem {
  explicit problem(std::size_t n, std::uint32_t seed = 0);

  /// What is measured in that step: H times the truth, and noise.
  [[nodiscard]] Eigen::VectorXd measurement(std::size_t step) const;

  Eigen::VectorXd truth;
  Eigen::VectorXd mu;
  Eigen::MatrixXd sigma;
  Eigen::MatrixXd h;
  Eigen::MatrixXd r;

private:
  std::uint32_t seed_;
};

/// The same filter on one processor, in double.
class reference {
public:
  explicit reference(const problem& given) : given_(given), mu_(given.mu), sigma_(given.sigma) {}

  void step(const Eigen::VectorXd& measurement);

  [[nodiscard]] const Eigen::VectorXd& mu() const noexcept { return mu_; }
  [[nodiscard]] const Eigen::MatrixXd& sigma() const noexcept { return sigma_; }

private:
  const problem& given_;
  Eigen::VectorXd mu_;
  Eigen::MatrixXd sigma_;
};

}  // namespace kalman
