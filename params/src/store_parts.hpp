// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/params/store.hpp>

namespace muster::detail {

/// What stands on stores sees of them.
struct store_parts {
  static const store_ptr& core(const store& of) { return of.core_; }
  /// The same store, for what looks at many keys once.
  [[nodiscard]] static store opened_again(const store& of);
};

}  // namespace muster::detail
