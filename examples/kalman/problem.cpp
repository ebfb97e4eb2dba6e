// SPDX-License-Identifier: BSL-1.0
#include "problem.hpp"

#include <cmath>
#include <random>

namespace kalman {

namespace {

using Eigen::Index;

Eigen::MatrixXd normal(std::mt19937_64& random, Index rows, Index columns) {
  std::normal_distribution<double> one;
  return Eigen::MatrixXd::NullaryExpr(rows, columns, [&] { return one(random); });
}

// No two are the same.
std::mt19937_64 generator(std::uint32_t seed, std::size_t part) {
  constexpr unsigned part_bits = 32;
  return std::mt19937_64(std::uint64_t{seed} << part_bits | part);
}

template <class Matrix>
Matrix rounded(const Matrix& exact) {
  return exact.template cast<float>().template cast<double>();
}

Eigen::MatrixXd positive(std::mt19937_64& random, Index n) {
  const auto g = normal(random, n, n);
  return rounded<Eigen::MatrixXd>(g * g.transpose() / static_cast<double>(n) + Eigen::MatrixXd::Identity(n, n));
}

}  // namespace

problem::problem(std::size_t n, std::uint32_t seed) : seed_(seed) {
  auto random = generator(seed, 1);
  const auto size = static_cast<Index>(n);
  sigma = positive(random, size);
  r = positive(random, size);
  h = rounded<Eigen::MatrixXd>(normal(random, size, size) / std::sqrt(static_cast<double>(n)));
  truth = normal(random, size, 1);
  mu = rounded<Eigen::VectorXd>(normal(random, size, 1));
}

Eigen::VectorXd problem::measurement(std::size_t step) const {
  auto random = generator(seed_, step + 2);
  return rounded<Eigen::VectorXd>(h * truth + normal(random, mu.size(), 1));
}

void reference::step(const Eigen::VectorXd& measurement) {
  const Eigen::MatrixXd a = sigma_ * given_.h.transpose();
  const Eigen::MatrixXd b = given_.r + given_.h * a;
  const Eigen::PartialPivLU<Eigen::MatrixXd> solver(b);
  mu_ -= a * solver.solve(given_.h * mu_ - measurement);
  sigma_ -= a * (solver.solve(given_.h) * sigma_);
}

}  // namespace kalman
