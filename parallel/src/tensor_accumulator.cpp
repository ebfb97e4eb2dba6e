// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/tensor_accumulator.hpp>

#include <array>

#include <muster/base/assert.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/collectives/detail/combine.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/detail/convert.hpp>
#include <muster/device/detail/device_block.hpp>

#include "weighted_sum.hpp"

namespace muster::detail {

namespace {

bool is_average(output_op op) { return op == output_op::avg || op == output_op::mean_of_ranks; }

bool has_fractions(dtype type) { return type >= dtype::f16; }

reduction_op elementwise(output_op op) {
  switch (op) {
    case output_op::prod: return reduction_op::prod;
    case output_op::min: return reduction_op::min;
    case output_op::max: return reduction_op::max;
    default: return reduction_op::sum;
  }
}

element_op element_op_of(output_op op) {
  switch (op) {
    case output_op::prod: return element_op::prod;
    case output_op::min: return element_op::min;
    case output_op::max: return element_op::max;
    default: return element_op::sum;
  }
}

// The host's sums are rounded to 16 bits by way of float.
tensor rounded_to(dtype type, const tensor& wide) {
  const bool is_half = type == dtype::f16 || type == dtype::bf16;
  return convert(is_half ? convert(wide, dtype::f32) : wide, type);
}

// 1 where it is true, or not 0.
tensor truths_of(const tensor& value) { return convert(convert(value, dtype::boolean), dtype::i64); }

tensor joined_here(output_op op, const tensor& a, const tensor& b, bool in_place) {
  const auto first = a.contiguous();
  const auto next = b.contiguous();
  auto out = in_place ? a : tensor::empty(b.dtype(), b.shape());
  const std::array<const std::byte*, 2> inputs = {first.const_data(), next.const_data()};
  const std::array<std::byte*, 1> outputs = {out.data()};
  combine(elementwise(op), b.dtype(), inputs, outputs, b.size(), stores::normal);
  return out;
}

tensor joined_there(output_op op, const tensor& a, const tensor& b, bool in_place) {
  auto out = in_place ? a : a.clone();
  accumulate(out, b, element_op_of(op));
  return out;
}

}  // namespace

dtype unrounded_type(dtype type) noexcept {
  return type == dtype::c64 || type == dtype::c128 ? dtype::c128 : dtype::f64;
}

dtype result_type(output_op op, dtype type, const value_name& what) {
  if (op == output_op::count_true) return dtype::i64;
  if (is_average(op)) {
    if (type == dtype::boolean) {
      throw error(errc::invalid_argument,
                  text(what,
                       " is to be averaged, but its elements are bools: for the fraction that is true, convert() "
                       "them to f32; for how many are, join them by count_true"));
    }
    return has_fractions(type) ? type : dtype::f64;
  }
  reduction(elementwise(op)).require(type);
  return type;
}

bool tensor_accumulator::sums_up() const noexcept {
  return is_average(op_) || (op_ == output_op::sum && has_fractions(type_));
}

void tensor_accumulator::require_alike(const tensor& value, dtype type) const {
  if (type == type_ && value.shape() == joined_.shape()) return;
  throw error(errc::invalid_argument,
              text(what_, " is ", type, " of shape ", value.shape(), " in one place and ", type_, " of shape ",
                   joined_.shape(), " in another: ", output_op_name(op_),
                   " needs the same everywhere. Is the function to give one value for each row? Then gather them"));
}

void tensor_accumulator::add(const tensor& given, double weight) {
  const auto value = op_ == output_op::count_true ? truths_of(given) : given;
  add(value, weight, value.dtype());
}

void tensor_accumulator::add(const tensor& given, double weight, dtype type) {
  const auto value = is_empty() ? given : given.to(joined_.device());
  if (is_empty()) {
    result_ = result_type(op_, type, what_);
    type_ = type;
    joined_ = value;
  } else {
    require_alike(value, type);
    if (sums_up()) {
      make_own();
      sum_up(value, weight);
    } else {
      joined_ = (is_here() ? joined_here : joined_there)(op_, joined_, value, is_own_);
      is_own_ = true;
    }
  }
  weight_ += weight;
  ++count_;
}

// Of what is summed up only the form of the first value is asked for after that.
void tensor_accumulator::make_own() {
  if (is_empty() || is_own_) return;
  if (sums_up()) {
    sum_up(joined_, weight_);
  } else {
    joined_ = joined_.clone();
  }
  is_own_ = true;
}

// TODO(perf): in one pass, which takes a kernel of its own.
void tensor_accumulator::sum_up(const tensor& value, double weight) {
  if (!is_here()) {
    const auto type = unrounded_type(value.dtype());
    if (sums_there_.shape() != value.shape() || sums_there_.dtype() != type) {
      sums_there_ = tensor::zeros(type, value.shape(), value.device());
    }
    return axpy(is_average(op_) ? weight : 1.0, convert(value, type), sums_there_);
  }
  if (sums_.empty()) sums_.assign(numbers_of(value.dtype(), value.size()), 0.0);
  add_scaled(sums_, value.contiguous().const_data(), value.dtype(), is_average(op_) ? weight : 1.0);
}

tensor tensor_accumulator::value() const {
  MUSTER_ASSERT(!is_empty());
  if (has_sums()) return sums_as(result_);
  return !sums_up() || is_borrowed() ? joined_ : rounded_to(result_, joined_);
}

tensor tensor_accumulator::unrounded() const { return has_sums() ? sums_as(unrounded_type(result_)) : value(); }

tensor tensor_accumulator::sums_as(dtype type) const {
  if (!is_here()) return sums_there_as(type);
  auto made = tensor::empty(type, joined_.shape());
  write_divided(made.data(), type, sums_, is_average(op_) ? weight_ : 1.0);
  return made;
}

tensor tensor_accumulator::sums_there_as(dtype type) const {
  if (joined_.size() == 0) return tensor::empty(type, joined_.shape(), joined_.device());
  const auto quotients = sums_there_.clone();
  if (is_average(op_)) quotients.storage()->on_device()->operations().divide(quotients, weight_);
  return rounded_to(type, quotients);
}

}  // namespace muster::detail
