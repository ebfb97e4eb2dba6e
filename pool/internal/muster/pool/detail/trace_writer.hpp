// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/queue/dispatcher.hpp>
#include <muster/queue/task_timing.hpp>

namespace muster::detail {

/// What Chrome's trace format says of a pool's tasks, as text: an array of events without its brackets, each with a
/// comma before it but the first.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class trace_text {
public:
  /// `name_of` says what a task without label is called.
  explicit trace_text(std::function<std::string(function_token)> name_of) : name_of_(std::move(name_of)) {}

  /// The rows: one for the parent, one for each worker. More are added when events name more workers.
  void add_rows(std::string_view pool_name, std::size_t workers);
  void add(const task_event& event);
  /// Says that so many events could not be kept.
  void add_lost(std::uint64_t count);

  /// What has come since the last time.
  [[nodiscard]] std::string take() { return std::exchange(text_, {}); }

private:
  void begin_event(char phase, std::size_t row);
  void add_name(const task_event& event);
  void add_run(const task_event& event);
  void add_unbegun(const task_event& event);
  void add_row(std::string_view name, std::size_t row);
  void add_worker_rows(std::size_t workers);

  const std::function<std::string(function_token)> name_of_;
  std::string pool_name_;
  std::size_t worker_rows_ = 0;
  std::string text_;
  const std::uint64_t pid_ = static_cast<std::uint64_t>(::getpid());
  std::uint64_t flows_ = 0;
  bool some_ = false;
};

/// Appends `value` as JSON, quotes included; what is no UTF-8 becomes question marks.
void append_json(std::string& out, std::string_view value);
/// Appends microseconds, with all digits that there are. Requires: time >= 0.
void append_time(std::string& out, std::chrono::nanoseconds time);

/// For what cannot be done with a trace file: throws muster::error with its name, and what errno says.
[[noreturn]] void throw_unwritable(const std::filesystem::path& file);
/// Writes all of `bytes`. Throws the same.
void write_trace(int descriptor, std::string_view bytes, const std::filesystem::path& file);

/// Takes a dispatcher's events and writes them into a file, on a thread of its own.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: borrows the dispatcher.
class trace_writer {
public:
  /// Throws muster::error when the file cannot be made, with its name, and when no thread can be had.
  trace_writer(const std::filesystem::path& file, dispatcher& from, trace_text text);
  trace_writer(const trace_writer&) = delete;
  trace_writer& operator=(const trace_writer&) = delete;
  ~trace_writer();

  /// Writes the rest and the end of the file. Throws muster::error, with the file's name, when not everything could be
  /// written. To be called once.
  void finish();

private:
  void run() MUSTER_EXCLUDES(mutex_);
  void write_news() noexcept;
  void write(std::string_view bytes);
  void stop() noexcept MUSTER_EXCLUDES(mutex_);

  const std::filesystem::path file_;
  dispatcher& from_;
  trace_text text_;               // of the thread, while there is one
  std::vector<task_event> news_;  // likewise
  unique_fd descriptor_;
  std::exception_ptr failure_;  // likewise

  mutex mutex_;
  condition changed_;
  bool some_ MUSTER_GUARDED_BY(mutex_) = false;
  bool stopping_ MUSTER_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster::detail
