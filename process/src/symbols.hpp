// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::detail {

/// The function that holds each of the addresses, as the module's file counts them, by the file's own table of symbols:
/// mangled; empty where there is none. Never throws for a file that cannot be read, or is not what it seems.
[[nodiscard]] std::vector<std::string> find_symbols(const std::string& file,
                                                    const std::vector<std::uint64_t>& addresses);

}  // namespace muster::detail
