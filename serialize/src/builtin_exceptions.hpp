// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

#include <muster/serialize/exception_type.hpp>

namespace muster::detail {

/// How exceptions of the standard library, and of muster itself, are thrown again; nullptr for other names.
///
/// Thread safety: safe.
const exception_type* find_builtin_exception(const std::string& name);

}  // namespace muster::detail
