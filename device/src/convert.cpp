// SPDX-License-Identifier: BSL-1.0
#include <muster/device/detail/convert.hpp>

#include <cstring>
#include <limits>

#include <muster/base/detail/float_state.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/overlap.hpp>

#include "apart_bytes.hpp"
#include "bools.hpp"
#include "convert_element.hpp"
#include "device_of.hpp"
#include "visit.hpp"

namespace muster {

namespace {

using detail::stored;

// What decides which numbers a dtype has: its largest is about 2^exponent.
struct number_range {
  int digits = 0;
  int exponent = 0;
  bool is_signed = false;
  bool is_fractional = false;
  bool is_complex = false;
};

template <class T>
constexpr number_range range_of() {
  if constexpr (detail::is_complex<T>) {
    auto part = range_of<typename T::value_type>();
    part.is_complex = true;
    return part;
  } else if constexpr (std::is_integral_v<T>) {
    constexpr int digits = std::numeric_limits<T>::digits;
    return {.digits = digits, .exponent = digits, .is_signed = std::is_signed_v<T>};
  } else if constexpr (detail::is_half<T>) {
    constexpr bool is_f16 = std::is_same_v<T, f16>;
    return {.digits = is_f16 ? 11 : 8, .exponent = is_f16 ? 16 : 128, .is_signed = true, .is_fractional = true};
  } else {
    using limits = std::numeric_limits<T>;
    return {.digits = limits::digits, .exponent = limits::max_exponent, .is_signed = true, .is_fractional = true};
  }
}

number_range range_of(dtype type) {
  return detail::visit_dtype(type, []<class T>(std::type_identity<T>) { return range_of<T>(); });
}

template <class To, class From>
void convert_adjacent(stored<To>* __restrict to, const stored<From>* __restrict from, std::size_t count) {
  for (std::size_t index = 0; index < count; ++index) to[index] = detail::converted<To, From>(from[index]);
}

template <class To, class From>
bool convert_run(detail::runs<2> at, std::size_t count) {
  auto& [to, from] = at;
  if (to.step_bytes == sizeof(To) && from.step_bytes == sizeof(From)) {
    convert_adjacent<To, From>(reinterpret_cast<stored<To>*>(to.first),
                               reinterpret_cast<const stored<From>*>(from.first), count);
    return true;
  }
  for (; count != 0; --count) {
    *reinterpret_cast<stored<To>*>(to.first) =
        detail::converted<To, From>(*reinterpret_cast<const stored<From>*>(from.first));
    to.first += to.step_bytes;
    from.first += from.step_bytes;
  }
  return true;
}

void require_same_shape(const tensor& to, const tensor& from) {
  if (to.shape() == from.shape()) return;
  throw error(errc::invalid_argument,
              text("elements of a tensor of shape ", from.shape(), " were to be converted to one of shape ", to.shape(),
                   ": the shapes must be the same"));
}

}  // namespace

bool is_lossless(dtype from, dtype to) noexcept {
  const auto given = range_of(from);
  const auto room = range_of(to);
  return given.digits <= room.digits && given.exponent <= room.exponent && given.is_signed <= room.is_signed &&
         given.is_fractional <= room.is_fractional && given.is_complex <= room.is_complex;
}

void convert_into(const tensor& to, const tensor& from) {
  require_same_shape(to, from);
  to.require_writable();
  if (to.dtype() == from.dtype()) return to.copy_from(from);
  auto* const there = detail::one_device_of("convert_into", to, from);
  const detail::apart_source source(to, from);
  if (there != nullptr) {
    if (to.size() != 0) there->convert(to, *source);
    return;
  }
  in_fixed_float_state([&] {
    detail::visit_dtype(to.dtype(), [&]<class To>(std::type_identity<To>) {
      detail::visit_dtype(from.dtype(), [&]<class From>(std::type_identity<From>) {
        if constexpr (!std::is_same_v<To, From>) detail::for_each_run(convert_run<To, From>, to, *source);
      });
    });
  });
}

void detail::convert_elements(dtype to_type, std::span<std::byte> to, dtype from_type,
                              std::span<const std::byte> from) {
  const auto count = to.size() / dtype_size(to_type);
  if (from.size() / dtype_size(from_type) != count) {
    throw error(errc::invalid_argument, text(from.size() / dtype_size(from_type), " elements were to be converted to ",
                                             count, ": there must be as many of both"));
  }
  if (count == 0) return;
  if (to_type == from_type) {
    if (to_type == dtype::boolean) return copy_bools(to.data(), from.data(), count);
    std::memmove(to.data(), from.data(), to.size());
    return;
  }
  const apart_bytes source(to, from, false);
  in_fixed_float_state([&] {
    visit_dtype(to_type, [&]<class To>(std::type_identity<To>) {
      visit_dtype(from_type, [&]<class From>(std::type_identity<From>) {
        if constexpr (!std::is_same_v<To, From>) {
          convert_run<To, From>({adjacent(to_type, to.data()), adjacent(from_type, source.data())}, count);
        }
      });
    });
  });
}

tensor convert(const tensor& from, dtype to, memory where) {
  if (from.dtype() == to) return from;
  auto made =
      from.device().is_cpu() ? tensor::empty(to, from.shape(), where) : tensor::empty(to, from.shape(), from.device());
  convert_into(made, from);
  return made;
}

}  // namespace muster
