// SPDX-License-Identifier: BSL-1.0
// What tensors ask a device to do.
#include <muster/base/error.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/device/tensor.hpp>

#include "kernel_set.hpp"

namespace muster {

namespace {

detail::cuda_view view_of(const tensor& what) {
  return {.first = what.device_address(), .type = what.dtype(), .shape = what.shape(), .strides = what.strides()};
}

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

}  // namespace muster
