// SPDX-License-Identifier: BSL-1.0
#pragma once

// What can go wrong, by what the caller can do about it.
//
// Three causes, three means: a bug asserts (assert.hpp), a failed environment or a wrong call throws `error`,
// an expected outcome (empty, full, timed out) is a return value.
//
// Thread safety: distinct objects: safe. Shared objects: safe, all members are const.

#include <string>
#include <system_error>

#include <muster/base/detail/abi.hpp>
#include <muster/base/requirements.hpp>

namespace muster {

/// The kinds of failure. Stable values: they cross processes.
enum class errc {
  invalid_argument = 1,   ///< the call is wrong: mend the call
  not_initialized = 2,    ///< main() does not begin with muster::init
  pool_closed = 3,        ///< close(), terminate() or a lost pool: make a new pool
  pool_broken = 4,        ///< no worker can start, or the initializer keeps failing: mend that, make a new pool
  overflow = 5,           ///< max_pending tasks are pending: submit later
  out_of_memory = 6,      ///< the arena, a device, a limit or the machine has no room: ask for less, or later
  worker_died = 7,        ///< the worker was killed, crashed or exited while it ran the task: retry if it is safe
  timed_out = 8,          ///< the deadline passed
  cancelled = 9,          ///< cancelled by the program, or the pool went away first
  quarantined = 10,       ///< the task killed too many workers to be tried again
  not_serializable = 11,  ///< a value could not be encoded or decoded
  corrupted = 12,         ///< shared memory held an impossible value: a worker misbehaves
  remote_exception = 13,  ///< the task threw an exception
  module_mismatch = 14,   ///< parent and worker do not run the same build: rebuild, restart
  start_failed = 15,      ///< a worker process could not be started
  peer_lost = 16,         ///< a member of a group died or left: shrink() the group, or make another
  forked = 17,            ///< it belongs to the process that this one was forked from: make your own after fork()
  device_lost = 18,       ///< this process cannot use its device any more: a worker is replaced for it; call again
  no_device = 19,         ///< no such device, or no driver for it: use another, or the CPU
  would_deadlock = 20,    ///< calls would wait for one another: let one of them go on without waiting
};

/// The category of errc. Its messages say what the code means, not what happened.
[[nodiscard]] const std::error_category& error_category() noexcept;

/// Returns the code with error_category(); std::error_code calls this when an errc is converted to it.
[[nodiscard]] std::error_code make_error_code(errc code) noexcept;

/// The base of all exceptions that muster throws on its own account.
///
/// `code()` is either an errc, or errno in std::system_category() when a system call failed; `what()` says what was
/// given, what was expected and what to do.
class error : public std::system_error {
public:
  /// Makes an error of this code. what() returns the text `what` as it is: the message of the code is not appended.
  ///@{
  error(errc code, std::string what);
  error(std::error_code code, std::string what);
  ///@}

  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }

private:
  std::string what_;
};

}  // namespace muster

/// @cond
template <>
struct std::is_error_code_enum<muster::errc> : std::true_type {};
/// @endcond
