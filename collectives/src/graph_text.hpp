// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <string_view>

namespace muster::detail {

/// In quotes, as Graphviz and JSON both read it; other control characters than line ends become question marks.
/// Requires: UTF-8, for JSON.
[[nodiscard]] inline std::string quoted(std::string_view value) {
  std::string out(1, '"');
  for (const auto each : value) {
    if (each == '"' || each == '\\') out += '\\';
    if (each == '\n') {
      out += "\\n";
    } else {
      out += static_cast<unsigned char>(each) < 0x20 ? '?' : each;
    }
  }
  return out + '"';
}

}  // namespace muster::detail
