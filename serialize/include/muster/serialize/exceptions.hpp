// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a failed task throws in the caller.
//
// Thread safety: distinct objects: safe. Shared objects: safe, all members are const.

#include <exception>
#include <string>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster {

/// A task did not end with a value. `what()` says which task, where, and why; `info()` has the parts.
class task_error : public error {
public:
  explicit task_error(error_info info) : error(info.code(), info.describe()), info_(std::move(info)) {}

  [[nodiscard]] const error_info& info() const noexcept { return info_; }

private:
  error_info info_;
};

/// The worker that ran the task was killed, crashed or exited.
class worker_died : public task_error {
public:
  using task_error::task_error;

  [[nodiscard]] const exit_status& status() const noexcept { return info().status(); }
};

/// The task threw an exception of a type that is not registered (see MUSTER_REGISTER_EXCEPTION).
class remote_exception : public task_error {
public:
  using task_error::task_error;

  [[nodiscard]] const std::string& type_name() const noexcept { return info().type_name(); }
  [[nodiscard]] const std::string& remote_what() const noexcept { return info().message(); }
};

/// Base of every exception that was rethrown as itself: it carries where it came from.
class remote_details {
public:
  explicit remote_details(error_info info) : info_(std::move(info)) {}
  remote_details(const remote_details&) = default;
  remote_details(remote_details&&) = default;
  remote_details& operator=(const remote_details&) = default;
  remote_details& operator=(remote_details&&) = default;
  virtual ~remote_details() = default;

  [[nodiscard]] const error_info& info() const noexcept { return info_; }

private:
  error_info info_;
};

/// Where an exception came from, if a task threw it; nullptr otherwise, and for types that are final.
[[nodiscard]] const error_info* remote_info(const std::exception& exception) noexcept;

}  // namespace muster
