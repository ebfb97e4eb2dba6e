// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/rpc/detail/wait_graph.hpp>

namespace muster::detail {

/// A call that a member has sent, as a trace shows it.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct traced_post {
  call_id call;
  std::string name;
  std::string member;  ///< that is called
  clock::time_point when;
};

/// A call that a member has served.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct traced_run {
  call_id call;
  std::string name;
  std::string caller;
  clock::time_point begin;
  clock::time_point end;
  bool has_failed = false;
};

/// The events of a member as text of Chrome's trace format: one to a line, each with a comma behind it, so that several
/// members can append to one file. `thread`: the row.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class rpc_trace_text {
public:
  /// `member`: its number in the group.
  explicit rpc_trace_text(std::size_t member) noexcept : member_(member) {}

  void add_process(std::string_view group, std::string_view member, std::uint64_t pid);
  void add(const traced_post& what, std::uint64_t thread);
  void add(const traced_run& what, std::uint64_t thread);
  void add_lost(std::uint64_t count, clock::time_point when);
  [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }
  [[nodiscard]] std::string take() { return std::exchange(text_, {}); }

private:
  void begin_event(char phase, std::uint64_t thread, std::string_view name);
  void add_arrow(char phase, std::uint64_t thread, const call_id& call, clock::time_point when);

  const std::size_t member_;
  std::string text_;
};

/// Writes what a member does into a file, on a thread of its own.
///
/// Thread safety: safe.
class rpc_trace {
public:
  explicit rpc_trace(std::size_t member) noexcept : text_(member) {}
  rpc_trace(const rpc_trace&) = delete;
  rpc_trace& operator=(const rpc_trace&) = delete;
  ~rpc_trace() { static_cast<void>(finish()); }

  /// As rpc_group::trace_to.
  void begin(const std::string& file, std::string_view group, std::string_view member)
      MUSTER_EXCLUDES(control_, mutex_);
  /// As rpc_group::end_trace.
  void end() MUSTER_EXCLUDES(control_, mutex_);
  /// The same; returns what has failed.
  [[nodiscard]] std::exception_ptr finish() noexcept MUSTER_EXCLUDES(control_, mutex_);

  /// Whether a trace is taken. Cost: a load.
  [[nodiscard]] bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }
  /// Nothing, while none is.
  ///@{
  void add(const traced_post& what) MUSTER_EXCLUDES(mutex_) { add_event(what); }
  void add(const traced_run& what) MUSTER_EXCLUDES(mutex_) { add_event(what); }
  ///@}

private:
  static constexpr std::size_t most_bytes = std::size_t{1} << 28U;  // that wait to be written

  void add_event(const auto& what) MUSTER_EXCLUDES(mutex_);
  void write_on() noexcept MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool await_news() MUSTER_EXCLUDES(mutex_);
  void write_news() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::exception_ptr stop() noexcept MUSTER_REQUIRES(control_) MUSTER_EXCLUDES(mutex_);

  std::atomic<bool> is_on_ = false;
  mutex control_;
  std::thread thread_ MUSTER_GUARDED_BY(control_);
  // The thread's, while there is one.
  std::string file_;
  unique_fd descriptor_;
  std::exception_ptr failure_;
  mutex mutex_;
  condition changed_;
  bool stops_ MUSTER_GUARDED_BY(mutex_) = false;
  rpc_trace_text text_ MUSTER_GUARDED_BY(mutex_);
  std::uint64_t lost_ MUSTER_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::detail
