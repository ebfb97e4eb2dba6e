// SPDX-License-Identifier: BSL-1.0
#pragma once

// The one place where system calls are checked: retried when a signal interrupted them, and turned into an
// exception that names the call, its arguments, the process and the cause when they fail.
//
// Thread safety: as the system call.

#include <atomic>
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
  text_writer out;
  [[maybe_unused]] const char* separator = "";
  (print_argument(out, separator, arguments), ...);
  throw_system_error(cause, name, std::move(out).str());
}

using call_filter = int (*)(std::string_view name);

/// For tests, which cannot have the kernel fail any call at any time: asked before every checked call of this process
/// while it is set. What it returns, unless 0, is the errno that the call then fails with instead of being made.
inline constinit std::atomic<call_filter> refused_calls = nullptr;

[[nodiscard]] inline bool is_refused(std::string_view name) {
  const auto filter = refused_calls.load(std::memory_order_acquire);
  if (filter == nullptr) return false;
  errno = filter(name);
  return errno != 0;
}

}  // namespace detail

/// Calls `call(arguments...)`, again while it fails with EINTR, and returns what it returned; -1, with errno set, when
/// it failed. For calls of which a failure is an expected outcome.
template <class Call, class... Arguments>
auto try_system_call(std::string_view name, Call call, Arguments... arguments) {
  using result_type = decltype(call(arguments...));
  constexpr auto failed = static_cast<result_type>(-1);
  if (detail::is_refused(name)) return failed;
  for (;;) {
    const auto result = call(arguments...);
    if (result != failed || errno != EINTR) return result;
  }
}

/// The same, but throws muster::error with errno's code when the call failed.
template <class Call, class... Arguments>
auto system_call(std::string_view name, Call call, Arguments... arguments) {
  const auto result = try_system_call(name, call, arguments...);
  if (result == static_cast<decltype(result)>(-1)) detail::throw_system_error_with(errno, name, arguments...);
  return result;
}

}  // namespace muster
