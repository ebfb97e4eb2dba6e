// SPDX-License-Identifier: BSL-1.0
#include <muster/device/tensor_print.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <type_traits>

#include "number_format.hpp"
#include "visit.hpp"

namespace muster {

namespace {

constexpr std::size_t most_in_full = 1000;
constexpr std::size_t shown_at_ends = 3;

/// Texts of a tensor's elements, all of one width.
///
/// Thread safety: an object belongs to its thread.
class element_format {
  template <class F>
  auto visit(const std::byte* element, const F& what) const {
    return detail::visit_dtype(
        type_, [&]<class T>(std::type_identity<T>) { return what(*reinterpret_cast<const T*>(element)); });
  }

public:
  explicit element_format(dtype type) : type_(type) {}

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
      return value ? "true" : "false";
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
  std::size_t width_ = 0;
};

// Goes over the tensor twice: first to find how its elements are written, then to write them.
class printer {
public:
  explicit printer(const tensor& what)
      : what_(what), abbreviates_(what.size() > most_in_full), elements_(what.dtype()) {}

  void print(std::ostream& out) {
    std::ostringstream nowhere;
    print_from(nowhere, 0, what_.data(), 0);
    elements_.settle();
    is_settled_ = true;
    print_from(out, 0, what_.data(), std::string_view("tensor(").size());
  }

  [[nodiscard]] bool abbreviates() const noexcept { return abbreviates_; }

private:
  void print_from(std::ostream& out, std::size_t dimension, const std::byte* at, std::size_t indent) {
    if (dimension == what_.dimensions()) return print_element(out, at);
    const auto size = what_.shape()[dimension];
    const auto step = what_.strides()[dimension] * static_cast<std::ptrdiff_t>(dtype_size(what_.dtype()));
    out << '[';
    for (std::size_t index = 0; index < size; ++index) {
      if (index != 0) separate(out, dimension, indent);
      if (abbreviates_ && size > 2 * shown_at_ends && index == shown_at_ends) {
        out << "...";
        index = size - shown_at_ends - 1;
      } else {
        print_from(out, dimension + 1, at + static_cast<std::ptrdiff_t>(index) * step, indent + 1);
      }
    }
    out << ']';
  }

  void separate(std::ostream& out, std::size_t dimension, std::size_t indent) const {
    const auto deeper = what_.dimensions() - dimension - 1;  // as many line breaks as brackets close
    if (deeper == 0) {
      out << ", ";
    } else {
      out << ',' << std::string(deeper, '\n') << std::string(indent + 1, ' ');
    }
  }

  void print_element(std::ostream& out, const std::byte* at) {
    if (is_settled_)
      out << elements_.text_of(at);
    else
      elements_.look_at(at);
  }

  const tensor& what_;
  bool abbreviates_;
  element_format elements_;
  bool is_settled_ = false;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const tensor& given) {
  const auto what = given.to(device::cpu());
  printer elements(what);
  out << "tensor(";
  if (what.size() == 0) {
    out << "[]";
  } else {
    elements.print(out);
  }
  out << ", " << what.dtype();
  if (!given.device().is_cpu()) out << ", " << given.device();
  if (elements.abbreviates() || what.size() == 0) out << ", shape " << what.shape();
  return out << ')';
}

}  // namespace muster
