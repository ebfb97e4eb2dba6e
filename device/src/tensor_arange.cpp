// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <ranges>
#include <type_traits>
#include <variant>

#include <muster/base/detail/float_state.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/tensor.hpp>

#include "visit.hpp"

namespace muster {

namespace {

constexpr double most_steps = 0x1p53;  // of a sequence: beyond it not every number of steps is one

// Not a template parameter of its own: every integer that a tensor can hold is one of these.
__extension__ using wide_integer = __int128;

wide_integer number_at(std::size_t index, wide_integer first, wide_integer step) {
  return first + static_cast<wide_integer>(index) * step;
}

// What lies between two numbers may be more than the largest one.
double number_at(std::size_t index, double first, double step) {
  const auto steps = static_cast<double>(index);
  const auto found = first + steps * step;
  return std::isfinite(found) ? found : 2 * (first / 2 + steps * (step / 2));
}

template <class T, class Number>
T element_of(Number value) {
  if constexpr (std::is_class_v<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// How many numbers there are from first on before last; nothing for a sequence that does not end. A quotient of rounded
// numbers is one more or less.
std::optional<std::size_t> steps(double first, double last, double step) {
  if (!std::isfinite(first) || !std::isfinite(last) || !std::isfinite(step) || step == 0) return std::nullopt;
  const auto way = last - first;
  const auto about = std::ceil(std::isfinite(way) ? way / step : (last / 2 - first / 2) / (step / 2));
  if (!(std::abs(about) <= most_steps)) return std::nullopt;
  const auto is_before = [&](std::size_t index) {
    const auto number = number_at(index, first, step);
    return step > 0 ? number < last : number > last;
  };
  const auto candidates = std::views::iota(std::size_t{0}, static_cast<std::size_t>(std::max(about, 0.0)) + 1);
  return static_cast<std::size_t>(std::ranges::partition_point(candidates, is_before) - candidates.begin());
}

std::optional<std::size_t> steps(wide_integer first, wide_integer last, wide_integer step) {
  if (step == 0) return std::nullopt;
  const auto way = step > 0 ? last - first : first - last;
  const auto length = step > 0 ? step : -step;
  return way > 0 ? static_cast<std::size_t>((way + length - 1) / length) : 0;
}

[[noreturn]] void throw_no_sequence(double first, double last, double step) {
  throw error(errc::invalid_argument,
              text("arange from ", first, " to ", last, " in steps of ", step,
                   " was asked for: all three must be finite, the step not 0, and the numbers at most 2^53"));
}

template <class Number>
Number number_of(const detail::wide_number& value) {
  return value.visit([](const auto& wide) -> Number {
    if constexpr (detail::is_complex<std::remove_cvref_t<decltype(wide)>>)
      return static_cast<Number>(wide.real());
    else
      return static_cast<Number>(wide);
  });
}

}  // namespace

tensor tensor::arange(muster::dtype type, const detail::wide_number& first, const detail::wide_number& last,
                      const detail::wide_number& step, memory where) {
  return detail::visit_dtype(type, [&]<class T>(std::type_identity<T>) {
    if constexpr (detail::is_complex<T>) {
      return tensor();  // not reached: the template in the header is for real numbers
    } else {
      using number = std::conditional_t<std::is_integral_v<T>, wide_integer, double>;
      return in_fixed_float_state([&] {
        const auto begin = number_of<number>(first);
        const auto by = number_of<number>(step);
        const auto count = steps(begin, number_of<number>(last), by);
        if (!count) throw_no_sequence(number_of<double>(first), number_of<double>(last), number_of<double>(step));
        auto made = empty(type, {*count}, where);
        auto* const elements = reinterpret_cast<detail::stored<T>*>(made.data());
        for (std::size_t index = 0; index < *count; ++index) {
          elements[index] = element_of<T>(number_at(index, begin, by));
        }
        return made;
      });
    }
  });
}

}  // namespace muster
