// SPDX-License-Identifier: BSL-1.0
#include <muster/device/tensor_print.hpp>

#include <iomanip>
#include <sstream>
#include <string>
#include <vector>

#include "visit.hpp"

namespace muster {

namespace {

constexpr std::size_t most_in_full = 1000;
constexpr std::size_t shown_at_ends = 3;

std::string text_of_element(const std::byte* at, dtype type) {
  std::ostringstream out;
  out << std::boolalpha;
  detail::visit_dtype(type, [&]<class T>(std::type_identity<T>) {
    const auto& value = *reinterpret_cast<const T*>(at);
    if constexpr (detail::is_complex<T>) {
      out << value.real() << std::showpos << value.imag() << 'i';
    } else if constexpr (detail::is_one_of<T, std::int8_t, std::uint8_t>) {
      out << int{value};
    } else if constexpr (detail::is_one_of<T, f16, bf16>) {
      out << static_cast<float>(value);
    } else {
      out << value;
    }
  });
  return std::move(out).str();
}

// Goes over the tensor twice: first to find how wide the widest element is, then to write.
class printer {
public:
  explicit printer(const tensor& what) : what_(what), abbreviates_(what.size() > most_in_full) {}

  void print(std::ostream& out) {
    std::ostringstream nowhere;
    print_from(nowhere, 0, what_.data(), 0);
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
    const auto text = text_of_element(at, what_.dtype());
    width_ = std::max(width_, text.size());
    out << std::string(width_ - text.size(), ' ') << text;
  }

  const tensor& what_;
  bool abbreviates_;
  std::size_t width_ = 0;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const tensor& what) {
  printer elements(what);
  out << "tensor(";
  if (what.size() == 0) {
    out << "[]";
  } else {
    elements.print(out);
  }
  out << ", " << what.dtype();
  if (elements.abbreviates() || what.size() == 0) out << ", shape " << what.shape();
  return out << ')';
}

}  // namespace muster
