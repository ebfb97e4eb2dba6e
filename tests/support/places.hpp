// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>

namespace muster::test {

/// A place of tensors' elements, for suites that run over several: shared memory of the host. Of GPUs:
/// gpu_fixture.hpp's on_gpu.
struct on_host {
  using fixture = testing::Test;
  static constexpr device where = device::cpu();
};

}  // namespace muster::test
