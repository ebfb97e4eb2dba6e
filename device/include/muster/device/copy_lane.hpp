// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/device/tensor.hpp>

namespace muster {

/// Copies between the host and a device that the device makes beside what it computes; nobody waits for them but who
/// says so. Made by device_operations::make_copy_lane(), of pages that are pinned (muster/cuda/pinned_memory.hpp).
///
/// It works as follows. What is copied is written into memory that what was computed before may still be reading, since
/// memory is free again in the order in which devices compute, or is what was computed before; so copies begin behind
/// that. Whoever has called begin(), gives the device more to compute, copies, and calls await() where the next
/// computation wants what was copied, or wait() where the program does:
///
///     lane->begin();
///     lane->copy(next_there, next);      // beside what is computed of `there`
///     lane->copy(result, result_there);
///     compute(there);
///     lane->await();
///     compute(next_there);
///     lane->wait();
///     print(result);
///
/// Both tensors of a copy have to be there, and what is copied has to stay as it is, until the device has passed
/// await(), or wait() has returned, or the lane has gone.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: keeps the device.
class copy_lane {
public:
  copy_lane() = default;
  copy_lane(const copy_lane&) = delete;
  copy_lane& operator=(const copy_lane&) = delete;
  /// Returns when all copies have been made. Unblocked by: the device, when it is done with them, or breaks.
  virtual ~copy_lane() = default;

  /// Whether the device reads and writes that tensor by itself: its elements are in a row, in pages of the host's that
  /// are pinned (device_operations::pin). A copy of any other makes the host wait.
  [[nodiscard]] virtual bool takes(const tensor& here) const = 0;
  /// Copies from now on are made when the device has done all that it was given before this.
  virtual void begin() = 0;
  /// Returns at once. Requires: begin() was called since the tensor on the device was allocated, computed, or, of one
  /// of another process, first used here otherwise; of the two, one is contiguous on the lane's device, and takes() the
  /// other; elements of one dtype and shape.
  virtual void copy(const tensor& to, const tensor& from) = 0;
  /// What the device is given from now on waits for the copies that were asked for so far. Returns at once.
  virtual void await() = 0;
  /// Returns when the copies that were asked for so far have been made. Throws errc::device_lost where they never are,
  /// and errc::peer_lost, once, when a tensor of another process was never finished there.
  /// Unblocked by: the device, when it is done with them, or breaks.
  virtual void wait() = 0;
};

}  // namespace muster
