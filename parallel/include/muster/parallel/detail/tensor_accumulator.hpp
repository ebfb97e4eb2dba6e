// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <vector>

#include <muster/device/tensor.hpp>
#include <muster/parallel/detail/value_name.hpp>
#include <muster/parallel/output_op.hpp>
#include <muster/serialize/archive.hpp>

namespace muster::detail {

/// Joins tensors of slices, and then those of ranks, as an output_op says; not gather and none. Where the first one
/// lies, on the host or a device, they are joined: those that lie elsewhere come there. The bits are the same
/// everywhere, also in threads of another floating-point state.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Cost: the first value is kept as it is, by reference, until make_own(); from the second on, one pass over each. Sums
/// of fractions, and averages, are kept in double, and rounded by value(); on a device each value that is none becomes
/// one there first.
class tensor_accumulator {
public:
  tensor_accumulator() = default;
  /// `what` names it in messages.
  tensor_accumulator(output_op op, const value_name& what) : op_(op), what_(what) {}

  /// A value that `weight` rows gave; for count_true, of which it is told what is true. Throws errc::invalid_argument
  /// unless dtype and shape are those of the ones before, and the op is for that dtype.
  void add(const tensor& value, double weight);
  /// The same with what another one has as unrounded(), of values of dtype `type`.
  void add(const tensor& value, double weight, dtype type);
  /// What was given may change from now on. For who goes on to add: of a single value that is summed up, value() is
  /// what its sum gives. Cost: nothing, unless there is one value: then a pass over it.
  void make_own();

  [[nodiscard]] bool is_empty() const noexcept { return count_ == 0; }
  [[nodiscard]] double weight() const noexcept { return weight_; }
  /// What has come of them; the value itself if there was only one. Requires: !is_empty().
  [[nodiscard]] tensor value() const;
  /// The dtype of value(). Requires: !is_empty().
  [[nodiscard]] dtype result_dtype() const noexcept { return result_; }
  /// The same before it is rounded, if it is a sum or an average of several: of unrounded_type(result_dtype()), for
  /// another one that rounds it. Else value(). Requires: !is_empty().
  [[nodiscard]] tensor unrounded() const;
  /// Whether value() is a tensor that was given to add(), not one that was made here.
  [[nodiscard]] bool is_borrowed() const noexcept { return !is_empty() && !is_own_ && joined_.dtype() == result_; }

private:
  [[nodiscard]] bool sums_up() const noexcept;
  [[nodiscard]] bool has_sums() const noexcept { return is_own_ && sums_up(); }
  void require_alike(const tensor& value, dtype type) const;
  void sum_up(const tensor& value, double weight);
  [[nodiscard]] bool is_here() const { return joined_.device().is_cpu(); }
  [[nodiscard]] tensor sums_as(dtype type) const;
  [[nodiscard]] tensor sums_there_as(dtype type) const;

  output_op op_ = output_op::sum;
  value_name what_;
  std::size_t count_ = 0;
  bool is_own_ = false;  // what has come of them is no value that was given
  double weight_ = 0;
  dtype type_{};              // of the values
  dtype result_{};            // of what has come of them
  tensor joined_;             // the first value; then, unless sums_up(), what has come of them
  std::vector<double> sums_;  // if has_sums(), on the host
  tensor sums_there_;         // the same on a device
};

/// The dtype of what an op makes of values of that dtype. Throws errc::invalid_argument where it makes nothing.
[[nodiscard]] dtype result_type(output_op op, dtype type, const value_name& what);

/// What sums of fractions of that dtype are kept in.
[[nodiscard]] dtype unrounded_type(dtype type) noexcept;

}  // namespace muster::detail
