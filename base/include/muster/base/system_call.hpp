// SPDX-License-Identifier: BSL-1.0
#pragma once

// The one place where system calls are checked: retried when a signal interrupted them, and turned into an
// exception that names the call, its arguments, the process and the cause when they fail.
//
// Thread safety: as the system call.

#include <cerrno>
#include <string>
#include <string_view>
#include <type_traits>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace detail {

/// Throws muster::error for errno, with the text "NAME(ARGUMENTS) failed in process PID: CAUSE".
[[noreturn]] void throw_system_error(int cause, std::string_view name, const std::string& arguments);

template <class Argument>
void print_argument(std::ostringstream& out, const char*& separator, const Argument& argument) {
  out << separator;
  separator = ", ";
  if constexpr (std::is_same_v<Argument, std::nullptr_t>) {
    out << "nullptr";
  } else if constexpr (std::is_same_v<Argument, char*>) {  // a buffer, not a text
    out << static_cast<const void*>(argument);
  } else {
    out << argument;
  }
}

template <class... Arguments>
[[noreturn]] void throw_system_error_with(int cause, std::string_view name, const Arguments&... arguments) {
  std::ostringstream out;
  [[maybe_unused]] const char* separator = "";
  (print_argument(out, separator, arguments), ...);
  throw_system_error(cause, name, std::move(out).str());
}

}  // namespace detail

/// Calls `call(arguments...)`, again while it fails with EINTR, and returns what it returned.
/// Throws muster::error with errno's code when the call returns -1.
template <class Call, class... Arguments>
auto system_call(std::string_view name, Call call, Arguments... arguments) {
  for (;;) {
    const auto result = call(arguments...);
    if (result != static_cast<decltype(result)>(-1)) return result;
    if (errno != EINTR) detail::throw_system_error_with(errno, name, arguments...);
  }
}

}  // namespace muster
