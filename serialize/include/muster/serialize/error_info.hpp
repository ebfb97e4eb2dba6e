// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/base/exit_status.hpp>

namespace muster {

/// Where a task failed; filled in by the parent, who knows.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct task_place {
  std::uint64_t task = 0;              ///< number of the task within its pool, from 1; 0: no task
  std::string label;                   ///< task_options::label
  std::optional<std::size_t> element;  ///< which element of a map
  unsigned attempt = 1;                ///< 1 at the first
  int worker = -1;                     ///< index of the worker; -1 when none had it
  pid_t pid = 0;                       ///< of the worker
};

/// One exception of a chain made by std::throw_with_nested.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct nested_error {
  std::string type_name;
  std::string message;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(type_name, message);
  }
};

/// A failure as data: what a task's future holds instead of a value.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class error_info {
public:
  error_info() = default;
  error_info(errc code, std::string message) : code_(code), message_(std::move(message)) {}

  /// A worker's death.
  [[nodiscard]] static error_info died(const exit_status& how);

  [[nodiscard]] errc code() const noexcept { return code_; }
  /// What happened: the exception's what(), or how the worker died.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  /// The exception's type as written in the source; empty when no exception was thrown.
  [[nodiscard]] const std::string& type_name() const noexcept { return type_name_; }
  /// What the exception was nested around, outermost first.
  [[nodiscard]] const std::vector<nested_error>& nested() const noexcept { return nested_; }
  [[nodiscard]] const exit_status& status() const noexcept { return status_; }
  [[nodiscard]] const task_place& place() const noexcept { return place_; }
  void set_place(task_place place) { place_ = std::move(place); }

  /// All of it in one text: place, type, message, nested chain.
  [[nodiscard]] std::string describe() const;

  /// Throws it: an exception of a registered type as itself (with remote_info()), any other as remote_exception, a
  /// death as worker_died, everything else as task_error.
  [[noreturn]] void raise() const;

  friend bool operator==(const error_info& error, errc code) noexcept { return error.code_ == code; }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(code_, message_, type_name_, state_, nested_, status_);
  }

private:
  friend error_info capture_current_exception() noexcept;

  errc code_ = errc::remote_exception;
  std::string message_;
  std::string type_name_;
  std::string state_;  // the exception itself, encoded by its exception_type
  std::vector<nested_error> nested_;
  exit_status status_;
  task_place place_;
};

/// The exception that is being handled, as data. Called in the worker, inside a catch block.
/// Never throws: what cannot be kept is left out.
/// Thread safety: safe.
[[nodiscard]] error_info capture_current_exception() noexcept;

}  // namespace muster
