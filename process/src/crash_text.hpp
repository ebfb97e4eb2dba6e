// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace muster::detail {

/// A crash_record as text: signal and address, then the functions, innermost first, each in a line. Empty when the
/// bytes are none. `program`: the file of the module without a name. Cost: reads the table of symbols of each module;
/// milliseconds for large programs.
[[nodiscard]] std::string describe_crash(std::span<const std::byte> record, const std::string& program);

}  // namespace muster::detail
