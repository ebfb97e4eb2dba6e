// SPDX-License-Identifier: BSL-1.0
#include "cuda_copy_lane.hpp"

#include <utility>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/error.hpp>
#include <muster/device/storage.hpp>

#include "cuda_devices.hpp"
#include "device_share.hpp"

namespace muster {

namespace detail {

cuda_copy_lane::cuda_copy_lane(std::shared_ptr<cuda_device> of) : of_(std::move(of)) {
  const cuda_device::scope current(*of_);
  computed_.emplace(of_->driver());
  copied_.emplace(of_->driver());
}

// A device that is lost reads nothing any more. In a forked child it is its parent's.
cuda_copy_lane::~cuda_copy_lane() {
  if (!of_->is_here()) {
    leave_to_parent(std::move(computed_), std::move(copied_));
    return;
  }
  try {
    const cuda_device::scope current(*of_);
    of_->copies().synchronize();
    copied_.reset();
    computed_.reset();
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): the device is lost, and they with it
  }
}

bool cuda_copy_lane::takes(const tensor& here) const {
  if (!here.device().is_cpu() || !here.is_shared() || !here.is_contiguous()) return false;
  return cuda_devices::of_program().pins().has(here.storage()->bytes().data());
}

void cuda_copy_lane::begin() {
  const cuda_device::scope current(*of_);
  of_->compute().record(*computed_);
  of_->copies().wait_for(*computed_);
}

void cuda_copy_lane::copy(const tensor& to, const tensor& from) {
  to.require_writable();
  const auto target = address_of(to);
  const auto source = address_of(from);
  const cuda_device::scope current(*of_);
  of_->driver().copy_async(target, source, to.nbytes(), of_->copies().handle());
}

// One of another process is opened when its address is first asked for: the stream compute() waits then for whoever
// writes it, so the copies wait for that stream once more.
CUdeviceptr cuda_copy_lane::address_of(const tensor& which) {
  if (which.device().is_cpu()) return reinterpret_cast<CUdeviceptr>(which.const_data());
  const auto* const received = dynamic_cast<const received_block*>(&*which.storage()->on_device());
  const bool is_new = received != nullptr && !received->is_open();
  const auto address = which.device_address();
  if (is_new) begin();
  return address;
}

void cuda_copy_lane::await() {
  const cuda_device::scope current(*of_);
  of_->copies().record(*copied_);
  of_->compute().wait_for(*copied_);
}

void cuda_copy_lane::wait() {
  const cuda_device::scope current(*of_);
  of_->copies().synchronize();
  of_->require_awaited();
}

}  // namespace detail

std::unique_ptr<copy_lane> cuda_device::make_copy_lane() {
  return std::make_unique<detail::cuda_copy_lane>(shared_from_this());
}

}  // namespace muster
