// SPDX-License-Identifier: BSL-1.0
// What tensors ask a device to do.
#include <algorithm>
#include <array>

#include <muster/base/error.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/device/tensor.hpp>

#include "kernel_set.hpp"

namespace muster {

namespace {

detail::cuda_view view_of(const tensor& what) {
  return {.first = what.device_address(), .type = what.dtype(), .shape = what.shape(), .strides = what.strides()};
}

CUdeviceptr address_of(const tensor& what) { return what.device_address(); }

}  // namespace

void cuda_device::copy(const tensor& to, const tensor& from) {
  if (to.device().is_cpu()) return copy_to_host(to, from);
  if (from.device().is_cpu()) return copy_from_host(to, from);
  // Between devices by way of the host, which works wherever they are. TODO(perf): directly, where they are peers.
  if (to.device() != from.device()) return to.copy_from(from.to(device::cpu()));
  copy_here(to, from);
}

void cuda_device::copy_here(const tensor& to, const tensor& from) {
  const scope current(*this);
  if (to.is_contiguous() && from.is_contiguous()) {
    driver_->copy_async(to.device_address(), from.device_address(), to.nbytes(), compute_->handle());
  } else {
    kernels_->copy(compute_->handle(), view_of(to), view_of(from));
  }
}

// The driver copies what is in a row; what is not is put into a row first, on the side where it lies.
void cuda_device::copy_from_host(const tensor& to, const tensor& from) {
  if (!from.is_contiguous()) return copy_from_host(to, from.contiguous());
  if (!to.is_contiguous()) return copy_here(to, from.to(where_));
  const scope current(*this);
  driver_->copy_async(to.device_address(), reinterpret_cast<CUdeviceptr>(from.data()), to.nbytes(), compute_->handle());
  compute_->synchronize();
}

void cuda_device::copy_to_host(const tensor& to, const tensor& from) {
  if (!from.is_contiguous()) return copy_to_host(to, from.contiguous());
  if (!to.is_contiguous()) return to.copy_from(from.to(device::cpu()));
  const scope current(*this);
  driver_->copy_async(reinterpret_cast<CUdeviceptr>(to.data()), from.device_address(), to.nbytes(), compute_->handle());
  compute_->synchronize();
}

void cuda_device::fill(const tensor& which, std::span<const std::byte> element) {
  const scope current(*this);
  kernels_->fill(compute_->handle(), view_of(which), element);
}

void cuda_device::convert(const tensor& to, const tensor& from) {
  const scope current(*this);
  kernels_->convert(compute_->handle(), view_of(to), view_of(from));
}

void cuda_device::accumulate(const tensor& into, const tensor& from, element_op op) {
  const scope current(*this);
  kernels_->accumulate(compute_->handle(), view_of(into), view_of(from), op);
}

void cuda_device::scale(const tensor& which, double factor) {
  const scope current(*this);
  kernels_->scale(compute_->handle(), view_of(which), factor);
}

void cuda_device::axpy(double factor, const tensor& x, const tensor& y) {
  const scope current(*this);
  kernels_->axpy(compute_->handle(), factor, view_of(x), view_of(y));
}

void cuda_device::divide(const tensor& which, double divisor) {
  const scope current(*this);
  kernels_->divide(compute_->handle(), view_of(which), divisor);
}

void cuda_device::apply(const rule_step& rule, const rule_step_tensors& tensors) {
  using arrays_of = detail::cuda_rule_arrays;
  const auto most = [](const auto& list, std::size_t count) { return list.first(std::min(list.size(), count)); };
  std::array<CUdeviceptr, arrays_of::most_gradients> gradients{};
  const auto given = most(tensors.gradients, gradients.size());
  std::ranges::transform(given, gradients.begin(), address_of);
  arrays_of arrays{.type = tensors.type,
                   .count = tensors.count,
                   .gradients = std::span(gradients).first(given.size()),
                   .weights = tensors.weights,
                   .value = tensors.value != nullptr ? address_of(*tensors.value) : 0,
                   .new_value = address_of(*tensors.new_value)};
  std::ranges::transform(most(tensors.old_states, arrays_of::most_states), arrays.old_states.begin(), address_of);
  std::ranges::transform(most(tensors.new_states, arrays_of::most_states), arrays.new_states.begin(), address_of);
  const scope current(*this);
  kernels_->apply_rule(compute_->handle(), rule, arrays);
}

}  // namespace muster
