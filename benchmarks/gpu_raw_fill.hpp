// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>

#include <muster/cuda/cuda_device.hpp>
#include <muster/device/tensor.hpp>

namespace muster::detail {
struct fill_arguments;
}

namespace bench {

/// What tensor::fill launches for one f32, of the same image and with the same argument, by the driver's own calls.
///
/// Thread safety: an object belongs to its thread.
class raw_fill {
public:
  /// `number`: of one f32, on that device.
  raw_fill(std::shared_ptr<muster::cuda_device> on, muster::tensor number, float value);
  raw_fill(const raw_fill&) = delete;
  raw_fill& operator=(const raw_fill&) = delete;
  ~raw_fill();

  /// Launches it, and returns when it has been done. Requires: the device's context is the calling thread's.
  void run();

private:
  const std::shared_ptr<muster::cuda_device> on_;
  const muster::tensor number_;
  std::unique_ptr<muster::detail::fill_arguments> argument_;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
};

}  // namespace bench
