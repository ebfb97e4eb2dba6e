// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <muster/base/cpu_list.hpp>

#include "temporary_directory.hpp"

namespace muster::test {

/// The files of a machine with GPUs, as its driver writes them.
class made_up_gpus {
public:
  [[nodiscard]] const std::filesystem::path& root() const { return directory_.path(); }

  /// A GPU, by its address; `minor` is the number of its file in /dev.
  void add(const std::string& address, unsigned minor, const std::string& uuid, const std::string& excluded = "No") {
    directory_.write("proc/driver/nvidia/gpus/" + address + "/information",
                     "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 0\nGPU UUID: \t " + uuid +
                         "\nVideo BIOS: \t 96.00.5e.00.01\nBus Type: \t PCIe\nBus Location: \t " + address +
                         "\nDevice Minor: \t " + std::to_string(minor) + "\nGPU Excluded:\t " + excluded + "\n");
  }
  void add_file(const std::string& name) { directory_.write("dev/" + name, ""); }
  /// Says which processors are near one.
  void place(const std::string& address, const cpu_list& cpus) {
    directory_.write("sys/bus/pci/devices/" + address + "/local_cpulist", describe(cpus) + "\n");
  }
  /// Three of them.
  void add_three() {
    add("0000:1b:00.0", 0, "GPU-aaaa1111-0000-0000-0000-000000000000");
    add("0000:43:00.0", 1, "GPU-aaaa2222-0000-0000-0000-000000000000");
    add("0000:a2:00.0", 2, "GPU-bbbb3333-0000-0000-0000-000000000000");
  }

private:
  temporary_directory directory_;
};

/// A variable of this program's environment, as it was before afterwards.
class variable {
public:
  explicit variable(const char* name) : name_(name) {
    if (const char* const value = std::getenv(name)) before_ = value;
    ::unsetenv(name);
  }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;
  ~variable() {
    if (before_) {
      set(*before_);
    } else {
      ::unsetenv(name_);
    }
  }
  void set(const std::string& value) const { ::setenv(name_, value.c_str(), 1); }

private:
  const char* const name_;
  std::optional<std::string> before_;
};

}  // namespace muster::test
