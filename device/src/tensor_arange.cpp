// SPDX-License-Identifier: BSL-1.0
#include <cmath>
#include <optional>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/tensor.hpp>

#include "visit.hpp"

namespace muster {

namespace {

// How many numbers there are from first on before last; nothing for a sequence that does not end.
std::optional<std::size_t> steps(double first, double last, double step) {
  const auto count = std::ceil((last - first) / step);
  constexpr double most = 0x1p53;  // beyond it not every number of steps is one
  if (!(std::abs(count) <= most)) return std::nullopt;
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

// Not a template parameter of its own: every integer that a tensor can hold is one of these.
__extension__ using wide_integer = __int128;

std::optional<std::size_t> steps(wide_integer first, wide_integer last, wide_integer step) {
  if (step == 0) return std::nullopt;
  const auto way = step > 0 ? last - first : first - last;
  const auto length = step > 0 ? step : -step;
  return way > 0 ? static_cast<std::size_t>((way + length - 1) / length) : 0;
}

[[noreturn]] void throw_no_sequence(double first, double last, double step) {
  throw error(errc::invalid_argument, text("arange from ", first, " to ", last, " in steps of ", step,
                                           " was asked for: all three must be finite, and the step not 0"));
}

template <class Number>
Number number_of(const detail::wide_number& value) {
  return std::visit(
      [](const auto& wide) -> Number {
        if constexpr (detail::is_complex<std::remove_cvref_t<decltype(wide)>>)
          return static_cast<Number>(wide.real());
        else
          return static_cast<Number>(wide);
      },
      value);
}

}  // namespace

tensor tensor::arange(muster::dtype type, const detail::wide_number& first, const detail::wide_number& last,
                      const detail::wide_number& step, memory where) {
  return detail::visit_dtype(type, [&]<class T>(std::type_identity<T>) {
    if constexpr (detail::is_complex<T>) {
      return tensor();  // not reached: the template in the header is for real numbers
    } else {
      using number = std::conditional_t<std::is_integral_v<T>, wide_integer, double>;
      const auto begin = number_of<number>(first);
      const auto by = number_of<number>(step);
      const auto count = steps(begin, number_of<number>(last), by);
      if (!count) throw_no_sequence(number_of<double>(first), number_of<double>(last), number_of<double>(step));
      auto made = empty(type, {*count}, where);
      auto* const elements = reinterpret_cast<T*>(made.data());
      for (std::size_t index = 0; index < *count; ++index) {
        const auto value = begin + static_cast<number>(index) * by;
        if constexpr (std::is_class_v<T>)
          elements[index] = T(static_cast<float>(value));
        else
          elements[index] = static_cast<T>(value);
      }
      return made;
    }
  });
}

}  // namespace muster
