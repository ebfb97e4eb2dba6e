// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/data.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include <muster/base/detail/float_state.hpp>
#include <muster/base/text.hpp>
#include <muster/device/detail/convert.hpp>

#include "data_check.hpp"

namespace muster {

namespace {

// All sizes that are 0.
tensor_shape nothing_in(std::size_t dimensions) {
  tensor_shape shape;
  for (std::size_t dimension = 0; dimension < dimensions; ++dimension) shape.push_back(0);
  return shape;
}

tensor memory_of(dtype type, std::size_t count) { return tensor::empty(type, {count}); }

tensor as_shape(const tensor& memory, const tensor_shape& shape) {
  return tensor::over(memory.storage(), memory.dtype(), shape);
}

std::size_t with_room(std::size_t count, double oversize) {
  return in_fixed_float_state([&] {
    constexpr double most = 0x1p62;  // is refused in any case, and can still be converted
    const auto wanted = static_cast<double>(count) * oversize;
    return wanted < most ? std::max(count, static_cast<std::size_t>(wanted)) : count;
  });
}

void set_zero(const tensor& elements) {
  if (elements.size() != 0) std::memset(elements.data(), 0, elements.nbytes());
}

}  // namespace

data::data(const data_options& options)
    : name_(options.name), minibatch_(options.minibatch), memory_(memory_of(detail::type_of(options), 0)) {
  detail::require_oversize(name_, options.oversize);
  shape_ = nothing_in(detail::dimensions_of(options));
  if (options.value) {
    set_value(*options.value, {.force_cast = options.force_cast, .oversize = options.oversize});
  } else if (options.shape) {
    set_shape(*options.shape, options.oversize);
  }
}

// ---- what it is

// The shape without dimensions says 1 before there is memory too.
std::size_t data::size() const noexcept {
  std::size_t count = 1;
  for (const auto each : shape_) count *= each;
  return std::min(count, alloc_size());
}

std::size_t data::rows() const {
  if (shape_.empty()) detail::refuse(name_, "it has no dimensions, and so no rows");
  return shape_[0];
}

// ---- changing value and shape

void data::set_value(const tensor& value, value_options options) {
  detail::require_oversize(name_, options.oversize);
  detail::require_dimensions(*this, value.shape());
  detail::require_castable(*this, value.dtype(), options.force_cast);
  auto memory = memory_for(value.shape(), options.oversize);
  convert_into(as_shape(memory, value.shape()), value);
  memory_ = std::move(memory);
  shape_ = value.shape();
}

void data::set_value(muster::dtype type, std::span<const std::byte> values, const tensor_shape& shape,
                     value_options options) {
  const auto count = values.size() / dtype_size(type);
  if (detail::count_of(*this, shape) != count) {
    detail::refuse(name_, text(count, " values were given for shape ", shape, ", which has ",
                               detail::count_of(*this, shape), " elements: give as many values, or another shape"));
  }
  // Nobody writes through it.
  const std::span<std::byte> bytes(const_cast<std::byte*>(values.data()), values.size());
  set_value(tensor::over(storage::over(bytes, nullptr), type, shape), options);
}

void data::set_length(std::size_t length, double oversize) {
  static_cast<void>(rows());
  auto shape = shape_;
  shape[0] = length;
  set_shape(shape, oversize);
}

void data::set_shape(const tensor_shape& shape, double oversize) {
  detail::require_oversize(name_, oversize);
  detail::require_dimensions(*this, shape);
  auto memory = memory_for(shape, oversize);
  const auto kept = kept_in(shape);
  if (memory.storage() != memory_.storage()) memory.slice(0, kept).copy_from(memory_.slice(0, kept));
  set_zero(memory.slice(kept, detail::count_of(*this, shape)));
  memory_ = std::move(memory);
  shape_ = shape;
}

void data::free_memory() {
  memory_ = memory_of(dtype(), 0);
  if (!shape_.empty()) shape_[0] = 0;
}

tensor data::condition_data(const tensor& value, bool force_cast) const {
  detail::require_dimensions(*this, value.shape());
  detail::require_castable(*this, value.dtype(), force_cast);
  return convert(value, dtype(), memory::local);
}

// ---- the elements

tensor data::value() const {
  if (shape_.empty() && alloc_size() == 0) detail::refuse(name_, "it has no value yet: call set_value first");
  return as_shape(memory_, shape_);
}

void data::set_rows(std::size_t first, const tensor& rows, bool force_cast) const {
  detail::require_rows(*this, first, rows);
  detail::require_castable(*this, rows.dtype(), force_cast);
  convert_into(slice(first, first + rows.rows()), rows);
}

// ---- memory

tensor data::memory_for(const tensor_shape& shape, double oversize) const {
  const auto count = detail::count_of(*this, shape);
  return count <= alloc_size() ? memory_ : memory_of(dtype(), with_room(count, oversize));
}

// How many elements from the first on stay. They stay in place, because rows are as long as before.
std::size_t data::kept_in(const tensor_shape& shape) const {
  const bool same_rows = shape.empty() || shape.without_first() == shape_.without_first();
  return same_rows ? std::min(size(), detail::count_of(*this, shape)) : 0;
}

}  // namespace muster
