// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <muster/base/device.hpp>
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
  muster::device device{};  ///< that the worker is pinned to (pool_options::devices); the host where it is not
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

/// What a worker that died has left behind, as text for people.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct last_words {
  std::string output;  ///< the last lines that it wrote to stdout and stderr; empty where output is not captured
  std::string crash;   ///< its signal, the address, and the functions that it was in; empty when it did not crash

  std::string reason{};  ///< why the program killed it, where the task's error does not say so otherwise

  [[nodiscard]] bool some() const noexcept { return !output.empty() || !crash.empty() || !reason.empty(); }
};

/// A failure as data: what a task's future holds instead of a value.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class error_info {
public:
  error_info() = default;
  error_info(errc code, std::string message) : code_(code), message_(std::move(message)) {}

  /// The death of a worker, or of the process that is named; without text where there is no memory for it.
  [[nodiscard]] static error_info died(const exit_status& how, std::string_view who = "the worker") noexcept;
  /// The last death of those that a task has caused, which is not tried again for that. Likewise.
  [[nodiscard]] static error_info quarantined(const exit_status& how, unsigned deaths) noexcept;
  /// With the text that `describe` gives; without text where there is no memory for it. For ends, which must be told
  /// in any case.
  template <class Describe>
  [[nodiscard]] static error_info described(errc code, const Describe& describe) noexcept {
    error_info made;
    made.code_ = code;
    try {
      made.message_ = describe();
    } catch (...) {
      made.message_.clear();
    }
    return made;
  }
  /// `other`; its code and status alone where there is no memory for the rest.
  [[nodiscard]] static error_info copy_of(const error_info& other) noexcept;

  [[nodiscard]] errc code() const noexcept { return code_; }
  /// What happened: the exception's what(), or how the worker died.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  /// The exception's type as written in the source; empty when no exception was thrown.
  [[nodiscard]] const std::string& type_name() const noexcept { return type_name_; }
  /// What the exception was nested around, outermost first.
  [[nodiscard]] const std::vector<nested_error>& nested() const noexcept { return nested_; }
  [[nodiscard]] const exit_status& status() const noexcept { return status_; }
  [[nodiscard]] const task_place& place() const noexcept { return place_; }
  void set_place(task_place place) noexcept { place_ = std::move(place); }

  /// Of a worker that died at the task (errc::worker_died, timed_out, quarantined): the last lines that it had written
  /// to stdout and stderr, at most 20 and 4 KiB, each ended by a line feed, in the order in which they were read.
  /// Earlier tasks of that process may have written some. Empty unless pool_options::output captures.
  [[nodiscard]] const std::string& last_output() const noexcept { return words().output; }
  /// Of a worker that crashed (pool_options::crash_reports): a line with signal and address, then one for each function
  /// that it was in, innermost first. Empty when there is no report.
  [[nodiscard]] const std::string& crash() const noexcept { return words().crash; }
  [[nodiscard]] const last_words& words() const noexcept;
  /// Costs an allocation where there are some; without memory for it there are none.
  void set_words(const last_words& words) noexcept;

  /// All of it in one text: place, type, message, nested chain; then, in lines of their own, the report of a crash and
  /// the last output.
  [[nodiscard]] std::string describe() const;

  /// Throws it: an exception of a registered type as itself (with remote_info()), any other as remote_exception, a
  /// death as worker_died, everything else as task_error.
  [[noreturn]] void raise() const;

  friend bool operator==(const error_info& error, errc code) noexcept { return error.code_ == code; }

  template <class Archive>
  void serialize(Archive& archive) {
    bool has_words = words_ != nullptr;
    archive(code_, message_, type_name_, state_, nested_, status_, has_words);
    last_words of_worker = has_words ? words() : last_words();
    // A flag, so that short errors stay short: they must fit into a slot's line.
    if (has_words) archive(of_worker.output, of_worker.crash);
    if constexpr (Archive::is_loading::value) set_words(of_worker);
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
  std::shared_ptr<const last_words> words_;  // shared by copies, because it is long and never changes; mostly nothing
};

/// The exception that is being handled, as data. Called in the worker, inside a catch block.
/// Never throws: what cannot be kept is left out.
/// Thread safety: safe.
[[nodiscard]] error_info capture_current_exception() noexcept;

}  // namespace muster
