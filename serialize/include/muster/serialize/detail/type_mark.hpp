// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <typeinfo>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// What a type is called, and told apart by, between programs.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct type_mark {
  const char* name = "";  ///< as the compiler has it
  std::uint64_t fingerprint = 0;
};

[[nodiscard]] std::uint64_t fingerprint_of(const char* name) noexcept;

template <class T>
[[nodiscard]] type_mark mark_of() noexcept {
  return {.name = typeid(T).name(), .fingerprint = fingerprint_of(typeid(T).name())};
}

}  // namespace muster::detail
