// SPDX-License-Identifier: BSL-1.0
#pragma once

// Groups of forked processes with a device each, or several on one where there are not enough.

#include <cstddef>
#include <functional>

#include <gtest/gtest.h>

#include <muster/collectives/group.hpp>

#include "../fake_nccl/fake_nccl.hpp"
#include "group_support.hpp"

namespace muster::test {

/// Says, before NCCL is called first in this process, that the rank is on a host of its own: then ranks may share a
/// device, for what comes out, not for how fast. Returns the rank's device.
device take_device(const group& mine);

/// What a rank with a device does.
using device_body = std::function<void(group&, device)>;

/// Runs `run` in all ranks of a new group of processes, and waits until all have ended well.
void run_on_devices(std::size_t ranks, const device_body& run, const group_options& options = {});

/// Tests that want a GPU and NCCL, or the libraries that stand in for them. This process calls neither: what it forks
/// could not.
class nccl_test : public testing::Test {
protected:
  void SetUp() override;
  /// Whether NCCL is the fake one, so that failures can be asked for.
  [[nodiscard]] static bool is_fake();
};

}  // namespace muster::test
