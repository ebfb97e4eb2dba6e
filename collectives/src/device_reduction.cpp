// SPDX-License-Identifier: BSL-1.0
#include "device_reduction.hpp"

#include <bit>
#include <optional>

#include <muster/base/detail/float_state.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/detail/convert.hpp>
#include <muster/device/detail/device_block.hpp>

namespace muster::detail {

namespace {

bool is_half(dtype type) { return type == dtype::f16 || type == dtype::bf16; }
bool is_complex(dtype type) { return type == dtype::c64 || type == dtype::c128; }
bool is_rounded(dtype type) { return is_half(type) || type == dtype::f32 || type == dtype::f64 || is_complex(type); }

std::optional<element_op> kernel_op_of(reduction_op op) {
  switch (op) {
    case reduction_op::sum:
    case reduction_op::avg: return element_op::sum;
    case reduction_op::prod: return element_op::prod;
    case reduction_op::min: return element_op::min;
    case reduction_op::max: return element_op::max;
    default: return std::nullopt;
  }
}

// Averages of integers are not wrapped around on the way, and there is no kernel for that. Nor for a division of f64,
// which is exact where it is by a power of 2.
bool can_divide(dtype type, std::size_t divisor) {
  if (type == dtype::f64 || type == dtype::c128) return std::has_single_bit(divisor);
  return is_rounded(type);
}

// What transports have: no bools, and no complex numbers, whose sums are those of their parts.
void make_native(reduction_plan& plan, reduction_op op) {
  using enum reduction_op;
  plan.native_op = op == avg ? sum : op;
  if (plan.type == dtype::boolean) {
    plan.type = dtype::u8;
    plan.native_op = op == sum || op == max ? max : min;
  } else if (is_complex(plan.type) && op != prod) {
    plan.type = plan.type == dtype::c64 ? dtype::f32 : dtype::f64;
    plan.parts = 2;
  }
}

double reciprocal(std::size_t number) {
  return in_fixed_float_state([&number] { return 1.0 / static_cast<double>(number); });
}

// Of f32 and less: there are enough bits more in an f64 that the product by 1/n, rounded, is the quotient.
void divide_by_doubles(const tensor& which, std::size_t divisor) {
  const auto wide = tensor::empty(dtype::f64, which.shape(), which.device());
  convert_into(wide, which);
  scale(wide, reciprocal(divisor));
  convert_into(which, wide);
}

}  // namespace

reduction_plan plan_reduction(const device_transport& by, const reduction& with, dtype type, std::size_t ranks,
                              bool is_ordered) {
  reduction_plan plan{.type = type};
  const auto op = kernel_op_of(with.op());
  const bool is_avg = with.op() == reduction_op::avg;
  if (!op || (is_avg && !can_divide(type, ranks))) return plan;
  plan.op = *op;
  plan.divisor = is_avg ? ranks : 1;
  auto native = plan;
  native.how = reduction_plan::way::native;
  make_native(native, with.op());
  if (!(is_ordered && is_rounded(type)) && by.reduces(native.type, native.native_op)) return native;
  plan.how = reduction_plan::way::ordered;
  return plan;
}

void divide(const tensor& which, std::size_t divisor) {
  if (divisor == 1 || which.size() == 0) return;
  const auto type = which.dtype();
  if (std::has_single_bit(divisor)) return scale(which, reciprocal(divisor));
  divide_by_doubles(type == dtype::c64 ? as_row_of(which, dtype::f32) : which, divisor);
}

tensor as_row_of(const tensor& what, dtype type) {
  if (what.size() == 0) return tensor::empty(type, {0}, what.device());
  const auto first = what.device_address() - what.storage()->on_device()->address();
  return tensor::over(what.storage(), type, {what.nbytes() / dtype_size(type)}, first);
}

void combine_in_order(const tensor& parts, const tensor& out, element_op op, std::size_t divisor) {
  if (out.size() == 0) return;
  const bool by_floats = is_half(out.dtype());
  const auto sum = by_floats ? tensor::empty(dtype::f32, out.shape(), out.device()) : parts.row(0);
  const auto next = by_floats ? tensor::empty(dtype::f32, out.shape(), out.device()) : tensor();
  if (by_floats) convert_into(sum, parts.row(0));
  for (std::size_t rank = 1; rank < parts.rows(); ++rank) {
    if (by_floats) convert_into(next, parts.row(rank));
    accumulate(sum, by_floats ? next : parts.row(rank), op);
  }
  divide(sum, divisor);
  by_floats ? convert_into(out, sum) : out.copy_from(sum);
}

}  // namespace muster::detail
