// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <typeinfo>
#include <vector>

namespace muster::detail {

/// Returns the class and its public bases, each before its own bases, nearest first. Of a type that is no class, that
/// type alone. A base that is there twice is listed twice.
///
/// Thread safety: safe. Cost: one allocation.
[[nodiscard]] std::vector<const std::type_info*> classes_of(const std::type_info& type);

}  // namespace muster::detail
