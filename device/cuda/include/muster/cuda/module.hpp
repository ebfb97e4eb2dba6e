// SPDX-License-Identifier: BSL-1.0
#pragma once

// Kernels of a program's own, as nvcc -fatbin or -cubin compiles them, without the runtime API.
//
//     struct my_kernels {
//       explicit my_kernels(muster::cuda_device& on) : module(on, image), relu(module.kernel("relu")) {}
//       muster::cuda_module module;
//       muster::cuda_kernel relu;
//     };
//
//     auto& kernels = gpu->part<my_kernels>();                                  // loaded once
//     kernels.relu.launch(elements, x.device_data<float>(), elements);          // one thread for each

#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

#include <muster/cuda/cuda_device.hpp>

namespace muster {

/// A function that the device can run.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: borrows its module.
class cuda_kernel {
public:
  /// How many threads a block has that launch() starts.
  static constexpr unsigned threads_per_block = 256;

  /// For cuda_module::kernel(): `what` is a function of a module that was loaded to `on`.
  cuda_kernel(const cuda_device& on, CUfunction what) noexcept : on_(&on), what_(what) {}

  /// Gives it to the device's compute stream, with at least `threads` threads in blocks of 256; none for 0. What it
  /// takes must be of exactly the types that it has as parameters. Throws muster::error when that fails at once; what
  /// fails later is told by a later call.
  template <class... Arguments>
  void launch(std::size_t threads, Arguments... arguments) const {
    std::array<void*, sizeof...(Arguments)> addresses{&arguments...};
    if (threads != 0) launch_with(threads, addresses.data());
  }

private:
  void launch_with(std::size_t threads, void** arguments) const;

  const cuda_device* on_;
  CUfunction what_;
};

/// Kernels, loaded to a device.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: borrows the device: one of its parts, or something that goes before it.
class cuda_module {
public:
  /// `image`: what nvcc has made. Throws errc::invalid_argument where nothing in it is for this device.
  cuda_module(const cuda_device& on, const void* image);
  cuda_module(const cuda_module&) = delete;
  cuda_module& operator=(const cuda_module&) = delete;
  ~cuda_module();

  /// The extern "C" __global__ function of that name. Throws errc::invalid_argument when there is none.
  [[nodiscard]] cuda_kernel kernel(const std::string& name) const;

private:
  const cuda_device& on_;
  CUmodule module_ = nullptr;
};

}  // namespace muster
