// SPDX-License-Identifier: BSL-1.0
#include "kernel_set.hpp"

#include <algorithm>
#include <bit>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "kernel_checks.hpp"
#include "kernel_image.hpp"
#include "kernel_layout.hpp"
#include "kernel_names.hpp"
#include "platform.hpp"

namespace muster::detail {

#define MUSTER_KERNEL_ID(name, body, arguments) name,
enum class kernel_set::id : std::size_t { MUSTER_CUDA_KERNELS(MUSTER_KERNEL_ID) };
#undef MUSTER_KERNEL_ID

namespace {

#define MUSTER_KERNEL_NAME(name, body, arguments) "muster_" #name,
constexpr std::array kernel_names = {MUSTER_CUDA_KERNELS(MUSTER_KERNEL_NAME)};
#undef MUSTER_KERNEL_NAME

// Of a grid; threads go round for the rest.
constexpr std::uint64_t most_blocks = std::uint64_t{1} << 16U;

bool is_empty(const tensor_shape& shape) { return std::find(shape.begin(), shape.end(), 0U) != shape.end(); }

std::uint64_t count_of(const tensor_shape& shape) {
  std::uint64_t count = 1;
  for (const auto size : shape) count *= size;
  return count;
}

}  // namespace

kernel_set::kernel_set(const cuda_driver& driver) : driver_(driver), functions_(kernel_names.size()) {
  driver_.module_load(&module_, kernel_image());
  // All now: the driver may wait for the device when it loads one later, and the device for what the caller does next.
  for (std::size_t each = 0; each < kernel_names.size(); ++each) {
    const auto result = driver_.module_function.attempt(&functions_[each], module_, kernel_names[each]);
    if (result == CUDA_SUCCESS) continue;
    static_cast<void>(driver_.module_unload.attempt(module_));
    throw_cuda_error(result, driver_.module_function.name(), kernel_names[each]);
  }
}

kernel_set::~kernel_set() { static_cast<void>(driver_.module_unload.attempt(module_)); }

template <class Arguments>
void kernel_set::launch(CUstream on, id which, std::uint64_t items, const Arguments& given) const {
  constexpr auto items_of_a_block = std::uint64_t{kernel_threads} * kernel_loads;
  const auto blocks = std::clamp<std::uint64_t>((items + items_of_a_block - 1) / items_of_a_block, 1, most_blocks);
  auto argument = given;
  void* arguments[] = {&argument};
  driver_.launch(functions_[static_cast<std::size_t>(which)], static_cast<unsigned>(blocks), 1, 1, kernel_threads, 1, 1,
                 0, on, arguments, nullptr);
}

kernel_set::id kernel_set::of_type(id first, dtype of_first, dtype type) {
  return static_cast<id>(static_cast<std::size_t>(first) + static_cast<std::size_t>(type) -
                         static_cast<std::size_t>(of_first));
}

// ---- fill, copy, convert

void kernel_set::fill(CUstream on, const cuda_view& which, std::span<const std::byte> element) const {
  require_element(which, element);
  if (is_empty(which.shape)) return;
  fill_arguments given{
      .elements = paired(which, which), .element_bytes = static_cast<std::uint32_t>(element.size()), .element = {}};
  const bool is_one_byte = std::ranges::all_of(element, [&](std::byte each) { return each == element[0]; });
  if (is_one_byte && are_adjacent(given.elements, element.size(), element.size())) {
    const auto first = reinterpret_cast<CUdeviceptr>(given.elements.first[0]);
    return driver_.set_async_8(first, static_cast<unsigned char>(element[0]), given.elements.count * element.size(),
                               on);
  }
  if (is_complex_type(which.type) && which.first % element.size() != 0) return fill_parts(on, which, element);
  set_packs(given.elements, element.size(), element.size());
  std::ranges::copy(element, given.element);
  launch(on, id::fill, items_of(given.elements, element.size()), given);
}

// Complex numbers need to be aligned as their parts only.
void kernel_set::fill_parts(CUstream on, const cuda_view& which, std::span<const std::byte> element) const {
  auto part = which;
  part.type = part_type(which.type);
  for (std::size_t at = 0; at < part.strides.size(); ++at) part.strides[at] *= 2;
  const auto bytes = element.size() / 2;
  fill(on, part, element.first(bytes));
  part.first += bytes;
  fill(on, part, element.last(bytes));
}

void kernel_set::copy(CUstream on, const cuda_view& to, const cuda_view& from) const {
  require_alike("copy", to, from);
  if (is_empty(to.shape)) return;
  copy_arguments given{.elements = paired(to, from), .element_bytes = 0};
  const auto bytes = dtype_size(to.type);
  if (are_adjacent(given.elements, bytes, bytes)) {
    return driver_.copy_async(reinterpret_cast<CUdeviceptr>(given.elements.first[0]),
                              reinterpret_cast<CUdeviceptr>(given.elements.first[1]), given.elements.count * bytes, on);
  }
  given.element_bytes = widen(given.elements, bytes);
  launch(on, id::copy, given.elements.count, given);
}

void kernel_set::convert(CUstream on, const cuda_view& to, const cuda_view& from) const {
  require_same_shape(to, from);
  if (is_empty(to.shape) || (to.type == from.type && to.first == from.first)) return;
  if (to.type == from.type) return copy(on, to, from);
  convert_arguments given{.elements = paired(to, from),
                          .to = static_cast<std::uint8_t>(to.type),
                          .from = static_cast<std::uint8_t>(from.type)};
  struct special {
    dtype to;
    dtype from;
    id which;
  };
  static constexpr std::array specials = {
      special{dtype::f16, dtype::f32, id::convert_f16_f32}, special{dtype::bf16, dtype::f32, id::convert_bf16_f32},
      special{dtype::f32, dtype::f16, id::convert_f32_f16}, special{dtype::f32, dtype::bf16, id::convert_f32_bf16},
      special{dtype::f32, dtype::f64, id::convert_f32_f64}, special{dtype::f64, dtype::f32, id::convert_f64_f32},
      special{dtype::f32, dtype::u8, id::convert_f32_u8}};
  const auto* const found =
      std::ranges::find_if(specials, [&](const special& each) { return each.to == to.type && each.from == from.type; });
  if (found == specials.end()) return launch(on, id::convert, given.elements.count, given);
  const auto to_bytes = dtype_size(to.type);
  const auto from_bytes = dtype_size(from.type);
  set_packs(given.elements, to_bytes, from_bytes);
  launch(on, found->which, items_of(given.elements, std::max(to_bytes, from_bytes)), given);
}

// ---- arithmetic

void kernel_set::accumulate(CUstream on, const cuda_view& into, const cuda_view& from, element_op op) const {
  require_alike("accumulate", into, from);
  require_no_repeats("accumulate", into);
  require_op(into.type, op);
  if (is_empty(into.shape)) return;
  const bool by_parts = is_complex_type(into.type) && op == element_op::sum;
  const auto type = by_parts ? part_type(into.type) : into.type;
  accumulate_arguments given{.elements = paired(into, from, {.by_parts = by_parts}), .op = kernel_op_of(op)};
  set_packs(given.elements, dtype_size(type), dtype_size(type));
  launch(on, of_type(id::accumulate_bool, dtype::boolean, type), items_of(given.elements, dtype_size(type)), given);
}

void kernel_set::step_along(CUstream on, id first, double factor, const cuda_view& to, const cuda_view& from) const {
  if (is_empty(to.shape)) return;
  const auto type = part_type(to.type);
  factor_arguments given{.elements = paired(to, from, {.by_parts = is_complex_type(to.type)}), .factor = factor};
  set_packs(given.elements, dtype_size(type), dtype_size(type));
  launch(on, of_type(first, dtype::f16, type), items_of(given.elements, dtype_size(type)), given);
}

void kernel_set::scale(CUstream on, const cuda_view& which, double factor) const {
  require_scalable("scale", which.type);
  require_no_repeats("scale", which);
  step_along(on, id::scale_f16, factor, which, which);
}

void kernel_set::axpy(CUstream on, double factor, const cuda_view& x, const cuda_view& y) const {
  require_alike("axpy", y, x);
  require_scalable("axpy", y.type);
  require_no_repeats("axpy", y);
  step_along(on, id::axpy_f16, factor, y, x);
}

void kernel_set::divide(CUstream on, const cuda_view& which, double divisor) const {
  require_scalable("divide", which.type);
  require_no_repeats("divide", which);
  step_along(on, id::divide_f16, divisor, which, which);
}

// ---- reduce

namespace {

constexpr std::uint64_t most_lanes = std::uint64_t{1} << 16U;

std::uint32_t lanes_of(std::uint64_t count, std::size_t element_bytes) {
  constexpr std::uint64_t packs_of_a_lane = 16;
  if (count <= 512) return 1;
  const auto in_a_pack = 16 / element_bytes;
  const auto packs = (count + in_a_pack - 1) / in_a_pack;
  return static_cast<std::uint32_t>(std::min(std::bit_floor(packs / packs_of_a_lane), most_lanes));
}

bool is_half_type(dtype type) { return type == dtype::f16 || type == dtype::bf16; }

cuda_view row_of(CUdeviceptr first, dtype type, std::size_t count) {
  return {.first = first, .type = type, .shape = {count}, .strides = {1}};
}

}  // namespace

std::uint32_t kernel_set::reduce_once(CUstream on, element_op op, const cuda_view& from, CUdeviceptr results) const {
  reduce_arguments given{.elements = paired(from, from, {.in_order = true}),
                         .op = kernel_op_of(op),
                         .lanes = lanes_of(count_of(from.shape), dtype_size(from.type)),
                         .results = device_pointer(results)};
  set_packs(given.elements, dtype_size(from.type), dtype_size(from.type));
  given.elements.is_packed = given.elements.is_packed && given.elements.head == 0;
  launch(on, of_type(id::reduce_bool, dtype::boolean, from.type), std::uint64_t{given.lanes} * kernel_loads, given);
  return given.lanes;
}

void kernel_set::reduce(CUstream on, element_op op, const cuda_view& from, CUdeviceptr result, CUdeviceptr scratch,
                        std::size_t scratch_bytes) const {
  require_op(from.type, op);
  require_scratch(scratch, scratch_bytes, reduce_scratch_bytes);
  const auto one = row_of(result, from.type, 1);
  if (is_empty(from.shape)) return fill(on, one, neutral_element(from.type, op));
  const auto wide = is_half_type(from.type) ? dtype::f32 : from.type;
  const std::array<CUdeviceptr, 2> places = {scratch, scratch + most_lanes * 16};
  // The last pass writes where the result is to be, unless it is still to be rounded.
  const auto place_of = [&](std::uint64_t count, std::size_t bytes, std::size_t pass) {
    return lanes_of(count, bytes) == 1 && wide == from.type ? result : places[pass % 2];
  };
  auto count = count_of(from.shape);
  auto at = place_of(count, dtype_size(from.type), 0);
  auto lanes = reduce_once(on, op, from, at);
  for (std::size_t pass = 1; lanes > 1; ++pass) {
    const auto partial = row_of(at, wide, lanes);
    at = place_of(lanes, dtype_size(wide), pass);
    lanes = reduce_once(on, op, partial, at);
  }
  if (wide != from.type) convert(on, one, row_of(at, wide, 1));
}

// ---- optimizers

void kernel_set::apply_rule(CUstream on, const cuda_rule& rule, const cuda_rule_arrays& arrays) const {
  require_rule(rule, arrays);
  if (arrays.count == 0) return;
  const auto given = rule_arguments_of(rule, arrays);
  const auto items = given.is_packed ? given.count * (arrays.type == dtype::f64 ? 8 : 4) / 16 : given.count;
  launch(on, of_type(id::apply_rule_f16, dtype::f16, arrays.type), items * kernel_loads, given);
}

}  // namespace muster::detail
