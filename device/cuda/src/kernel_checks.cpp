// SPDX-License-Identifier: BSL-1.0
#include "kernel_checks.hpp"

#include <algorithm>
#include <array>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "kernel_layout.hpp"
#include "visit_dtype.hpp"

namespace muster::detail {

namespace {

static_assert(static_cast<std::uint32_t>(element_op::max) == static_cast<std::uint32_t>(kernel_op::max));
static_assert(static_cast<std::uint32_t>(cuda_rule_kind::adamax) == static_cast<std::uint32_t>(kernel_rule::adamax));
static_assert(cuda_rule_arrays::most_gradients == rule_arguments::most_gradients);
static_assert(tensor_shape::most + 1 == kernel_elements::most_dimensions);

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw error(errc::invalid_argument, text(parts...));
}

const char* name_of(element_op op) {
  switch (op) {
    case element_op::sum: return "sum";
    case element_op::prod: return "prod";
    case element_op::min: return "min";
    case element_op::max: return "max";
  }
  return "unknown element_op";
}

bool is_fraction(dtype type) {
  return type == dtype::f16 || type == dtype::bf16 || type == dtype::f32 || type == dtype::f64;
}

}  // namespace

void require_element(const cuda_view& which, std::span<const std::byte> element) {
  if (element.size() == dtype_size(which.type)) return;
  refuse("fill of ", which.type, " with an element of ", element.size(), " bytes: it must have ",
         dtype_size(which.type));
}

void require_alike(const char* operation, const cuda_view& to, const cuda_view& from) {
  if (to.type == from.type && to.shape == from.shape) return;
  refuse(operation, " of ", from.type, ' ', from.shape, " into ", to.type, ' ', to.shape,
         ": dtype and shape must be the same");
}

void require_same_shape(const cuda_view& to, const cuda_view& from) {
  if (to.shape == from.shape) return;
  refuse("elements of a tensor of shape ", from.shape, " were to be converted to one of shape ", to.shape,
         ": the shapes must be the same");
}

void require_no_repeats(const char* operation, const cuda_view& to) {
  if (std::ranges::find(to.shape, 0U) != to.shape.end()) return;
  for (std::size_t at = 0; at < to.shape.size(); ++at) {
    if (to.shape[at] == 1 || to.strides[at] != 0) continue;
    refuse(
        operation, " was to write into a tensor of shape ", to.shape, " whose dimension ", at,
        " repeats the same elements (broadcast_to): a device computes all places at the same time, so write into one "
        "that has each element once, part after part (row()), or clone() it first");
  }
}

void require_op(dtype type, element_op op) {
  if (op > element_op::max) refuse("there is no element_op ", static_cast<int>(op));
  if (!is_complex_type(type) || op == element_op::sum || op == element_op::prod) return;
  refuse("elements of dtype ", type, " have no ", name_of(op), ": complex numbers have no order");
}

void require_scalable(const char* operation, dtype type) {
  if (is_fraction(type) || is_complex_type(type)) return;
  refuse(operation, " takes f16, bf16, f32, f64, c64 or c128, not ", type, ": convert() to one of these first");
}

void require_scratch(CUdeviceptr scratch, std::size_t bytes, std::size_t needed) {
  if (scratch % 16 == 0 && bytes >= needed) return;
  refuse("reduce was given ", bytes, " bytes of scratch at ", scratch, ": it needs ", needed,
         " at an address that is a multiple of 16");
}

kernel_op kernel_op_of(element_op op) noexcept { return static_cast<kernel_op>(op); }

std::span<const std::byte> neutral_element(dtype type, element_op op) {
  if (op != element_op::sum && op != element_op::prod) refuse("there is no ", name_of(op), " of no elements");
  return visit_dtype(type, [op]<class T>(std::type_identity<T>) -> std::span<const std::byte> {
    static const std::array<T, 2> elements = [] {
      if constexpr (is_half<T>)
        return std::array{T(0.0F), T(1.0F)};
      else
        return std::array{T(0), T(1)};
    }();
    return std::as_bytes(std::span(elements).subspan(op == element_op::sum ? 0 : 1, 1));
  });
}

// ---- rules

std::size_t state_count(cuda_rule_kind kind) noexcept {
  switch (kind) {
    case cuda_rule_kind::assign:
    case cuda_rule_kind::plain: return 0;
    case cuda_rule_kind::momentum:
    case cuda_rule_kind::nesterov:
    case cuda_rule_kind::adagrad:
    case cuda_rule_kind::rmsprop: return 1;
    default: return 2;
  }
}

void require_rule(const cuda_rule& rule, const cuda_rule_arrays& arrays) {
  if (rule.kind > cuda_rule_kind::adamax) refuse("there is no rule ", static_cast<int>(rule.kind));
  if (!is_fraction(arrays.type)) refuse("rules take f16, bf16, f32 or f64, not ", arrays.type);
  const auto count = arrays.gradients.size();
  if (count == 0 || count > cuda_rule_arrays::most_gradients || arrays.weights.size() != count) {
    refuse("a rule was given ", count, " gradients and ", arrays.weights.size(), " weights: it takes 1 to ",
           cuda_rule_arrays::most_gradients, ", and as many weights");
  }
}

namespace {

// All arrays can be read and written by packs, of 16 bytes of what is computed with.
bool is_packed(const rule_arguments& given, std::size_t element_bytes) {
  const auto is_aligned = [](const std::byte* array, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(array) % bytes == 0;
  };
  const auto bytes = element_bytes == 2 ? 8U : 16U;
  return is_aligned(given.value, bytes) && is_aligned(given.new_value, bytes) &&
         std::all_of(given.gradients, given.gradients + given.gradient_count,
                     [&](const std::byte* each) { return is_aligned(each, bytes); }) &&
         std::ranges::all_of(given.old_states, [&](const std::byte* each) { return is_aligned(each, 16); }) &&
         std::ranges::all_of(given.new_states, [&](const std::byte* each) { return is_aligned(each, 16); });
}

}  // namespace

rule_arguments rule_arguments_of(const cuda_rule& rule, const cuda_rule_arrays& arrays) noexcept {
  rule_arguments made{.rule = static_cast<kernel_rule>(rule.kind),
                      .state_count = static_cast<std::uint32_t>(state_count(rule.kind)),
                      .rate = rule.rate,
                      .momentum = rule.momentum,
                      .taken = rule.taken,
                      .decay = rule.decay,
                      .squared = rule.squared,
                      .root = rule.root,
                      .epsilon = rule.epsilon,
                      .weight_decay = rule.weight_decay,
                      .shrink = rule.shrink,
                      .count = arrays.count,
                      .is_packed = false,
                      .gradient_count = static_cast<std::uint32_t>(arrays.gradients.size()),
                      .gradients = {},
                      .weights = {},
                      .value = device_pointer(rule.kind == cuda_rule_kind::assign ? 0 : arrays.value),
                      .new_value = device_pointer(arrays.new_value),
                      .old_states = {},
                      .new_states = {}};
  std::ranges::transform(arrays.gradients, made.gradients, device_pointer);
  std::ranges::copy(arrays.weights, made.weights);
  std::transform(arrays.old_states.begin(), arrays.old_states.begin() + made.state_count, made.old_states,
                 device_pointer);
  std::transform(arrays.new_states.begin(), arrays.new_states.begin() + made.state_count, made.new_states,
                 device_pointer);
  made.is_packed = is_packed(made, dtype_size(arrays.type));
  return made;
}

}  // namespace muster::detail
