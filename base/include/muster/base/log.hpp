// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <string_view>

#include <muster/base/requirements.hpp>

namespace muster {

/// By who should read it: `debug` who mends muster, `info` who wonders what it did, `warning` who runs the program,
/// `error` who must act.
enum class log_level { debug, info, warning, error };

/// Returns the name of the enumerator: "warning". Any other number gives "?".
[[nodiscard]] std::string_view to_string(log_level level) noexcept;

/// Where messages go. The library never prints by itself: every component is given a sink.
///
/// It may wait: supervisors, and with them pools, call it on a thread that they have for it alone, drop messages (and
/// say how many) while a thousand wait for it, and wait for it when they are destroyed.
///
/// Thread safety: a sink is called from any thread, also from several at once. It must not throw and not call the
/// object that logs. An empty one drops all.
using log_sink = std::function<void(log_level, std::string_view)>;

/// `given`, or one that drops all where it is empty.
[[nodiscard]] inline log_sink callable(log_sink given) {
  if (given) return given;
  return [](log_level, std::string_view) {};
}

/// A sink that writes warnings and errors to stderr, one write a line, and drops the rest. The default.
///
/// Thread safety: safe.
void log_to_stderr(log_level level, std::string_view message) noexcept;

}  // namespace muster
