// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <exception>
#include <type_traits>

#include <muster/base/error.hpp>

namespace muster::test {

/// The code of the muster::error that `failure` is.
[[nodiscard]] inline errc code_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const error& found) {
    return static_cast<errc>(found.code().value());
  }
}

/// Of the one that `call` throws; none, if it throws nothing.
template <class Call>
  requires std::is_invocable_v<const Call&>
[[nodiscard]] errc code_of(const Call& call) {
  try {
    call();
    return errc();
  } catch (...) {
    return code_of(std::current_exception());
  }
}

}  // namespace muster::test
