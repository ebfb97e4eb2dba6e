// SPDX-License-Identifier: BSL-1.0
#pragma once

// Copies between the host and a GPU at the full speed of what connects them: the driver reads and writes pages by
// itself that it was told of before, and no others.
//
//     const muster::pinned_memory pinned(*gpu, images);          // once, for what is copied often
//     batch.copy_from(images.slice(0, 512));

#include <memory>

#include <muster/device/tensor.hpp>

namespace muster {

class cuda_device;

namespace detail {
class pin_table;
}

/// Keeps the pages of a tensor registered with the driver, for all GPUs of this process (cuMemHostRegister). Others may
/// pin the same tensor, or views of it, meanwhile.
///
/// Copies of tensors are waited for, pinned or not; those that a program asks the driver for, of pinned pages, return
/// at once. Letting go waits until all GPUs that this process has opened have done what they were given until then.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Process safety: belongs to its process; each that copies pins for itself.
/// Lifetime: keeps the tensor's memory, its device, and the pages in memory: they cannot be swapped out, nor be given
/// to others when all tensors in them have gone.
/// Cost: some tenths of a millisecond for each MiB, as long as the pages exist already: worth it from the third copy
/// on.
class pinned_memory {
public:
  /// Pins nothing.
  pinned_memory() noexcept = default;
  /// The whole memory that `what` is a view of: of a tensor in shared memory (memory::shared) of more than 64 KiB.
  /// Smaller ones are copied by the driver's own pages anyway: nothing is pinned then, and is_pinned() is false.
  /// Throws errc::invalid_argument for a tensor elsewhere; errc::out_of_memory where the system has no room for pages
  /// that stay.
  pinned_memory(cuda_device& on, const tensor& what);
  /// Takes over what `other` pins, which pins nothing afterwards.
  pinned_memory(pinned_memory&& other) noexcept = default;
  pinned_memory& operator=(pinned_memory&& other) noexcept;
  ~pinned_memory();

  /// Returns whether pages are registered; false for a tensor that is too small.
  [[nodiscard]] bool is_pinned() const noexcept { return device_ != nullptr; }
  /// Returns the tensor whose pages these are.
  [[nodiscard]] const tensor& what() const noexcept { return what_; }

private:
  tensor what_;
  std::shared_ptr<cuda_device> device_;
};

}  // namespace muster
