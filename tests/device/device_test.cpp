// SPDX-License-Identifier: BSL-1.0
#include <muster/device/device.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/device/tensor.hpp>

namespace muster::device_test {
namespace {

TEST(Device, TensorsAreOnTheHost) {
  EXPECT_EQ(tensor().device(), device::cpu());
  EXPECT_EQ(tensor::zeros<float>({2, 3}).device(), device::cpu());
  EXPECT_EQ(tensor::zeros<float>({2, 3}, memory::local).device(), device::cpu());
}

TEST(Device, TensorThatIsThereAlreadyIsTheSameOne) {
  const auto given = tensor::zeros<float>({2, 3});
  EXPECT_EQ(given.to(device::cpu()).data(), given.data());
}

TEST(Device, TensorGoesToNoDeviceThatThisLibraryDoesNotHave) {
  try {
    static_cast<void>(tensor::zeros<float>({2, 3}).to(device::cuda(1)));
    ADD_FAILURE();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::no_device);
    EXPECT_THAT(refused.what(), testing::AllOf(testing::HasSubstr("cuda:1"), testing::HasSubstr("muster::cuda")));
  }
}

}  // namespace
}  // namespace muster::device_test
