// SPDX-License-Identifier: BSL-1.0
// What tensors ask a device to do.
#include <algorithm>
#include <array>
#include <optional>

#include <muster/base/error.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/device/tensor.hpp>

#include "cuda_block.hpp"
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
  if (to.device() != from.device()) return copy_from_device(to, from);
  copy_here(to, from);
}

// By way of the host where neither reaches the other. What is not in a row is put into one first, where it is.
void cuda_device::copy_from_device(const tensor& to, const tensor& from) {
  auto& other = dynamic_cast<cuda_device&>(from.storage()->on_device()->operations());
  if (!reaches(other)) return to.copy_from(from.to(device::cpu()));
  if (!from.is_contiguous()) return copy_from_device(to, from.contiguous());
  if (!to.is_contiguous()) return copy_here(to, from.to(where_));
  copy_from_peer(to, from, other);
}

// This device's stream copies when the other's has come to what it was given before, and the other's goes on when that
// is done; if it cannot be told to, the copy is waited for here, or it would read what was given to others meanwhile.
// The driver copies directly what this device was let to reach, and all else by way of the host.
void cuda_device::copy_from_peer(const tensor& to, const tensor& from, cuda_device& peer) {
  const auto first = from.device_address();
  const auto there = to.device_address();
  std::optional<cuda_event> given;
  {
    const scope theirs(peer);
    given.emplace(*driver_);
    peer.compute_->record(*given);
  }
  const scope current(*this);
  dynamic_cast<const detail::cuda_memory_block&>(*from.storage()->on_device()).open_to(*this);
  cuda_event done(*driver_);
  compute_->wait_for(*given);
  driver_->copy_between_async(there, context_, first, peer.context_, to.nbytes(), compute_->handle());
  try {
    compute_->record(done);
    const scope theirs(peer);
    peer.compute_->wait_for(done);
    given.reset();
  } catch (...) {
    static_cast<void>(driver_->stream_synchronize.attempt(compute_->handle()));
    throw;
  }
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
  driver_->copy_async(to.device_address(), reinterpret_cast<CUdeviceptr>(from.const_data()), to.nbytes(),
                      compute_->handle());
  compute_->synchronize();
}

void cuda_device::copy_to_host(const tensor& to, const tensor& from) {
  if (!from.is_contiguous()) return copy_to_host(to, from.contiguous());
  if (!to.is_contiguous()) return to.copy_from(from.to(device::cpu()));
  const scope current(*this);
  driver_->copy_async(reinterpret_cast<CUdeviceptr>(to.data()), from.device_address(), to.nbytes(), compute_->handle());
  compute_->synchronize();
  require_awaited();
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
