// SPDX-License-Identifier: BSL-1.0
#include "layout.hpp"

#include <algorithm>
#include <cstdint>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

bool multiply(std::ptrdiff_t a, std::ptrdiff_t b, std::ptrdiff_t& product) noexcept {
  return !__builtin_mul_overflow(a, b, &product);
}

bool add(std::ptrdiff_t& sum, std::ptrdiff_t more) noexcept { return !__builtin_add_overflow(sum, more, &sum); }

const char* hint_of_sign(const tensor_shape& shape) {
  const bool negative = std::any_of(shape.begin(), shape.end(), [](std::size_t size) { return size > PTRDIFF_MAX; });
  return negative ? ", one size being negative or beyond all addresses" : "";
}

}  // namespace

std::size_t alignment_of(dtype type) noexcept {
  const bool is_complex = type == dtype::c64 || type == dtype::c128;
  return is_complex ? dtype_size(type) / 2 : dtype_size(type);
}

void throw_too_many_dimensions(std::size_t count, std::size_t most) {
  throw error(errc::invalid_argument, text("a tensor was to have ", count, " dimensions, but it can have at most ",
                                           most, ": join some of them"));
}

std::optional<std::size_t> bytes_of(dtype type, const tensor_shape& shape) noexcept {
  auto bytes = static_cast<std::ptrdiff_t>(dtype_size(type));
  for (const auto size : shape) {
    if (size > PTRDIFF_MAX) return std::nullopt;
    if (!multiply(bytes, static_cast<std::ptrdiff_t>(std::max<std::size_t>(size, 1)), bytes)) return std::nullopt;
  }
  return std::find(shape.begin(), shape.end(), 0U) != shape.end() ? 0 : static_cast<std::size_t>(bytes);
}

std::size_t require_bytes_of(dtype type, const tensor_shape& shape) {
  if (const auto bytes = bytes_of(type, shape)) return *bytes;
  throw error(errc::invalid_argument,
              text("a tensor of shape ", shape, " and dtype ", type, " was asked for", hint_of_sign(shape),
                   ": its elements must fit into ", PTRDIFF_MAX, " bytes"));
}

std::size_t count_of(const tensor_shape& shape) noexcept {
  std::size_t count = 1;
  for (const auto size : shape) count *= size;
  return count;
}

tensor_strides row_major(const tensor_shape& shape) noexcept {
  tensor_strides strides;
  for (std::size_t dimension = 0; dimension < shape.size(); ++dimension) strides.push_back(1);
  for (std::size_t dimension = shape.size(); dimension-- > 1;) {
    const auto inner = static_cast<std::ptrdiff_t>(std::max<std::size_t>(shape[dimension], 1));
    strides[dimension - 1] = strides[dimension] * inner;
  }
  return strides;
}

bool is_row_major(const tensor_shape& shape, const tensor_strides& strides) noexcept {
  if (count_of(shape) == 0) return true;
  std::ptrdiff_t expected = 1;
  for (std::size_t dimension = shape.size(); dimension-- > 0;) {
    if (shape[dimension] == 1) continue;
    if (strides[dimension] != expected) return false;
    expected *= static_cast<std::ptrdiff_t>(shape[dimension]);
  }
  return true;
}

std::optional<tensor_shape> broadcast(const tensor_shape& a, const tensor_shape& b) noexcept {
  const auto& shorter = a.size() < b.size() ? a : b;
  auto common = a.size() < b.size() ? b : a;
  const auto ahead = common.size() - shorter.size();
  for (std::size_t dimension = 0; dimension < shorter.size(); ++dimension) {
    const auto size = shorter[dimension];
    auto& found = common[ahead + dimension];
    if (found == 1) found = size;
    if (size != 1 && size != found) return std::nullopt;
  }
  return common;
}

std::optional<byte_reach> reach_of(dtype type, const tensor_shape& shape, const tensor_strides& strides) noexcept {
  const auto element = static_cast<std::ptrdiff_t>(dtype_size(type));
  if (!bytes_of(type, shape)) return std::nullopt;
  if (count_of(shape) == 0) return byte_reach{};
  byte_reach found{.first = 0, .last = element};
  for (std::size_t dimension = 0; dimension < shape.size(); ++dimension) {
    std::ptrdiff_t way = 0;
    if (!multiply(strides[dimension], static_cast<std::ptrdiff_t>(shape[dimension] - 1), way)) return std::nullopt;
    if (!multiply(way, element, way)) return std::nullopt;
    if (!add(way < 0 ? found.first : found.last, way)) return std::nullopt;
  }
  std::ptrdiff_t length = 0;
  if (__builtin_sub_overflow(found.last, found.first, &length)) return std::nullopt;
  return found;
}

namespace {

bool lies_within(const placement& what, std::size_t size) noexcept {
  const auto reach = reach_of(what.type, what.shape, what.strides);
  const auto offset = static_cast<std::ptrdiff_t>(what.offset_bytes);
  return reach && what.offset_bytes <= size && -reach->first <= offset &&
         reach->last <= static_cast<std::ptrdiff_t>(size) - offset;
}

bool is_aligned(const placement& what, std::span<const std::byte> bytes) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data()) + what.offset_bytes;
  return (address & (alignment_of(what.type) - 1)) == 0 || count_of(what.shape) == 0;
}

}  // namespace

bool fits(const placement& what, std::span<const std::byte> bytes) noexcept {
  return what.strides.size() == what.shape.size() && lies_within(what, bytes.size()) && is_aligned(what, bytes);
}

bool fits_in_a_row(const placement& what, std::size_t needed, std::span<const std::byte> bytes) noexcept {
  return what.offset_bytes <= bytes.size() && needed <= bytes.size() - what.offset_bytes && is_aligned(what, bytes);
}

std::string problem_of(const placement& what, std::span<const std::byte> bytes) {
  if (what.strides.size() != what.shape.size()) {
    return text("there are ", what.strides.size(), " strides for the ", what.shape.size(), " dimensions of shape ",
                what.shape);
  }
  if (!lies_within(what, bytes.size())) {
    return text("elements of dtype ", what.type, ", shape ", what.shape, " and strides ", what.strides, " from byte ",
                what.offset_bytes, " on do not lie within the ", bytes.size(), " bytes of their memory");
  }
  return text("elements of dtype ", what.type, " cannot begin at byte ", what.offset_bytes, " of memory at ",
              static_cast<const void*>(bytes.data()), ": addresses must be multiples of ", alignment_of(what.type));
}

}  // namespace muster::detail
