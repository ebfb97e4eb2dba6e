// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <optional>
#include <string_view>

namespace bench {

/// The ratio that is wanted of a row.
struct goal {
  double ratio = 0;
  bool is_least = false;  ///< of speeds; those of times are the most that they should be
};

/// Where somebody has said one; what is beside a bound should be 1 at most.
[[nodiscard]] std::optional<goal> wanted(std::string_view row);

}  // namespace bench
