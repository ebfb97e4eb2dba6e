// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <muster/cuda/cuda_device.hpp>
#include <muster/cuda/driver.hpp>

namespace muster::test {

/// Tests that want a GPU, or the library that stands in for one.
class gpu_test : public testing::Test {
protected:
  void SetUp() override {
    if (const auto problem = cuda_driver::problem()) GTEST_SKIP() << "no GPU: " << *problem;
  }

  // Devices stay open, and keep memory for who asks next.
  void TearDown() override {
    if (IsSkipped()) return;
    for (unsigned index = 0; index < cuda_device::count(); ++index) {
      cuda_device::open(device::cuda(static_cast<std::uint16_t>(index)))->trim();
    }
  }
};

}  // namespace muster::test
