// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include <muster/base/device.hpp>
#include <muster/base/error.hpp>
#include <muster/base/exit_status.hpp>
#include <muster/serialize/detail/encoded_exception.hpp>

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
  std::string type_name;              ///< as written in the source
  std::string message;                ///< its what()
  encoded_exception_ptr exception{};  ///< its encoded state; null where there is none

  /// For cereal.
  ///@{
  template <class Archive>
  void save(Archive& archive) const {
    archive(type_name, message);
    detail::save_exception(archive, exception);
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(type_name, message);
    detail::load_exception(archive, exception);
  }
  ///@}
};

/// What a worker that died has left behind, as text for people.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct last_words {
  std::string output;  ///< the last lines that it wrote to stdout and stderr; empty where output is not captured
  std::string crash;   ///< its signal, the address, and the functions that it was in; empty when it did not crash

  std::string reason{};  ///< why it ended, where the task's error does not say so otherwise: why the program killed it,
                         ///< or which exception ended it by std::terminate

  /// Returns whether any of the texts is not empty.
  [[nodiscard]] bool some() const noexcept { return !output.empty() || !crash.empty() || !reason.empty(); }
};

class error_info;

namespace detail {

/// Throws remote_exception, whose text says that the exception could not be restored, and why.
/// Requires: called in the handler of the inner exception, if there is one.
[[noreturn]] void raise_unrestored(const error_info& info, const std::string& reason);

}  // namespace detail

/// A failure as data: what a task's future holds instead of a value.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class error_info {
public:
  error_info() = default;
  /// A failure without an exception. `message`: what happened.
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

  /// Returns the kind of failure; errc::remote_exception for an exception that a task threw.
  [[nodiscard]] errc code() const noexcept { return code_; }
  /// What happened: the exception's what(), or how the worker died.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  /// The exception's type as written in the source; empty when no exception was thrown.
  [[nodiscard]] const std::string& type_name() const noexcept { return type_name_; }
  /// Whether the exception was of exactly that type. Types of one name in unnamed namespaces are told apart.
  [[nodiscard]] bool is_of(const std::type_info& type) const;
  /// Why an exception of a registered type is thrown as remote_exception: its serialize() threw. Empty otherwise.
  [[nodiscard]] const std::string& save_failure() const noexcept;
  /// The exception's encoded state; null when no exception was thrown.
  [[nodiscard]] const encoded_exception_ptr& exception() const noexcept { return exception_; }
  /// What the exception was nested around, outermost first.
  [[nodiscard]] const std::vector<nested_error>& nested() const noexcept { return nested_; }
  /// Returns how the process ended whose death is the failure; exit_status::lost() where none died.
  [[nodiscard]] const exit_status& status() const noexcept { return status_; }
  /// Returns where the task failed; without a task, place().task is 0.
  [[nodiscard]] const task_place& place() const noexcept { return place_; }
  /// Sets the kind of failure, of an exception that muster threw, not a task.
  void set_code(errc code) noexcept { code_ = code; }
  /// Sets where the task failed. The pool does so when it has received the error from the worker.
  void set_place(task_place place) noexcept { place_ = std::move(place); }

  /// Of a worker that died at the task (errc::worker_died, timed_out, quarantined): the last lines that it had written
  /// to stdout and stderr, at most 20 and 4 KiB, each ended by a line feed, in the order in which they were read.
  /// Earlier tasks of that process may have written some. Empty unless pool_options::output captures.
  [[nodiscard]] const std::string& last_output() const noexcept { return words().output; }
  /// Of a worker that crashed (pool_options::crash_reports): a line with signal and address, then one for each function
  /// that it was in, innermost first. Empty when there is no report.
  [[nodiscard]] const std::string& crash() const noexcept { return words().crash; }
  /// Returns the texts that a worker left behind when it died; empty ones where there are none.
  [[nodiscard]] const last_words& words() const noexcept;
  /// Costs an allocation where there are some; without memory for it there are none.
  void set_words(const last_words& words) noexcept;

  /// All of it in one text: place, type, message, nested chain; then, in lines of their own, the report of a crash and
  /// the last output.
  [[nodiscard]] std::string describe() const;

  /// Throws it: an exception as itself where its type is registered or standard (with remote_info()); as its nearest
  /// base that is; else, or when it could not be saved or restored, as remote_exception. A death is thrown as
  /// worker_died, everything else as task_error. std::rethrow_if_nested finds the inner exceptions, each thrown by the
  /// same rules.
  [[noreturn]] void raise() const;

  friend bool operator==(const error_info& error, errc code) noexcept { return error.code_ == code; }

  /// For cereal: all but place() and last_words::reason, which the program adds.
  ///@{
  template <class Archive>
  void save(Archive& archive) const {
    archive(code_, parts(), message_);
    if ((parts() & has_exception) != 0) {
      archive(type_name_);
      detail::save_exception(archive, exception_);
    }
    if ((parts() & has_nested) != 0) archive(nested_);
    if ((parts() & has_status) != 0) archive(status_);
    if ((parts() & has_words) != 0) archive(words_->output, words_->crash);
  }
  template <class Archive>
  void load(Archive& archive) {
    *this = {};
    std::uint8_t has = 0;
    archive(code_, has, message_);
    if ((has & has_exception) != 0) {
      archive(type_name_);
      detail::load_exception(archive, exception_);
    }
    if ((has & has_nested) != 0) archive(nested_);
    if ((has & has_status) != 0) archive(status_);
    if ((has & has_words) != 0) {
      last_words of_worker;
      archive(of_worker.output, of_worker.crash);
      set_words(of_worker);
    }
  }
  ///@}

private:
  friend error_info capture_current_exception() noexcept;
  friend void detail::raise_unrestored(const error_info& info, const std::string& reason);

  explicit error_info(const nested_error& thrown)
      : message_(thrown.message), type_name_(thrown.type_name), exception_(thrown.exception) {}

  // Which parts there are, in a byte, so that short errors stay short: they must fit into a slot's line.
  static constexpr std::uint8_t has_exception = 1;
  static constexpr std::uint8_t has_nested = 2;
  static constexpr std::uint8_t has_status = 4;
  static constexpr std::uint8_t has_words = 8;
  [[nodiscard]] std::uint8_t parts() const noexcept {
    return static_cast<std::uint8_t>((!type_name_.empty() ? has_exception : 0U) | (!nested_.empty() ? has_nested : 0U) |
                                     (status_ != exit_status() ? has_status : 0U) |
                                     (words_ != nullptr ? has_words : 0U));
  }

  // The error of the outermost inner exception. Requires: there is one.
  [[nodiscard]] error_info inner() const;

  errc code_ = errc::remote_exception;
  std::string message_;
  std::string type_name_;
  encoded_exception_ptr exception_;
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
