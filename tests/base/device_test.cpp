// SPDX-License-Identifier: BSL-1.0
#include <muster/base/device.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::device_name_test {
namespace {

TEST(Device, IsTheHostUnlessSaidOtherwise) {
  EXPECT_EQ(device(), device::cpu());
  EXPECT_TRUE(device().is_cpu());
  EXPECT_EQ(device::cuda(), device::cuda(0));
  EXPECT_NE(device::cuda(), device::cpu());
  EXPECT_LT(device::cuda(1), device::cuda(2));
  EXPECT_FALSE(device::cuda(1).is_cpu());
}

TEST(Device, IsReadFromWhatItPrints) {
  for (const auto which : {device::cpu(), device::cuda(), device::cuda(12), device::cuda(UINT16_MAX)}) {
    EXPECT_EQ(device::parse(text(which)), which);
  }
  EXPECT_EQ(text(device::cpu()), "cpu");
  EXPECT_EQ(text(device::cuda(3)), "cuda:3");
  EXPECT_EQ(device::parse("cuda"), device::cuda(0));
}

TEST(Device, WhatNamesNoneIsRefusedByName) {
  for (const auto* const name : {"", "CPU", "cpu:0", "cuda:", "cuda:-1", "cuda:1x", "cuda:65536", "rocm:0"}) {
    try {
      static_cast<void>(device::parse(name));
      ADD_FAILURE() << name;
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::invalid_argument);
      EXPECT_THAT(refused.what(), testing::StartsWith(text("'", name, "' names no device")));
    }
  }
}

}  // namespace
}  // namespace muster::device_name_test
