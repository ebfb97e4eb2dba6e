// SPDX-License-Identifier: BSL-1.0
#include <muster/device/tensor.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/detail/device_block.hpp>

#include "layout.hpp"

namespace muster {

// ---- making

tensor tensor::empty(muster::dtype type, const tensor_shape& shape, memory where) {
  return over(muster::storage::allocate(detail::require_bytes_of(type, shape), where), type, shape);
}

tensor tensor::empty(muster::dtype type, const tensor_shape& shape, muster::device where) {
  if (where.is_cpu()) return empty(type, shape, memory::shared);
  const auto bytes = detail::require_bytes_of(type, shape);
  return over(muster::storage::over(kind_of(where).open(where)->allocate(bytes)), type, shape);
}

tensor tensor::zeros(muster::dtype type, const tensor_shape& shape, muster::device where) {
  if (where.is_cpu()) return zeros(type, shape, memory::shared);
  auto made = empty(type, shape, where);
  made.fill(detail::wide_number(std::int64_t{0}));
  return made;
}

tensor tensor::zeros(muster::dtype type, const tensor_shape& shape, memory where) {
  auto made = empty(type, shape, where);
  if (made.nbytes() != 0) std::memset(made.data(), 0, made.nbytes());
  return made;
}

tensor tensor::from(muster::dtype type, std::span<const std::byte> values, const tensor_shape& shape, memory where) {
  const auto bytes = detail::require_bytes_of(type, shape);
  if (values.size() != bytes) {
    throw error(
        errc::invalid_argument,
        text("a tensor of shape ", shape, " was to be made from ", values.size() / dtype_size(type),
             " values, but has ", bytes / dtype_size(type), " elements: give as many values, or another shape"));
  }
  auto made = empty(type, shape, where);
  made.read(values);
  return made;
}

tensor tensor::over(std::shared_ptr<const muster::storage> bytes, muster::dtype type, const tensor_shape& shape,
                    std::size_t offset_bytes) {
  static_cast<void>(detail::require_bytes_of(type, shape));
  return over(std::move(bytes), type, shape, detail::row_major(shape), offset_bytes);
}

tensor tensor::over(std::shared_ptr<const muster::storage> bytes, muster::dtype type, const tensor_shape& shape,
                    const tensor_strides& strides, std::size_t offset_bytes) {
  const detail::placement where{.type = type, .shape = shape, .strides = strides, .offset_bytes = offset_bytes};
  const auto room = bytes != nullptr ? bytes->bytes() : std::span<std::byte>();
  if (!detail::fits(where, room))
    throw error(errc::invalid_argument, "tensor::over: " + detail::problem_of(where, room));
  return tensor(std::move(bytes), where);
}

std::uint8_t tensor::limits_of(const muster::storage* bytes) noexcept {
  if (bytes == nullptr) return 0;
  return static_cast<std::uint8_t>((bytes->on_device() != nullptr ? on_device : 0) |
                                   (bytes->is_read_only() ? read_only : 0));
}

tensor::tensor(std::shared_ptr<const muster::storage> bytes, const detail::placement& where) noexcept
    : storage_(std::move(bytes)),
      data_(storage_ != nullptr ? storage_->bytes().data() + where.offset_bytes : nullptr),
      shape_(where.shape),
      strides_(where.strides),
      type_(where.type),
      limits_(limits_of(storage_.get())),
      stamp_(storage_ != nullptr ? storage_->stamp() : fork_stamp()) {}

// ---- what it is

std::size_t tensor::size() const noexcept { return detail::count_of(shape_); }

std::size_t tensor::rows() const {
  if (!shape_.empty()) return shape_[0];
  throw error(errc::invalid_argument, "a tensor without dimensions, shape (), has no rows: reshape it to (1,)");
}

device tensor::device() const noexcept {
  return is_on_device() ? storage_->on_device()->where() : muster::device::cpu();
}

bool tensor::is_shared() const noexcept {
  if (is_on_device()) return storage_->on_device()->is_shareable();
  return storage_ != nullptr && storage_->block();
}

std::uintptr_t tensor::device_address() const {
  if (is_on_device())
    return storage_->on_device()->address() + static_cast<std::size_t>(data_ - storage_->bytes().data());
  throw error(errc::invalid_argument, text("the address on a device was asked for of a tensor of shape ", shape_,
                                           " in memory of the host: call "
                                           "to(device) first, or use data()"));
}

void tensor::refuse_access() const {
  stamp_.require_here("a tensor");
  if (!is_on_device()) refuse_writing();
  throw error(errc::invalid_argument,
              text("elements of a tensor of shape ", shape_, " on ", device(),
                   " cannot be looked at "
                   "from the host: call to(device::cpu()) first; device_data() is for kernels"));
}

void tensor::refuse_writing() const {
  throw error(errc::invalid_argument,
              text("a tensor of shape ", shape_,
                   " was to be written to, but is read-only, as versions of stores are: ask for const elements "
                   "(data<const float>, span<const float>) to read it, or clone() it"));
}

bool tensor::is_contiguous() const noexcept { return detail::is_row_major(shape_, strides_); }

void tensor::require(muster::dtype asked) const {
  if (asked == type_) return;
  throw error(errc::invalid_argument,
              text("elements of dtype ", asked, " were asked for, but those of this tensor of shape ", shape_, " are ",
                   type_, ": ask for these"));
}

void tensor::require_contiguous() const {
  if (is_contiguous()) return;
  throw error(errc::invalid_argument, text("contiguous elements are needed, but those of this tensor of shape ", shape_,
                                           " have strides ", strides_, ": call contiguous() first, or use view or at"));
}

void tensor::require_one_element() const {
  if (size() == 1) return;
  throw error(errc::invalid_argument, text("item() is for tensors of one element, but this one of shape ", shape_,
                                           " has ", size(), ": use at"));
}

void tensor::require_dimensions(std::size_t count) const {
  if (count == dimensions()) return;
  throw error(errc::invalid_argument, text("a tensor of ", count, " dimensions is needed, but this one of shape ",
                                           shape_, " has ", dimensions(), ": reshape it, or name as many"));
}

std::ptrdiff_t tensor::offset_of(std::initializer_list<std::size_t> index) const {
  const tensor_shape given(index);
  require_dimensions(given.size());
  std::ptrdiff_t offset = 0;
  for (std::size_t dimension = 0; dimension < given.size(); ++dimension) {
    if (given[dimension] >= shape_[dimension]) {
      throw error(errc::invalid_argument, text("element ", given, " of a tensor of shape ", shape_,
                                               " was asked for: every index must be less than the size there"));
    }
    offset += static_cast<std::ptrdiff_t>(given[dimension]) * strides_[dimension];
  }
  return offset;
}

// ---- other tensors of the same elements

tensor tensor::slice(std::size_t first, std::size_t last, std::size_t dimension, std::size_t step) const {
  if (dimension >= dimensions() || first > last || last > shape_[dimension] || step == 0) {
    throw error(errc::invalid_argument,
                text("slice ", first, " to ", last, " by ", step, " of dimension ", dimension, " of a tensor of shape ",
                     shape_, " was asked for: the dimension must be there, first <= last <= its size, and 0 < step"));
  }
  auto part = *this;
  const auto count = last - first;
  part.shape_[dimension] = count / step + (count % step == 0 ? 0 : 1);
  // Of one element, nobody asks where the next is.
  if (part.shape_[dimension] > 1) part.strides_[dimension] *= static_cast<std::ptrdiff_t>(step);
  const auto element = static_cast<std::ptrdiff_t>(dtype_size(type_));
  if (size() != 0) part.data_ += static_cast<std::ptrdiff_t>(first) * strides_[dimension] * element;
  return part;
}

tensor tensor::permute(const tensor_shape& order) const {
  auto changed = *this;
  std::size_t seen = 0;
  for (std::size_t place = 0; place < std::min(order.size(), dimensions()); ++place) {
    if (order[place] >= dimensions()) break;
    seen |= std::size_t{1} << order[place];
    changed.shape_[place] = shape_[order[place]];
    changed.strides_[place] = strides_[order[place]];
  }
  if (order.size() == dimensions() && seen == (std::size_t{1} << dimensions()) - 1) return changed;
  throw error(errc::invalid_argument, text("the order ", order, " was asked for of the ", dimensions(),
                                           " dimensions of a tensor of shape ", shape_, ": name each of them once"));
}

tensor tensor::transpose() const {
  tensor_shape order;
  for (auto left = dimensions(); left != 0; --left) order.push_back(left - 1);
  return permute(order);
}

tensor tensor::row(std::size_t index) const {
  if (index >= rows()) {
    throw error(errc::invalid_argument, text("row ", index, " of a tensor of shape ", shape_,
                                             " was asked for: it must be less than ", shape_[0]));
  }
  auto part = slice(index, index + 1);
  part.shape_ = shape_.without_first();
  part.strides_ = strides_.without_first();
  return part;
}

tensor tensor::reshape(const tensor_shape& shape) const {
  static_cast<void>(detail::require_bytes_of(type_, shape));
  if (detail::count_of(shape) != size()) {
    throw error(errc::invalid_argument, text("a tensor of shape ", shape_, " has ", size(), " elements, but shape ",
                                             shape, " has ", detail::count_of(shape), ": give one of as many"));
  }
  require_contiguous();
  auto same = *this;
  same.shape_ = shape;
  same.strides_ = detail::row_major(shape);
  return same;
}

tensor tensor::broadcast_to(const tensor_shape& shape) const {
  static_cast<void>(detail::require_bytes_of(type_, shape));
  if (detail::broadcast(shape_, shape) != shape) {
    throw error(errc::invalid_argument,
                text("a tensor of shape ", shape_, " was to be broadcast to ", shape,
                     ": from the last dimension on, each size must be the same, or be 1 in the tensor"));
  }
  auto larger = *this;
  larger.shape_ = shape;
  larger.strides_ = tensor_strides();
  const auto added = shape.size() - dimensions();
  for (std::size_t dimension = 0; dimension < shape.size(); ++dimension) {
    const bool repeats = dimension < added || shape_[dimension - added] != shape[dimension];
    larger.strides_.push_back(repeats ? 0 : strides_[dimension - added]);
  }
  return larger;
}

tensor tensor::to(muster::device where) const {
  if (where == device()) return *this;
  auto made = empty(type_, shape_, where);
  made.copy_from(*this);
  return made;
}

tensor tensor::as_read_only() const {
  auto same = *this;
  same.limits_ |= read_only;
  return same;
}

tensor tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

tensor tensor::clone(memory where) const {
  auto made = is_on_device() ? empty(type_, shape_, device()) : empty(type_, shape_, where);
  made.copy_from(*this);
  return made;
}

}  // namespace muster
