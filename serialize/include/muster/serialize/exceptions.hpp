// SPDX-License-Identifier: BSL-1.0
#pragma once

// The exceptions that a failed task throws in the caller.
//
// Thread safety: distinct objects: safe. Shared objects: safe, all members are const.

#include <exception>
#include <string>
#include <type_traits>

#include <muster/base/error.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster {

/// A task did not end with a value. `what()` says which task, where, and why; `info()` has the parts.
class task_error : public error {
public:
  /// what() returns info.describe(), code() returns info.code().
  explicit task_error(error_info info) : error(info.code(), info.describe()), info_(std::move(info)) {}

  /// Returns the failure as data.
  [[nodiscard]] const error_info& info() const noexcept { return info_; }

private:
  error_info info_;
};

/// The worker that ran the task was killed, crashed or exited.
class worker_died : public task_error {
public:
  /// `info`: the failure, of which what() and code() are made.
  using task_error::task_error;

  /// Returns the exit code or signal that the worker ended with.
  [[nodiscard]] const exit_status& status() const noexcept { return info().status(); }
};

/// The task threw an exception that has neither a registered type nor a standard base besides std::exception (see
/// MUSTER_REGISTER_EXCEPTION), or an exception that could not be saved or restored: info().save_failure() says why.
class remote_exception : public task_error {
public:
  /// `info`: the failure, of which what() and code() are made.
  using task_error::task_error;

  /// Returns the type of the exception, as written in the source.
  [[nodiscard]] const std::string& type_name() const noexcept { return info().type_name(); }
  /// Returns what the exception's what() returned in the worker.
  [[nodiscard]] const std::string& remote_what() const noexcept { return info().message(); }
};

/// Returns where an exception came from, if a task threw it; nullptr otherwise. Of a copy of the exception, nothing is
/// known.
/// Lifetime: as the exception.
[[nodiscard]] const error_info* remote_info(const std::exception& exception) noexcept;

namespace detail {

/// Returns the origin of the thrown object that `part` is, or is a part of; nullptr where there is none.
[[nodiscard]] const error_info* find_origin(const void* part) noexcept;

}  // namespace detail

/// The same of an exception that is not derived from std::exception.
template <class T>
  requires(!std::is_convertible_v<const T*, const std::exception*>)
[[nodiscard]] const error_info* remote_info(const T& exception) noexcept {
  return detail::find_origin(&exception);
}

}  // namespace muster
