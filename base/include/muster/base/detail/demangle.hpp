// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <typeinfo>

#include <muster/base/requirements.hpp>

namespace muster {

/// The source-code name of a type or function, or `mangled` itself when it is not a mangled name.
///
/// Thread safety: safe.
[[nodiscard]] std::string demangle(const char* mangled);

/// The source-code name of a type.
[[nodiscard]] inline std::string name_of(const std::type_info& type) { return demangle(type.name()); }

}  // namespace muster
