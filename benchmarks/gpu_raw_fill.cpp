// SPDX-License-Identifier: BSL-1.0
#include "gpu_raw_fill.hpp"

#include <cstring>
#include <utility>

#include "kernel_arguments.hpp"
#include "kernel_image.hpp"
#include "platform.hpp"

namespace bench {

using muster::cuda_device;
using muster::detail::fill_arguments;
using muster::detail::kernel_threads;

raw_fill::raw_fill(std::shared_ptr<cuda_device> on, muster::tensor number, float value)
    : on_(std::move(on)), number_(std::move(number)), argument_(std::make_unique<fill_arguments>()) {
  auto* const address = reinterpret_cast<std::byte*>(number_.device_address());  // NOLINT(performance-no-int-to-ptr)
  argument_->elements = {.first = {address, address},
                         .count = 1,
                         .is_packed = false,
                         .head = 0,
                         .dimensions = 1,
                         .sizes = {1},
                         .steps = {{sizeof value}, {sizeof value}}};
  argument_->element_bytes = sizeof value;
  std::memcpy(argument_->element, &value, sizeof value);
  const cuda_device::scope current(*on_);
  on_->driver().module_load(&module_, muster::detail::kernel_image());
  on_->driver().module_function(&kernel_, module_, "muster_fill");
}

raw_fill::~raw_fill() {
  const cuda_device::scope current(*on_);
  static_cast<void>(on_->driver().module_unload.attempt(module_));
}

void raw_fill::run() {
  void* arguments[] = {argument_.get()};
  auto* const stream = on_->compute().handle();
  on_->driver().launch(kernel_, 1, 1, 1, kernel_threads, 1, 1, 0, stream, arguments, nullptr);
  on_->driver().stream_synchronize(stream);
}

}  // namespace bench
