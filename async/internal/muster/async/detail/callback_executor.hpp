// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include <muster/async/detail/callback_pause.hpp>
#include <muster/async/detail/deferred_call.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/fork_count.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/handler_room.hpp>
#include <muster/base/log.hpp>

namespace boost::asio {
class io_context;
}

namespace muster::detail {

/// Memory for one operation of Asio.
struct loop_room : handler_room<128> {};

/// Where a pool runs the program's callbacks: one after the other, on a thread which is started by the first; on a
/// loop of the program's; or, by hand, in run_posted().
///
/// A callback may do anything: call the pool, wait for a future, destroy the pool. What it throws is logged. While one
/// waits (callback_pause), those behind it go on, on another thread; it goes on itself when none of them runs.
/// Thread safety: distinct objects: safe. Shared objects: safe.
class callback_executor : public std::enable_shared_from_this<callback_executor> {
public:
  /// How many callbacks may wait at once, less one.
  static constexpr std::size_t most_threads = 256;

  explicit callback_executor(log_sink log) : log_(callable(std::move(log))) {}
  /// Without a thread: `loop`, which must outlive stop().
  callback_executor(log_sink log, boost::asio::io_context& loop) : log_(callable(std::move(log))), loop_(&loop) {}
  struct by_hand {};
  /// Without either: what is posted runs in run_posted().
  callback_executor(log_sink log, by_hand /*tag*/) : log_(callable(std::move(log))), by_hand_(true) {}
  callback_executor(const callback_executor&) = delete;
  callback_executor& operator=(const callback_executor&) = delete;
  ~callback_executor();

  /// Null: it has threads, or is run by hand.
  [[nodiscard]] boost::asio::io_context* loop() const noexcept { return loop_; }

  /// Starts the thread, unless there is one. For callers that can still report a failure: throws muster::error where
  /// no thread can be had.
  void prepare() MUSTER_EXCLUDES(mutex_);
  /// Allocates what posting `call` needs, so that try_post() cannot fail. Throws std::bad_alloc.
  void reserve(deferred_call& call) const;
  /// Both.
  void prepare(deferred_call& call) MUSTER_EXCLUDES(mutex_);
  /// Runs `call` soon, never inside this function. Where no thread can be had, it runs when the next call comes, or at
  /// stop(). After stop() it runs inside this function, because there is no thread any more.
  void post(deferred_ptr call) noexcept MUSTER_EXCLUDES(mutex_);
  /// As post(); after stop() it does nothing and returns false, and `call` stays the caller's.
  [[nodiscard]] bool try_post(deferred_ptr& call) noexcept MUSTER_EXCLUDES(mutex_);
  /// As post(), but not before `when`; stop() drops it. False after stop(). Throws std::bad_alloc.
  /// Requires: the executor has a thread, not a loop.
  bool post_at(clock::time_point when, deferred_ptr call) MUSTER_EXCLUDES(mutex_);

  /// The same with a callable, for which a deferred_call is allocated now. Throws std::bad_alloc.
  template <std::invocable F>
  void post(F f) {
    auto call = defer(std::move(f));
    reserve(*call);
    post(std::move(call));
  }
  template <std::invocable F>
  bool try_post(F f) {
    deferred_ptr call = defer(std::move(f));
    reserve(*call);
    return try_post(call);
  }
  template <std::invocable F>
  bool post_at(clock::time_point when, F f) {
    return post_at(when, defer(std::move(f)));
  }

  /// Runs what was posted, in the calling thread, and what that posts. Requires: by_hand; one thread at a time.
  void run_posted() MUSTER_EXCLUDES(mutex_);

  /// Runs what was posted, then ends the threads and waits for them. Called by a callback it does not wait. What was
  /// posted to a loop runs when that does.
  void stop() MUSTER_EXCLUDES(mutex_);

private:
  friend class callback_pause;

  struct loop_handler;

  void require_thread() MUSTER_REQUIRES(mutex_);
  void try_to_have_thread() noexcept MUSTER_REQUIRES(mutex_);
  void log_lack() noexcept MUSTER_EXCLUDES(mutex_);
  void add_thread() MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::thread take_thread() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] deadline take_due() MUSTER_REQUIRES(mutex_);
  void work() MUSTER_EXCLUDES(mutex_);
  void run(deferred_call& call) const noexcept;
  void log_failure(const char* what) const noexcept;
  void begin_pause() MUSTER_EXCLUDES(mutex_);
  void end_pause() noexcept MUSTER_EXCLUDES(mutex_);

  const process_mark made_in_;
  const log_sink log_;
  boost::asio::io_context* const loop_ = nullptr;
  const bool by_hand_ = false;
  mutex mutex_;
  condition changed_;  // for threads that have nothing to do
  condition turn_;     // for callbacks that have waited
  deferred_list calls_ MUSTER_GUARDED_BY(mutex_);
  std::multimap<clock::time_point, deferred_ptr> later_ MUSTER_GUARDED_BY(mutex_);
  // Why a call waits for a thread. The next thread logs it: the sink is the program's, and the poster may be the
  // supervisor.
  std::exception_ptr lack_ MUSTER_GUARDED_BY(mutex_);
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  bool started_ MUSTER_GUARDED_BY(mutex_) = false;   // the first thread, or nobody needs it any more
  bool running_ MUSTER_GUARDED_BY(mutex_) = false;   // a callback that does not wait
  std::size_t idle_ MUSTER_GUARDED_BY(mutex_) = 0;   // threads that wait for jobs
  std::size_t ready_ MUSTER_GUARDED_BY(mutex_) = 0;  // callbacks that have waited and are to go on
  std::vector<std::thread> threads_ MUSTER_GUARDED_BY(mutex_);
  std::size_t taken_ MUSTER_GUARDED_BY(mutex_) = 0;  // of these: the first ones, by who ends them
};

}  // namespace muster::detail
