// SPDX-License-Identifier: BSL-1.0
#include "number_format.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <type_traits>

#include <muster/base/assert.hpp>
#include <muster/device/float16.hpp>

namespace muster::detail {

namespace {

constexpr int most_fraction = 8;

template <class T, class... Precision>
std::string digits_of(T number, std::chars_format how, Precision... precision) {
  std::array<char, 400> buffer{};  // the longest double has 309 digits before the point
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, how, precision...);
  MUSTER_ASSERT(end.ec == std::errc());
  return {buffer.data(), end.ptr};
}

double read(const std::string& digits) {
  double number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// No conversion of the standard library knows the narrow types: one digit more, until it is read as the number.
template <class T>
double shortest_of(T value) {
  const auto number = double{static_cast<float>(value)};
  for (int digits = 0;; ++digits) {
    const auto found = read(digits_of(number, std::chars_format::scientific, digits));
    if (static_cast<float>(T(static_cast<float>(found))) == static_cast<float>(value)) return found;
  }
}

}  // namespace

template <class T>
decimal_number decimal_of(T value) {
  const auto number =
      static_cast<double>(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(value));
  if (!std::isfinite(number)) return {number, number};
  if constexpr (std::is_same_v<T, double>) return {number, number};
  if constexpr (std::is_same_v<T, float>) return {number, read(digits_of(value, std::chars_format::scientific))};
  if constexpr (sizeof(T) == 2) return {number, shortest_of(value)};
}
template decimal_number decimal_of(f16);
template decimal_number decimal_of(bf16);
template decimal_number decimal_of(float);
template decimal_number decimal_of(double);

template <class T>
double rounded_to(double number) {
  if constexpr (std::is_same_v<T, double>)
    return number;
  else
    return double{static_cast<float>(T(static_cast<float>(number)))};
}
template double rounded_to<f16>(double);
template double rounded_to<bf16>(double);
template double rounded_to<float>(double);
template double rounded_to<double>(double);

struct number_format::parts {
  std::string whole;
  std::string fraction;
  std::string exponent;  // with its sign; empty: there is none

  parts(std::string_view text, bool cuts_zeros) {
    const auto end = std::min(text.find('e'), text.size());
    const auto point = std::min(text.find('.'), end);
    whole = text.substr(0, point);
    if (point < end) fraction = text.substr(point + 1, end - point - 1);
    if (end < text.size()) exponent = text.substr(end + 1);
    if (cuts_zeros) fraction.resize(fraction.find_last_not_of('0') + 1);
  }
};

// Without an exponent all digits before the point are the number's own; with one, at least so many after it.
number_format::parts number_format::parts_of(const decimal_number& number, std::size_t least_fraction) const {
  const auto how = has_exponents_ ? std::chars_format::scientific : std::chars_format::fixed;
  parts found(digits_of(number.shortest, how), false);
  if (found.fraction.size() > most_fraction) {
    found = parts(digits_of(number.exact, how, most_fraction), true);
  }
  if (has_exponents_ ? found.fraction.size() < least_fraction : found.fraction.empty()) {
    found = parts(digits_of(number.exact, how, has_exponents_ ? static_cast<int>(least_fraction) : 0), false);
  }
  if (has_all_signs_ && !std::signbit(number.exact)) found.whole.insert(0, 1, '+');
  return found;
}

bool number_format::wants_exponents() const {
  double largest = 0;
  double smallest = INFINITY;
  for (const auto& each : numbers_) {
    const auto size = std::abs(each.exact);
    if (!std::isfinite(size) || size == 0) continue;
    largest = std::max(largest, size);
    smallest = std::min(smallest, size);
  }
  return largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || round_(largest / smallest) > 1000));
}

void number_format::settle() {
  has_exponents_ = wants_exponents();
  for (const auto& each : numbers_) {
    if (!std::isfinite(each.exact)) continue;
    const auto found = parts_of(each, 0);
    whole_ = std::max(whole_, found.whole.size());
    fraction_ = std::max(fraction_, found.fraction.size());
    exponent_ = std::max(exponent_, found.exponent.size() - (has_exponents_ ? 1 : 0));
  }
  leave_room_for_names();
  numbers_.clear();
}

// For nan and inf, which end where the numbers do.
void number_format::leave_room_for_names() {
  const auto tail = 1 + fraction_ + (has_exponents_ ? 2 + exponent_ : 0);
  for (const auto& each : numbers_) {
    if (std::isfinite(each.exact)) continue;
    const auto size = name_of(each.exact).size();
    if (size > whole_ + tail) whole_ = size - tail;
  }
}

std::string number_format::name_of(double number) const {
  const std::string sign = number < 0 ? "-" : has_all_signs_ ? "+" : "";
  return sign + (std::isnan(number) ? "nan" : "inf");
}

std::string number_format::text_of_number(const decimal_number& number) const {
  const auto padded = [](std::size_t width, const std::string& text, char with) {
    return std::string(width - std::min(width, text.size()), with);
  };
  if (!std::isfinite(number.exact)) {
    const auto name = name_of(number.exact);
    return padded(whole_ + 1 + fraction_ + (has_exponents_ ? 2 + exponent_ : 0), name, ' ') + name;
  }
  const auto found = parts_of(number, fraction_);
  const auto text = padded(whole_, found.whole, ' ') + found.whole + '.' + found.fraction;
  if (!has_exponents_) return text + padded(fraction_, found.fraction, ' ');
  const auto digits = found.exponent.substr(1);
  return text + 'e' + found.exponent.front() + padded(exponent_, digits, '0') + digits;
}

}  // namespace muster::detail
