// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster {

/// What two elements are joined by. Integers wrap around.
///
/// Thread safety: a value; safe.
enum class element_op : std::uint8_t {
  sum,   ///< of bools: whether one is true
  prod,  ///< of bools: whether both are
  min,   ///< the first of equal ones; NaN, if one is. Not of complex numbers
  max,   ///< likewise
};

}  // namespace muster
