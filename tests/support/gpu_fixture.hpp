// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <muster/cuda/cuda_device.hpp>
#include <muster/cuda/driver.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>

#include "../fake_cuda/fake_cuda.hpp"
#include "processes.hpp"
#include "temporary_directory.hpp"

namespace muster::test {

/// Tests that want a GPU, or the library that stands in for one.
class gpu_test : public testing::Test {
protected:
  void SetUp() override {
    if (const auto problem = cuda_driver::problem()) GTEST_SKIP() << "no GPU: " << *problem;
  }

  /// Whether memory of devices is sent by handle, and there for as long as its owner lives, and no longer. Makes no
  /// context.
  [[nodiscard]] static bool goes_by_handle() {
    const auto driver = cuda_driver::load();
    CUdevice first = 0;
    int found = 0;
    driver->device_get(&first, 0);
    driver->device_attribute(&found, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, first);
    return found == 0;
  }

  // Devices stay open, and keep memory for who asks next.
  void TearDown() override {
    if (IsSkipped()) return;
    for (unsigned index = 0; index < cuda_device::count(); ++index) {
      cuda_device::open(device::cuda(static_cast<std::uint16_t>(index)))->trim();
    }
  }
};

/// A place of elements, for suites that run over several.
struct on_gpu {
  using fixture = gpu_test;
  static constexpr device where = device::cuda(0);
};

/// While it lives, streams of the driver that stands in are late, at random: those that are made here, and those of
/// processes that are started. Of a real one nothing changes.
class late_streams {
public:
  explicit late_streams(unsigned seed) { ::setenv("FAKE_CUDA_DELAY", std::to_string(seed).c_str(), 1); }
  late_streams(const late_streams&) = delete;
  late_streams& operator=(const late_streams&) = delete;
  ~late_streams() { ::unsetenv("FAKE_CUDA_DELAY"); }
};

/// Tests after which all processes together have as much of the devices' memory as before, whoever was killed. A real
/// driver is asked only where MUSTER_GPU_ALONE is set: else others may have memory of its devices too.
template <class Fixture>
class gives_memory_back : public Fixture {
protected:
  // Said before the driver is loaded, which reads it once.
  void SetUp() override {
    static const temporary_directory counts_of_all;
    ::setenv("FAKE_CUDA_SHARED", counts_of_all.path().c_str(), 1);
    Fixture::SetUp();
    if (testing::Test::IsSkipped()) return;
    if (!fake_cuda().is_there()) use_once();
    before_ = free_bytes();
  }
  void TearDown() override {
    Fixture::TearDown();
    if (testing::Test::IsSkipped() || !(fake_cuda().is_there() || std::getenv("MUSTER_GPU_ALONE") != nullptr)) return;
    const auto is_back = [this] { return fake_cuda().is_there() ? free_bytes() == before_ : free_bytes() >= before_; };
    EXPECT_TRUE(eventually(is_back)) << before_ << " bytes were free before, " << free_bytes() << " are now";
  }

private:
  // A context takes some more then.
  static void use_once() {
    const auto first = tensor::ones<float>({1}, device::cuda(0));
    EXPECT_TRUE(equal(first, tensor::ones<float>({1})));
  }
  // Of all devices. What this process keeps for who asks next is free too.
  static std::size_t free_bytes() {
    std::size_t sum = 0;
    for (unsigned index = 0; index < cuda_device::count(); ++index) {
      const auto each = cuda_device::open(device::cuda(static_cast<std::uint16_t>(index)));
      each->trim();
      sum += each->memory().free_bytes;
    }
    return sum;
  }

  std::size_t before_ = 0;
};

}  // namespace muster::test
