// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include <muster/async/detail/delivery.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/fork_count.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/queue/dispatcher.hpp>

namespace boost::asio {
class io_context;
}

namespace muster::detail {

class pool_core;

/// Has a loop of the program's drain a pool's completions while somebody is to be told of them.
///
/// It works as follows. The dispatcher calls it when the first task has somebody to tell. A handler then looks for
/// completions, a *slice* of time at once, and hands itself back to the loop, so that other handlers run in between.
/// What has ended is delivered inside of it. When nothing has come for as long as a waiter spins, the bell is armed,
/// and the loop waits for its eventfd as for any descriptor; when nobody is to be told any more, it waits for nothing.
/// There is always one such handler, posted, running or waiting, or none: so nothing here runs twice at a time,
/// however many threads run the loop.
/// A loop that nobody runs, or whose handlers take long, is stood in for by the supervisor, who looks after it
/// (look_after) some 10 ms later; a thread that is about to sleep in a call of the pool's has it stand in at once.
///
/// Thread safety: safe, but for what is said to be the supervisor's.
/// Lifetime: the loop outlives stop().
class loop_attendant : public std::enable_shared_from_this<loop_attendant> {
public:
  /// `watch`: has look_after() called at some time, by the supervisor.
  loop_attendant(boost::asio::io_context& loop, std::function<void(clock::time_point)> watch);
  loop_attendant(const loop_attendant&) = delete;
  loop_attendant& operator=(const loop_attendant&) = delete;
  ~loop_attendant();

  /// The eventfd that workers ring.
  [[nodiscard]] int bell() const noexcept;

  /// Before anything else: whose completions.
  void attend(std::weak_ptr<pool_core> whose) { core_ = std::move(whose); }
  /// Begins to look. Requires: it does not look.
  void call() MUSTER_EXCLUDES(mutex_);
  /// Wakes the loop from its wait for the bell.
  void ring() const noexcept;
  /// The pool ends: the loop is not touched any more.
  void stop() noexcept MUSTER_EXCLUDES(mutex_);

  // The supervisor's.
  /// When to look after the loop again, after having stood in for it if it does not answer.
  [[nodiscard]] clock::time_point look_after(dispatcher& tasks) MUSTER_EXCLUDES(mutex_);
  /// Its bell has rung. Whether the loop sees to what there is.
  [[nodiscard]] bool sees_to_it(const dispatcher& tasks);

private:
  class link;
  struct descriptors;

  void poll() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] static bool look_long(dispatcher& tasks, std::chrono::nanoseconds time);
  bool serve(dispatcher& tasks, std::chrono::nanoseconds time) MUSTER_EXCLUDES(mutex_);
  std::size_t drain(dispatcher& tasks) MUSTER_EXCLUDES(mutex_);
  bool deliver(clock::time_point end) MUSTER_EXCLUDES(mutex_);
  void send_rest() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::unique_ptr<delivery> next_ended() MUSTER_EXCLUDES(mutex_);
  void poll_again() MUSTER_EXCLUDES(mutex_);
  void sleep() MUSTER_EXCLUDES(mutex_);
  void ensure_watched();

  std::weak_ptr<pool_core> core_;  // constant once it attends
  const std::function<void(clock::time_point)> watch_;
  const process_mark made_in_;
  std::unique_ptr<descriptors> descriptors_;
  std::atomic<std::uint64_t> looks_ = 0;  // of the loop; only to see that it lives
  std::atomic<bool> watched_ = false;     // look_after() will be called
  std::uint64_t looks_seen_ = 0;          // supervisor
  delivery_list fresh_;                   // of the one handler, as is the next
  std::chrono::nanoseconds in_vain_{};    // looked since something was found
  mutex mutex_;
  delivery_list ended_ MUSTER_GUARDED_BY(mutex_);  // to be delivered
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::detail
