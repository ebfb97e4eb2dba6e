// SPDX-License-Identifier: BSL-1.0
#pragma once

// What is computed on a device: fill, copy, convert, accumulate, scale, axpy, reduce, and the steps of optimizers.
//
// Results have the bits of the same functions of muster::device and muster::parallel, but for which NaN one is.
// Everything is queued on the stream and returns at once; an error of the device shows in a later call. What is wrong
// with a call is thrown before anything is queued. Views without elements launch nothing.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <cuda.h>

#include <muster/cuda/driver.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/detail/rule_step.hpp>
#include <muster/device/dtype.hpp>
#include <muster/device/tensor_shape.hpp>

namespace muster::detail {

/// Elements on a device.
///
/// Lifetime: borrows them, until what was queued has been done.
struct cuda_view {
  CUdeviceptr first = 0;  ///< of the element at index 0 of every dimension, aligned as on the host
  muster::dtype type = dtype::f32;
  tensor_shape shape;
  tensor_strides strides;
};

using cuda_rule_kind = rule_step_kind;
using cuda_rule = rule_step;

/// States that rules of a kind have.
[[nodiscard]] std::size_t state_count(cuda_rule_kind kind) noexcept;

/// What an update reads and writes: contiguous arrays of `count` elements. Old and new may be the same memory, and what
/// is written may be a gradient too; else it overlaps nothing.
struct cuda_rule_arrays {
  static constexpr std::size_t most_gradients = 16;
  static constexpr std::size_t most_states = 2;

  muster::dtype type = dtype::f32;  ///< f16, bf16, f32 or f64; states are f64 for f64, else f32
  std::size_t count = 0;
  /// One to most_gradients, and what each is multiplied by before they are summed, in this order.
  std::span<const CUdeviceptr> gradients = {};
  std::span<const double> weights = {};
  CUdeviceptr value = 0;  ///< not looked at for cuda_rule_kind::assign
  CUdeviceptr new_value = 0;
  std::array<CUdeviceptr, most_states> old_states = {};
  std::array<CUdeviceptr, most_states> new_states = {};
};

/// The kernels, loaded into the context that is current when it is made.
///
/// All functions throw errc::invalid_argument for what they cannot take, with nothing queued, and what the driver's
/// calls throw.
/// Requires: in every call that context is current, and the stream is one of it.
/// Lifetime: borrows the driver. Destroy it while the context is current, after what was queued has been done.
/// Thread safety: distinct objects: safe. Shared objects: safe, all functions are const.
class kernel_set {
public:
  /// What `reduce` needs beside the result.
  static constexpr std::size_t reduce_scratch_bytes = std::size_t{17} << 16U;

  /// Throws errc::no_device where this build has no code for the device.
  explicit kernel_set(const cuda_driver& driver);
  kernel_set(const kernel_set&) = delete;
  kernel_set& operator=(const kernel_set&) = delete;
  ~kernel_set();

  /// Every element becomes `element`, which has dtype_size(which.type) bytes.
  void fill(CUstream on, const cuda_view& which, std::span<const std::byte> element) const;

  /// Requires: no overlap. Both have the same dtype and shape, or errc::invalid_argument is thrown.
  void copy(CUstream on, const cuda_view& to, const cuda_view& from) const;

  /// By the rules of muster/device/detail/convert.hpp. Requires: no overlap, unless both are the same.
  void convert(CUstream on, const cuda_view& to, const cuda_view& from) const;

  // What these four write must have no dimension that repeats elements, or errc::invalid_argument is thrown.

  /// As muster::accumulate.
  void accumulate(CUstream on, const cuda_view& into, const cuda_view& from, element_op op) const;

  /// As muster::scale.
  void scale(CUstream on, const cuda_view& which, double factor) const;

  /// As muster::axpy: y ← y + factor·x.
  void axpy(CUstream on, double factor, const cuda_view& x, const cuda_view& y) const;

  /// Each element is divided by `divisor`, which is rounded to the dtype first (f16 and bf16: to float).
  void divide(CUstream on, const cuda_view& which, double divisor) const;

  /// All elements joined to one, of the same dtype, at `result`; f16 and bf16 in float, rounded once. Of no elements
  /// the sum is 0 and the product 1; there is no min and max. `scratch` is aligned to 16 bytes and has at least
  /// reduce_scratch_bytes.
  ///
  /// The order depends on dtype and number of elements alone, not on device, strides or alignment. It is: in row-major
  /// order they are cut into packs of 16 bytes (of one, where an element has more); of `lanes` many, lane i joins the
  /// elements of packs i, i + lanes, i + 2·lanes, … one after the other, starting from the first; what the lanes have
  /// is joined alike, until there is one. lanes(count) is 1 up to 512 elements, else the largest power of 2 that gives
  /// every lane 16 packs at least, and at most 2^16.
  void reduce(CUstream on, element_op op, const cuda_view& from, CUdeviceptr result, CUdeviceptr scratch,
              std::size_t scratch_bytes) const;

  /// One step of an optimizer: as detail::apply of muster/parallel/detail/rule_kernels.hpp with sum or avg.
  void apply_rule(CUstream on, const cuda_rule& rule, const cuda_rule_arrays& arrays) const;

private:
  enum class id : std::size_t;

  // With a thread for every kernel_loads items.
  template <class Arguments>
  void launch(CUstream on, id which, std::uint64_t items, const Arguments& given) const;
  /// One kernel of a family that is in the order of dtypes, of which `first` is the one of dtype `of_first`.
  [[nodiscard]] static id of_type(id first, muster::dtype of_first, muster::dtype type);

  void fill_parts(CUstream on, const cuda_view& which, std::span<const std::byte> element) const;
  void step_along(CUstream on, id first, double factor, const cuda_view& to, const cuda_view& from) const;
  std::uint32_t reduce_once(CUstream on, element_op op, const cuda_view& from, CUdeviceptr results) const;

  const cuda_driver& driver_;
  CUmodule module_ = nullptr;
  std::vector<CUfunction> functions_;
};

}  // namespace muster::detail
