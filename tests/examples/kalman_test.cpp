// SPDX-License-Identifier: BSL-1.0
// The checks of the Kalman filter example.
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kalman/check.hpp"
#include "kalman/filter.hpp"

namespace kalman {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::size_t n = 5;
constexpr auto no_number = std::numeric_limits<float>::quiet_NaN();

Eigen::MatrixXd identity() { return Eigen::MatrixXd::Identity(n, n); }

TEST(KalmanCheck, AnElementThatIsNoNumberDiffersWhereverItIs) {
  EXPECT_EQ(check("Sigma", tensor_of(identity()), identity()), 0);
  for (std::size_t element = 0; element < n * n; ++element) {
    const auto found = tensor_of(identity());
    found.span<float>()[element] = no_number;
    EXPECT_THAT([&] { check("Sigma", found, identity()); },
                ThrowsMessage<std::runtime_error>(HasSubstr("Sigma differs by")))
        << element;
  }
}

TEST(KalmanCheck, WhatIsComparedWithANumberThatIsNoneDiffers) {
  Eigen::MatrixXd expected = identity();
  expected(2, 3) = no_number;
  EXPECT_THROW(check("Sigma", tensor_of(identity()), expected), std::runtime_error);
}

TEST(KalmanCheck, ACovarianceWithAnElementThatIsNoNumberIsRefused) {
  require_covariance(tensor_of(identity()));
  for (std::size_t element = 0; element < n * n; ++element) {
    const auto found = tensor_of(identity());
    found.span<float>()[element] = no_number;
    EXPECT_THROW(require_covariance(found), std::runtime_error) << element;
  }
}

}  // namespace
}  // namespace kalman
