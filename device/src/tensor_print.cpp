// SPDX-License-Identifier: BSL-1.0
#include <muster/device/tensor_print.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <muster/base/detail/float_state.hpp>
#include <muster/base/text.hpp>

#include "number_format.hpp"
#include "visit.hpp"

namespace muster {

namespace {

constexpr std::size_t most_in_full = 1000;
constexpr std::size_t shown_at_ends = 3;
constexpr std::size_t longest_line = 75;
constexpr std::string_view opening = "tensor(";
constexpr std::string_view omission = "...";

/// Texts of a tensor's elements, all of one width.
///
/// Thread safety: an object belongs to its thread.
class element_format {
  template <class F>
  auto visit(const std::byte* element, const F& what) const {
    return detail::visit_dtype(type_, [&]<class T>(std::type_identity<T>) {
      return what(T(*reinterpret_cast<const detail::stored<T>*>(element)));
    });
  }

public:
  /// As wide as "False" are bools, unless it is one that stands alone.
  element_format(dtype type, bool is_alone) : type_(type), width_(type == dtype::boolean && !is_alone ? 5 : 0) {}

  /// First with all elements that are to be shown, then settle() once, then texts may be asked for.
  void look_at(const std::byte* element) {
    visit(element, [this]<class T>(const T& value) {
      if constexpr (detail::is_complex<T>) {
        real_.look_at(value.real());
        imaginary_.look_at(value.imag());
      } else if constexpr (is_floating<T>) {
        real_.look_at(value);
      } else {
        width_ = std::max(width_, text_of_integer(value).size());
      }
    });
  }
  void settle() {
    real_.settle();
    imaginary_.settle();
  }
  [[nodiscard]] std::string text_of(const std::byte* element) const {
    return visit(element, [this]<class T>(const T& value) {
      if constexpr (detail::is_complex<T>) {
        return real_.text_of(value.real()) + imaginary_text_of(value.imag());
      } else if constexpr (is_floating<T>) {
        return real_.text_of(value);
      } else {
        const auto text = text_of_integer(value);
        return std::string(width_ - text.size(), ' ') + text;
      }
    });
  }

private:
  template <class T>
  static constexpr bool is_floating = detail::is_one_of<T, f16, bf16, float, double>;

  template <class T>
  static std::string text_of_integer(T value) {
    if constexpr (std::is_same_v<T, bool>)
      return value ? "True" : "False";
    else
      return std::to_string(value);
  }
  // The letter stands at its last digit, before the blanks that fill the column.
  template <class T>
  [[nodiscard]] std::string imaginary_text_of(T value) const {
    auto text = imaginary_.text_of(value);
    return text.insert(text.find_last_not_of(' ') + 1, 1, 'j');
  }

  const dtype type_;
  detail::number_format real_;
  detail::number_format imaginary_{detail::number_format::signs::of_all};
  std::size_t width_;
};

// Goes over the tensor twice: first to find how its elements are written, then to write them. Lines are broken where
// NumPy breaks those of "tensor(" + array + ",". Source: numpy/core/arrayprint.py, _formatArray.
class printer {
public:
  explicit printer(const tensor& what)
      : what_(what), abbreviates_(what.size() > most_in_full), elements_(what.dtype(), what.dimensions() == 0) {}

  [[nodiscard]] std::string print() {
    look_at(0, what_.const_data());
    elements_.settle();
    print_from(0, what_.const_data());
    return std::move(text_);
  }

  [[nodiscard]] bool abbreviates() const noexcept { return abbreviates_; }

private:
  // Calls `shown` with each place along a dimension that is shown, and with null where some are left out.
  template <class F>
  void for_each_shown(std::size_t dimension, const std::byte* at, const F& shown) const {
    const auto size = what_.shape()[dimension];
    const auto step = what_.strides()[dimension] * static_cast<std::ptrdiff_t>(dtype_size(what_.dtype()));
    for (std::size_t index = 0; index < size; ++index) {
      if (abbreviates_ && size > 2 * shown_at_ends && index == shown_at_ends) {
        shown(nullptr);
        index = size - shown_at_ends;
      }
      shown(at + static_cast<std::ptrdiff_t>(index) * step);
    }
  }

  void look_at(std::size_t dimension, const std::byte* at) {
    if (dimension == what_.dimensions()) return elements_.look_at(at);
    for_each_shown(dimension, at, [&](const std::byte* part) {
      if (part != nullptr) look_at(dimension + 1, part);
    });
  }

  void print_from(std::size_t dimension, const std::byte* at) {
    if (dimension == what_.dimensions()) {
      text_ += elements_.text_of(at);
      return;
    }
    text_ += '[';
    if (dimension + 1 == what_.dimensions())
      print_row(dimension, at);
    else
      print_parts(dimension, at);
    text_ += ']';
  }

  // Elements beside each other, in as many lines as they take, each with room for brackets and a comma.
  void print_row(std::size_t dimension, const std::byte* at) {
    const auto indent = indent_of(dimension);
    const auto most = longest_line - 2 - dimension;
    auto column = indent;
    for_each_shown(dimension, at, [&](const std::byte* element) {
      const auto word = element != nullptr ? elements_.text_of(element) : std::string(omission);
      if (column != indent) {
        text_ += ',';
        column += 2;
        if (column + word.size() > most) column = indent;
        text_ += column == indent ? '\n' + std::string(indent, ' ') : " ";
      }
      text_ += word;
      column += word.size();
    });
  }

  // Below one another, with as many line breaks between two as brackets close there.
  void print_parts(std::size_t dimension, const std::byte* at) {
    const auto breaks = what_.dimensions() - dimension - 1;
    const auto separator = ',' + std::string(breaks, '\n') + std::string(indent_of(dimension), ' ');
    bool is_first = true;
    for_each_shown(dimension, at, [&](const std::byte* part) {
      if (!is_first) text_ += separator;
      is_first = false;
      if (part != nullptr)
        print_from(dimension + 1, part);
      else
        text_ += omission;
    });
  }

  static std::size_t indent_of(std::size_t dimension) { return opening.size() + dimension + 1; }

  const tensor& what_;
  bool abbreviates_;
  element_format elements_;
  std::string text_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const tensor& given) {
  const auto what = given.to(device::cpu());
  printer elements(what);
  auto written =
      std::string(opening) + (what.size() == 0 ? "[]" : in_fixed_float_state([&] { return elements.print(); })) + ',';
  const bool has_shape = elements.abbreviates() || what.size() == 0;
  const auto where = given.device().is_cpu() ? std::string() : text(", ", given.device());
  const auto rest =
      has_shape ? text(what.dtype(), where, ", shape ", what.shape(), ')') : text(what.dtype(), where, ')');
  const auto last_line = written.size() - (written.rfind('\n') + 1);
  const bool fits = last_line + 1 + rest.size() <= longest_line;
  written += fits ? " " : '\n' + std::string(opening.size(), ' ');
  return out << written << rest;
}

}  // namespace muster
