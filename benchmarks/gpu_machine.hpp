// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdlib>
#include <string>

#include <muster/base/device.hpp>
#include <muster/base/error.hpp>
#include <muster/cuda/driver.hpp>
#include <muster/pool/device_choice.hpp>

namespace bench {

inline constexpr muster::device gpu_0 = muster::device::cuda(0);

/// The first GPU, for pools and worlds. Where another library plays the driver, the files of /proc that say what GPUs
/// there are lie below the directory BENCH_GPU_MACHINE.
[[nodiscard]] inline muster::device_choice first_gpu() {
  const muster::device_choice choice({gpu_0});
  const char* const root = std::getenv("BENCH_GPU_MACHINE");
  return root == nullptr ? choice : choice.on_machine(root);
}

/// Why the driver cannot be used here; empty where it can.
[[nodiscard]] inline std::string why_no_driver() {
  const auto problem = muster::cuda_driver::problem();
  return problem ? "not measured: no device: " + *problem : std::string();
}

/// The same of pools and worlds with devices.
[[nodiscard]] inline std::string why_no_gpu() {
  if (auto why = why_no_driver(); !why.empty()) return why;
  try {
    static_cast<void>(first_gpu().resolve());
    return {};
  } catch (const muster::error& failure) {
    return std::string("not measured: no device: ") + failure.what();
  }
}

}  // namespace bench
