// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace muster::detail {

/// A number, and the one with the fewest decimal digits that is read as it in its type: 0.1F is 0.100000001490116… and
/// 0.1. The same for infinities and NaNs.
struct decimal_number {
  double exact = 0;
  double shortest = 0;
};

/// For f16, bf16, float and double.
template <class T>
[[nodiscard]] decimal_number decimal_of(T value);
/// The nearest number of type T.
template <class T>
[[nodiscard]] double rounded_to(double number);

/// Texts of numbers that stand in one table, as NumPy writes them unless told otherwise: the fewest digits that tell
/// each from its neighbours, at most eight after the point, all points below one another; with an exponent where the
/// largest is too large or too far from the smallest. Source: numpy/core/arrayprint.py, FloatingFormat.
///
/// Thread safety: distinct objects: safe. Shared objects: safe once settled.
class number_format {
public:
  enum class signs { of_negatives, of_all };

  explicit number_format(signs which = signs::of_negatives) : has_all_signs_(which == signs::of_all) {}

  /// First with all numbers of the table, which are of one type, then settle() once, then texts may be asked for.
  template <class T>
  void look_at(T value) {
    numbers_.push_back(decimal_of(value));
    round_ = &rounded_to<T>;
  }
  void settle();
  /// All of the same width.
  template <class T>
  [[nodiscard]] std::string text_of(T value) const {
    return text_of_number(decimal_of(value));
  }

private:
  struct parts;

  [[nodiscard]] std::string text_of_number(const decimal_number& number) const;
  [[nodiscard]] parts parts_of(const decimal_number& number, std::size_t least_fraction) const;
  [[nodiscard]] bool wants_exponents() const;
  void leave_room_for_names();
  [[nodiscard]] std::string name_of(double number) const;

  const bool has_all_signs_;
  std::vector<decimal_number> numbers_;
  double (*round_)(double) = nullptr;
  bool has_exponents_ = false;
  std::size_t whole_ = 0;     // digits and sign before the point
  std::size_t fraction_ = 0;  // digits after it
  std::size_t exponent_ = 0;  // digits of it, without its sign
};

}  // namespace muster::detail
