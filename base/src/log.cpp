// SPDX-License-Identifier: BSL-1.0
#include <muster/base/log.hpp>

#include <unistd.h>

#include <string>

namespace muster {

std::string_view to_string(log_level level) noexcept {
  switch (level) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warning: return "warning";
    case log_level::error: return "error";
  }
  return "?";
}

void log_to_stderr(log_level level, std::string_view message) noexcept {
  if (level < log_level::warning) return;
  try {
    std::string line = "muster: ";
    line.append(to_string(level)).append(": ").append(message).push_back('\n');
    // A message that cannot be written has nowhere to go.
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
  } catch (const std::bad_alloc&) {
    return;  // as above
  }
}

}  // namespace muster
