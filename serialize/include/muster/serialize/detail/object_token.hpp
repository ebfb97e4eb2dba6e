// SPDX-License-Identifier: BSL-1.0
#pragma once

// Naming a static object in another process of the same build.
//
// A type_info and an error category are static objects: two of them may have one name, and their addresses differ
// between processes. Their place in their module does not. A token is compared, never followed: a forged one finds
// nothing.

#include <cstdint>
#include <typeinfo>

#include <muster/base/requirements.hpp>

namespace muster {

/// {module:32, offset:32}: a hash of the module's build-id, and where the object lies in the module.
enum class object_token : std::uint64_t { none = 0 };

/// Returns the token of the object at `address`: the same in all processes of one build. Returns `none` for objects
/// that lie in no module (heap, stack), in a module without a build-id, or more than 4 GiB behind its beginning.
///
/// Thread safety: safe; takes no lock. Cost: under a microsecond.
[[nodiscard]] object_token token_of(const void* address) noexcept;

/// Returns whether types of other translation units may have this type's name (unnamed namespaces). Such types are told
/// apart by their type_info's address alone, also where the compiler's operator== compares names.
///
/// Thread safety: safe.
[[nodiscard]] bool has_internal_linkage(const std::type_info& type) noexcept;

/// Returns whether both are one type.
///
/// Thread safety: safe.
[[nodiscard]] inline bool is_same_type(const std::type_info& a, const std::type_info& b) noexcept {
  return &a == &b || (a == b && !has_internal_linkage(a));
}

/// Returns the token that tells this type from others of its name: that of its type_info where it has internal linkage,
/// `none` where its name does.
///
/// Thread safety: safe.
[[nodiscard]] inline object_token local_token_of(const std::type_info& type) noexcept {
  return has_internal_linkage(type) ? token_of(&type) : object_token::none;
}

}  // namespace muster
