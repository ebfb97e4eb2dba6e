// SPDX-License-Identifier: BSL-1.0
#pragma once

// Queues of work for a device, and marks in them.

#include <memory>
#include <utility>

#include <muster/cuda/driver.hpp>

namespace muster {

/// A mark in a stream: reached when all has been done that the stream was given before.
///
/// Requires, for all members: the context that it was made in is current, as cuda_device::scope makes it.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: borrows the driver.
class cuda_event {
public:
  /// A mark that no stream has recorded yet. Throws muster::error when the driver cannot make one.
  explicit cuda_event(const cuda_driver& driver);
  /// Takes the mark of `other`, which may then only be assigned to or destroyed.
  cuda_event(cuda_event&& other) noexcept : driver_(other.driver_), handle_(std::exchange(other.handle_, nullptr)) {}
  cuda_event& operator=(cuda_event&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~cuda_event();

  /// Returns the driver's handle, for calls of the driver. Lifetime: that of this object.
  [[nodiscard]] CUevent handle() const noexcept { return handle_; }
  /// Whether it has been reached; true for one that was never recorded.
  [[nodiscard]] bool is_reached() const;
  /// Unblocked by: the device, when it gets there, or breaks.
  void wait() const;

private:
  const cuda_driver* driver_;
  CUevent handle_ = nullptr;
};

/// A queue of work for a device: what it is given is done in that order, beside what other streams are given. It does
/// not wait for the default stream of the runtime API, nor that for it.
///
/// Requires, for all members: as cuda_event.
/// Thread safety: distinct objects: safe. Shared objects: safe, except the destructor.
/// Lifetime: borrows the driver. Destroying it does not wait; what it was given is done.
class cuda_stream {
public:
  /// Makes a stream in the context that is current. Throws muster::error when the driver cannot make one.
  explicit cuda_stream(const cuda_driver& driver);
  cuda_stream(const cuda_stream&) = delete;
  cuda_stream& operator=(const cuda_stream&) = delete;
  ~cuda_stream();

  /// Returns the driver's handle, for calls of the driver and launches of kernels. Lifetime: that of this object.
  [[nodiscard]] CUstream handle() const noexcept { return handle_; }
  /// Sets the mark behind all that the stream was given until now. A mark that was set before is moved here.
  void record(cuda_event& mark) const;
  /// What is given to this stream from now on waits until the mark has been reached.
  void wait_for(const cuda_event& mark) const;
  /// Whether all that it was given has been done. Throws errc::device_lost when that never will be.
  [[nodiscard]] bool is_idle() const;
  /// Unblocked by: the device, when all has been done, or when it breaks. Throws errc::device_lost then.
  void synchronize() const;

private:
  const cuda_driver& driver_;
  CUstream handle_ = nullptr;
};

}  // namespace muster
