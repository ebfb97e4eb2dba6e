// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <system_error>

#include <muster/serialize/error_code.hpp>

#include "table_lock.hpp"

namespace muster {

/// The categories that this process has registered.
///
/// Thread safety: safe.
class category_registry {
public:
  constexpr category_registry() noexcept = default;

  void add(registered_category& category) noexcept MUSTER_EXCLUDES(detail::table_mutex);
  void remove(const registered_category& category) noexcept MUSTER_EXCLUDES(detail::table_mutex);
  /// Returns the category of this name that has this token. Where one of both has none, the name alone decides, if one
  /// category has it. Returns nullptr otherwise.
  [[nodiscard]] const std::error_category* find(object_token token, const std::string& name) const noexcept
      MUSTER_EXCLUDES(detail::table_mutex);

private:
  const registered_category* newest_ MUSTER_GUARDED_BY(detail::table_mutex) = nullptr;
};

}  // namespace muster
