// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <muster/cuda/driver.hpp>

namespace muster::test {

/// Tests that want a GPU, or the library that stands in for one.
class gpu_test : public testing::Test {
protected:
  void SetUp() override {
    if (const auto problem = cuda_driver::problem()) GTEST_SKIP() << "no GPU: " << *problem;
  }
};

}  // namespace muster::test
