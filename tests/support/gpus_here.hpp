// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <muster/cuda/cuda_device.hpp>
#include <muster/pool/device_choice.hpp>

#include "made_up_gpus.hpp"

namespace muster::test {

/// The GPUs that the driver has, as pools and worlds choose them. Where the driver is the fake one, the machine's files
/// that say what there is are made up.
class gpus_here {
public:
  gpus_here() {
    const auto count = cuda_device::count();
    for (unsigned index = 0; index < count; ++index) {
      all_.push_back(device::cuda(static_cast<std::uint16_t>(index)));
      const auto number = std::to_string(index);
      machine_.add("0000:0" + number + ":00.0", index, "GPU-0000000" + number + "-0000-0000-0000-000000000000");
    }
  }

  [[nodiscard]] device_choice all() const {
    if (all_.empty()) return {};
    const device_choice choice(all_);
    return std::filesystem::exists("/proc/driver/nvidia/gpus") ? choice : choice.on_machine(machine_.root());
  }

private:
  made_up_gpus machine_;
  std::vector<device> all_;
};

}  // namespace muster::test
