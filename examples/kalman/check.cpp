// SPDX-License-Identifier: BSL-1.0
#include "check.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>

#include <Eigen/Cholesky>

#include <muster/device/tensor_compare.hpp>

#include "filter.hpp"
#include "runs.hpp"

namespace kalman {

double check(const char* what, const muster::tensor& found, const Eigen::MatrixXd& expected) {
  // Of its own accord a maximum may leave NaN out.
  const double most = (map_of(found).cast<double>() - expected).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
  const double error = most / expected.cwiseAbs().maxCoeff();
  if (error <= tolerance) return error;
  std::ostringstream message;
  message << what << " differs by " << error << " from the same in double";
  throw std::runtime_error(std::move(message).str());
}

void require_covariance(const muster::tensor& found) {
  const Eigen::MatrixXd sigma = map_of(found).cast<double>();
  const double most = (sigma - sigma.transpose()).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
  if (!(most <= tolerance * sigma.cwiseAbs().maxCoeff())) {
    throw std::runtime_error("Sigma is not symmetric");
  }
  if (Eigen::LLT<Eigen::MatrixXd>(sigma).info() != Eigen::Success) {
    throw std::runtime_error("Sigma is not positive definite");
  }
}

void require_same(const char* what, const muster::tensor& a, const muster::tensor& b) {
  if (!muster::equal(a, b)) throw std::runtime_error(std::string(what) + " was not the same in both runs");
}

checked_run::checked_run(const problem& given, std::size_t steps) {
  reference exact(given);
  const auto found = run_filter(given, steps, place::one_thread, [&](std::size_t step, const muster::graph_plan& plan) {
    exact.step(given.measurement(step));
    largest_error = std::max(
        {largest_error, check("mu", plan.value("mu"), exact.mu()), check("Sigma", plan.value("Sigma"), exact.sigma())});
  });
  mu = found.mu;
  sigma = found.sigma;
}

}  // namespace kalman
