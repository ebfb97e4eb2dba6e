// SPDX-License-Identifier: BSL-1.0
#pragma once

// The exceptions of the standard library, and muster::error: their state, and how they are thrown again.

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <typeinfo>

#include <muster/serialize/error_info.hpp>

namespace muster::detail {

/// One of these classes.
///
/// Thread safety: safe.
class standard_exception {
public:
  constexpr standard_exception(std::uint8_t number, const std::type_info& type) noexcept
      : number_(number), type_(type) {}
  standard_exception(const standard_exception&) = delete;
  standard_exception& operator=(const standard_exception&) = delete;

  /// The same in all processes of one build; never 0.
  [[nodiscard]] std::uint8_t number() const noexcept { return number_; }

  /// Returns the encoded state of this class within the exception, or nothing where the exception is not caught as this
  /// class. `what`: the text of the whole exception.
  [[nodiscard]] virtual std::optional<std::string> save(const std::exception_ptr& exception,
                                                        const std::string& what) const = 0;
  /// Throws an exception of this class, with info.message() as its what().
  /// Requires: called in the handler of the inner exception, if there is one.
  [[noreturn]] virtual void raise(const error_info& info) const = 0;
  /// Restores the state of this class within `exception`. Does nothing where the exception is not derived from it.
  virtual void restore(std::exception& exception, const error_info& info) const = 0;

  [[nodiscard]] static const standard_exception* find(const std::type_info& type) noexcept;
  [[nodiscard]] static const standard_exception* find(std::uint8_t number) noexcept;

protected:
  constexpr ~standard_exception() = default;

private:
  std::uint8_t number_;
  const std::type_info& type_;
};

}  // namespace muster::detail
