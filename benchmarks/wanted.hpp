// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <optional>
#include <string_view>

namespace bench {

/// The ratio that a row should not exceed, where somebody has said one; what is beside a bound should be 1 at most.
[[nodiscard]] std::optional<double> wanted(std::string_view row);

}  // namespace bench
