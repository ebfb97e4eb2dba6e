// SPDX-License-Identifier: BSL-1.0
#pragma once

// Tensors to and from other libraries of the same process, without a copy, by DLPack: the structs that NumPy, PyTorch,
// JAX and others agree on. They are declared here as version 0.8 has them (DLManagedTensor, Python's capsule
// "dltensor") and version 1.0 (DLManagedTensorVersioned, "dltensor_versioned"), so a pointer to theirs can be cast to
// one to ours and back.

#include <cstddef>
#include <cstdint>
#include <memory>

#include <muster/device/tensor.hpp>

namespace muster {

/// DLDevice. Thread safety: a value.
struct dlpack_device {
  static constexpr std::int32_t cpu = 1;            ///< kDLCPU
  static constexpr std::int32_t cuda = 2;           ///< kDLCUDA
  static constexpr std::int32_t cuda_managed = 13;  ///< taken as a GPU's

  std::int32_t device_type = cpu;  ///< one of these
  std::int32_t device_id = 0;      ///< which GPU, as CUDA numbers them in this process; 0 for the host
};

/// DLDataType. Thread safety: a value.
struct dlpack_type {
  std::uint8_t code = 0;    ///< 0 signed, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool
  std::uint8_t bits = 0;    ///< of one lane
  std::uint16_t lanes = 1;  ///< more than 1: elements are vectors of so many numbers
};

/// DLTensor. Thread safety: a value, which points to what belongs to whoever made it.
struct dlpack_tensor {
  void* data = nullptr;             ///< where the elements begin, but for byte_offset; for a GPU, its address
  dlpack_device device;             ///< that `data` lies on
  std::int32_t ndim = 0;            ///< how many dimensions: as many numbers have `shape` and `strides`
  dlpack_type dtype;                ///< of the elements
  std::int64_t* shape = nullptr;    ///< the size of each dimension
  std::int64_t* strides = nullptr;  ///< in elements; null: contiguous
  std::uint64_t byte_offset = 0;    ///< from `data` to the first element
};

/// DLManagedTensor. Whoever has it calls its deleter once, with itself, when the elements are no longer needed.
///
/// Thread safety: one thread at a time.
struct dlpack_managed_tensor {
  dlpack_tensor dl_tensor;      ///< the elements
  void* manager_ctx = nullptr;  ///< for the deleter: what the library that made this keeps them by
  void (*deleter)(dlpack_managed_tensor*) = nullptr;  ///< null: nothing is to be released
};

/// DLPackVersion. What a minor version adds may be ignored. Thread safety: a value.
struct dlpack_version {
  std::uint32_t major = 1;  ///< of another one only version and deleter are known
  std::uint32_t minor = 0;  ///< counts additions that a reader may ignore
};

/// DLManagedTensorVersioned: the same, and says its version and what may be done with the elements.
///
/// Thread safety: one thread at a time.
struct dlpack_versioned_tensor {
  static constexpr std::uint64_t read_only = 1;  ///< a flag: nobody may write the elements
  static constexpr std::uint64_t is_copy = 2;    ///< a flag: they were copied for whoever gets this

  dlpack_version version;       ///< of the struct
  void* manager_ctx = nullptr;  ///< for the deleter: what the library that made this keeps the elements by
  void (*deleter)(dlpack_versioned_tensor*) = nullptr;  ///< null: nothing is to be released
  std::uint64_t flags = 0;                              ///< read_only and is_copy, or'ed
  dlpack_tensor dl_tensor;                              ///< the elements
};

static_assert(sizeof(dlpack_tensor) == 48 && offsetof(dlpack_tensor, dtype) == 20 &&
                  offsetof(dlpack_tensor, byte_offset) == 40 && sizeof(dlpack_managed_tensor) == 64 &&
                  sizeof(dlpack_versioned_tensor) == 80 && offsetof(dlpack_versioned_tensor, dl_tensor) == 32,
              "muster: these are DLPack's structs");

/// Calls the deleter of a managed tensor, if it has one. Thread safety: as that deleter.
struct dlpack_deleter {
  /// Calls the deleter with `left`, if there is one. Requires: `left` is not null.
  template <class Managed>
  void operator()(Managed* left) const noexcept {
    if (left->deleter != nullptr) left->deleter(left);
  }
};

/// A managed tensor that nobody has taken yet; release() gives it away. Thread safety: as std::unique_ptr.
///@{
using dlpack_handle = std::unique_ptr<dlpack_managed_tensor, dlpack_deleter>;
using dlpack_versioned_handle = std::unique_ptr<dlpack_versioned_tensor, dlpack_deleter>;
///@}

/// The same elements for another library. What it writes, all who have the tensor see. Of a tensor on a device, what
/// was given to that device for it has been done. A tensor that is read-only throws errc::invalid_argument:
/// to_dlpack_versioned() can say so.
///
/// Thread safety: as reading `what`; the deleter may be called from any thread.
/// Lifetime: keeps the memory until its deleter is called.
/// Cost: one allocation.
[[nodiscard]] dlpack_handle to_dlpack(const tensor& what);
/// The same for a library that asks for version 1 (Python: `__dlpack__(max_version=…)` of 1.0 or more), which is told
/// where the tensor is read-only.
[[nodiscard]] dlpack_versioned_handle to_dlpack_versioned(const tensor& what);

/// The same elements as a tensor, in local memory, or on a GPU: it goes to other processes by copy, and of a GPU's that
/// is said once, where cuda_device::log_to says.
///
/// On success the tensor owns `theirs`, and the last tensor of these elements calls the deleter, in whatever thread it
/// is; on failure `theirs` still belongs to the caller.
/// Throws errc::invalid_argument for elements that are neither in the CPU's memory nor in a GPU's, of a type that is no
/// dtype, of several lanes or at an address that does not suit their type; for bools on the host whose bytes are not 0
/// or 1; and for more than eight dimensions or a negative size. Requires: `theirs` is not null, and describes memory
/// that is there: nobody can check that. Thread safety: safe to call from any thread. Cost: two allocations; of bools
/// on the host one pass.
[[nodiscard]] tensor from_dlpack(dlpack_managed_tensor* theirs);
/// Elements that are read-only become a read-only tensor. Throws errc::invalid_argument, besides, for another major
/// version than 1, of which only the deleter is known.
[[nodiscard]] tensor from_dlpack(dlpack_versioned_tensor* theirs);

/// As those; on failure `theirs` is deleted.
///@{
[[nodiscard]] tensor from_dlpack(dlpack_handle theirs);
[[nodiscard]] tensor from_dlpack(dlpack_versioned_handle theirs);
///@}

}  // namespace muster
