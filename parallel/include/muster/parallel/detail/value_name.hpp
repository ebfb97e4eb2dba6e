// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <iosfwd>

#include <muster/base/requirements.hpp>

namespace muster::detail {

struct function_spec;

/// What messages call a value of a function. It is put together when a message is, because values are made with each
/// call.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
/// Lifetime: borrows the text or the spec.
class value_name {
public:
  enum class kind { output, update };

  constexpr value_name() noexcept = default;
  constexpr value_name(const char* text) noexcept : text_(text) {}
  constexpr value_name(const function_spec& spec, kind what, std::size_t index) noexcept
      : spec_(&spec), kind_(what), index_(index) {}

  /// "output 2 ('loss') of function 'step'".
  friend std::ostream& operator<<(std::ostream& out, const value_name& name);

private:
  const char* text_ = "a value";
  const function_spec* spec_ = nullptr;
  kind kind_ = kind::output;
  std::size_t index_ = 0;
};

}  // namespace muster::detail
