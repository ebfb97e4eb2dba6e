// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <complex>
#include <cstdint>
#include <utility>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// A number of any dtype, in the widest type of its kind.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class wide_number {
public:
  wide_number(std::int64_t number) noexcept  // NOLINT(google-explicit-constructor): the same number
      : kind_(kind::integer), integer_(static_cast<std::uint64_t>(number)) {}
  wide_number(std::uint64_t number) noexcept : kind_(kind::natural), integer_(number) {}  // NOLINT: likewise
  wide_number(double number) noexcept : kind_(kind::real), real_(number) {}               // NOLINT: likewise
  wide_number(std::complex<double> number) noexcept                                       // NOLINT: likewise
      : kind_(kind::complex), real_(number.real()), imaginary_(number.imag()) {}

  /// Calls `f` with the number.
  template <class F>
  decltype(auto) visit(F&& f) const {
    switch (kind_) {
      case kind::integer: return std::forward<F>(f)(static_cast<std::int64_t>(integer_));
      case kind::natural: return std::forward<F>(f)(integer_);
      case kind::real: return std::forward<F>(f)(real_);
      default: return std::forward<F>(f)(std::complex<double>(real_, imaginary_));
    }
  }

private:
  enum class kind : std::uint8_t { integer, natural, real, complex };

  kind kind_;
  std::uint64_t integer_ = 0;
  double real_ = 0;
  double imaginary_ = 0;
};

}  // namespace muster::detail
