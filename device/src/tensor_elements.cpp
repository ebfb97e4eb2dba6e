// SPDX-License-Identifier: BSL-1.0
// Members of tensor that touch many elements.
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <muster/base/detail/float_state.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/detail/device_block.hpp>
#include <muster/device/overlap.hpp>
#include <muster/device/tensor.hpp>

#include "bools.hpp"
#include "convert_element.hpp"
#include "device_of.hpp"
#include "fill_run.hpp"
#include "layout.hpp"
#include "visit.hpp"

namespace muster {

namespace {

// The same number as a T, or nothing.
template <class T, class Wide>
std::optional<T> narrow(const Wide& value) {
  if constexpr (detail::is_complex<T> && detail::is_complex<Wide>) {
    return T(value);
  } else if constexpr (detail::is_complex<T>) {
    return T(static_cast<typename T::value_type>(value));
  } else if constexpr (detail::is_complex<Wide>) {
    return value.imag() == 0 ? narrow<T>(value.real()) : std::nullopt;
  } else if constexpr (!std::is_integral_v<T>) {
    if constexpr (std::is_class_v<T>)
      return T(detail::rounded_to_odd(value));
    else
      return static_cast<T>(value);
  } else if constexpr (std::is_same_v<Wide, double>) {
    // 2^digits is a double, which the largest integer need not be.
    const bool inside = value >= static_cast<double>(std::numeric_limits<T>::min()) &&
                        value < std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (inside && value == std::trunc(value)) return static_cast<T>(value);
    return std::nullopt;
  } else if constexpr (std::is_same_v<T, bool>) {
    return value == 0 || value == 1 ? std::optional(value == 1) : std::nullopt;
  } else {
    return std::in_range<T>(value) ? std::optional(static_cast<T>(value)) : std::nullopt;
  }
}

template <class T>
T narrow_or_throw(const detail::wide_number& value, dtype type) {
  return value.visit([type](const auto& wide) {
    if (const auto same = narrow<T>(wide)) return *same;
    throw error(errc::invalid_argument, text("a tensor of dtype ", type, " was to be filled with ", wide,
                                             ", which that cannot hold: give another number, or use another dtype"));
  });
}

template <class T>
T get(const detail::run& where, std::size_t index) {
  return *reinterpret_cast<const detail::stored<T>*>(where.first +
                                                     static_cast<std::ptrdiff_t>(index) * where.step_bytes);
}

template <class T>
void set(const detail::run& where, std::size_t index, T value) {
  *reinterpret_cast<detail::stored<T>*>(where.first + static_cast<std::ptrdiff_t>(index) * where.step_bytes) = value;
}

template <class T>
void copy_adjacent(std::byte* to, const std::byte* from, std::size_t count) {
  if constexpr (std::is_same_v<T, bool>)
    detail::copy_bools(to, from, count);
  else
    std::memmove(to, from, count * sizeof(T));
}

// Rows are moved as one.
bool are_rows(const tensor& to, const tensor& from) {
  return to.is_contiguous() && from.is_contiguous() && detail::device_of(to, from) == nullptr;
}

void copy_apart(const tensor& to, const tensor& from) {
  if (auto* const there = detail::device_of(to, from)) {
    if (to.size() == 0) return;
    there->copy(to, from);
    if (to.dtype() == dtype::boolean && to.device().is_cpu()) copy_apart(to, to);
    return;
  }
  const auto item = static_cast<std::ptrdiff_t>(dtype_size(to.dtype()));
  detail::visit_dtype(to.dtype(), [&]<class T>(std::type_identity<T>) {
    detail::for_each_run(
        [item](const detail::runs<2>& at, std::size_t count) {
          if (at[0].step_bytes == item && at[1].step_bytes == item) {
            copy_adjacent<T>(at[0].first, at[1].first, count);
          } else {
            for (std::size_t index = 0; index < count; ++index) set<T>(at[0], index, get<T>(at[1], index));
          }
          return true;
        },
        to, from);
  });
}

void copy_elements(const tensor& to, const tensor& from) {
  if (are_rows(to, from)) return copy_apart(to, from);
  const detail::apart_source source(to, from);
  copy_apart(to, *source);
}

// A tensor over bytes that live for the call; nobody writes through it where they are const.
tensor borrowed(std::span<const std::byte> bytes, dtype type, const tensor_shape& shape) {
  const std::span<std::byte> room(const_cast<std::byte*>(bytes.data()), bytes.size());
  return tensor::over(storage::over(room, nullptr), type, shape);
}

void require_bytes(const tensor& what, std::size_t bytes) {
  if (bytes == what.nbytes()) return;
  throw error(errc::invalid_argument, text(bytes / dtype_size(what.dtype()), " values were given for the ", what.size(),
                                           " elements of a tensor of shape ", what.shape(), ": there must be as many"));
}

}  // namespace

double detail::widened(float value) noexcept {
  return in_fixed_float_state([&value] { return static_cast<double>(value); });
}

void tensor::fill(const detail::wide_number& value) const {
  require_writable();
  detail::visit_dtype(type_, [&]<class T>(std::type_identity<T>) {
    const auto same = in_fixed_float_state([&] { return narrow_or_throw<T>(value, type_); });
    if (auto* const there = detail::device_of(*this)) {
      if (size() != 0) there->fill(*this, std::as_bytes(std::span(&same, 1)));
      return;
    }
    constexpr std::size_t worth_a_call = 64 / sizeof(T);  // elements
    detail::for_each_run(
        [same](const detail::runs<1>& at, std::size_t count) {
          if (at[0].step_bytes == static_cast<std::ptrdiff_t>(sizeof(T)) && count >= worth_a_call) {
            detail::fill_run(at[0].first, count * sizeof(T), detail::pattern_of(same));
            return true;
          }
          for (std::size_t index = 0; index < count; ++index) set<T>(at[0], index, same);
          return true;
        },
        *this);
  });
}

void tensor::copy_from(const tensor& other) const {
  require_writable();
  require(other.type_);
  if (other.shape_ != shape_) {
    throw error(errc::invalid_argument,
                text("elements of a tensor of shape ", other.shape_, " were to be copied to one of shape ", shape_,
                     ": the shapes must be the same"));
  }
  copy_elements(*this, other);
}

void tensor::read(std::span<const std::byte> values) const {
  require_writable();
  require_bytes(*this, values.size());
  copy_elements(*this, borrowed(values, type_, shape_));
}

void tensor::write(std::span<std::byte> room) const {
  require_bytes(*this, room.size());
  copy_elements(borrowed(room, type_, shape_), *this);
}

}  // namespace muster
