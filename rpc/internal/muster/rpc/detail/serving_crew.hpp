// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/log.hpp>

namespace muster::detail {

/// The threads of a member that serve requests. So many run the program's code at a time; one of the others waits for
/// the next request. A thread that waits inside of a request does not count meanwhile: a spare one is started for it,
/// so that requests that come back to this member are served however few threads there are.
///
/// Thread safety: safe.
class serving_crew {
public:
  /// How many threads may wait inside of requests at once.
  static constexpr std::size_t most_spare = 255;

  /// Where requests come from.
  class source {
  public:
    virtual ~source() = default;
    /// Waits for a request, and makes it ready to run: returns what runs it, or nothing where it needs no thread, or
    /// another had to look up. Called by one thread at a time. Unblocked by: interrupt().
    [[nodiscard]] virtual std::function<void()> next() = 0;
    /// Makes the thread that is in next() look up.
    virtual void interrupt() noexcept = 0;

    // A thread that runs a request leaves the requests unattended, where another one could serve the next: then the
    // process that sends one calls for help, and a thread that guards them wakes. So a request that comes when all are
    // done costs no thread's wake.

    /// No thread attends from now on. False, and nothing else, when there is a request already.
    [[nodiscard]] virtual bool look_away() noexcept = 0;
    /// A thread attends again.
    virtual void look_back() noexcept = 0;
    /// How often help was called for.
    [[nodiscard]] virtual std::uint32_t calls_for_help() const noexcept = 0;
    /// Waits until it has been called for more often, or there is something else to attend to; false when `until`
    /// passed first.
    virtual bool await_call_for_help(std::uint32_t seen, bool is_unattended, deadline until) noexcept = 0;
    virtual void call_for_help() noexcept = 0;
  };

  /// Lifetime: borrows the source.
  serving_crew(source& requests, std::size_t threads) : requests_(requests), limit_(threads) {}
  serving_crew(const serving_crew&) = delete;
  serving_crew& operator=(const serving_crew&) = delete;
  ~serving_crew();

  /// Starts the first thread. Throws EAGAIN where none can be had. `owner`: of this object; its threads keep it.
  void start(const std::shared_ptr<void>& owner) MUSTER_EXCLUDES(mutex_);
  /// Serves in the calling thread too, until `is_over`, which is asked again after each request that this thread has
  /// served, and after wake_runners(), and does not throw.
  void run(const std::function<bool()>& is_over) MUSTER_EXCLUDES(mutex_);
  void wake_runners() MUSTER_EXCLUDES(mutex_);
  /// The request that this thread serves is about to be answered, and does not go on behind that: the next one that
  /// its caller sends needs no other thread.
  void end_soon() noexcept MUSTER_EXCLUDES(mutex_);
  /// Waits until all requests that were begun have ended, but not that of the calling thread, and ends the threads.
  /// Requires: the source begins no further ones.
  void stop() noexcept MUSTER_EXCLUDES(mutex_);
  /// Whether this thread serves a request of this crew.
  [[nodiscard]] bool serves_here() const noexcept;

  /// While it lives the request that this thread serves, if it serves one, waits. Made before locks are taken.
  ///
  /// Thread safety: belongs to the thread that made it.
  class pause {
  public:
    /// Throws errc::overflow where too many wait, EAGAIN where no thread can be had for the others.
    pause();
    pause(const pause&) = delete;
    pause& operator=(const pause&) = delete;
    ~pause();

  private:
    serving_crew* const crew_;
  };

private:
  void serve() MUSTER_EXCLUDES(mutex_);
  // The lock is held before and behind it.
  void serve_next(scoped_lock& lock) MUSTER_NO_THREAD_SAFETY_ANALYSIS;
  // The same of these.
  void wait_for_turn(scoped_lock& lock) MUSTER_NO_THREAD_SAFETY_ANALYSIS;
  void wait_while_idle(scoped_lock& lock) MUSTER_NO_THREAD_SAFETY_ANALYSIS;
  void add_thread() MUSTER_REQUIRES(mutex_);
  void leave_requests(bool is_back_soon) noexcept MUSTER_REQUIRES(mutex_);
  void try_to_add_thread() noexcept MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool is_short() const noexcept MUSTER_REQUIRES(mutex_);
  void come_back() noexcept MUSTER_REQUIRES(mutex_);
  void tell_those_behind() noexcept MUSTER_REQUIRES(mutex_);
  void tell_all() noexcept MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::function<void()> receive() noexcept MUSTER_EXCLUDES(mutex_);
  void begin_pause() MUSTER_EXCLUDES(mutex_);
  void end_pause() noexcept MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool may_receive() const noexcept MUSTER_REQUIRES(mutex_) {
    return !is_receiving_ && !is_holding_ && !is_unattended_ && running_ < limit_ && returning_ == 0;
  }

  source& requests_;
  std::weak_ptr<void> owner_;
  mutex mutex_;
  condition turn_;
  std::size_t limit_ MUSTER_GUARDED_BY(mutex_);
  bool is_receiving_ MUSTER_GUARDED_BY(mutex_) = false;
  bool is_holding_ MUSTER_GUARDED_BY(mutex_) = false;  // a thread has a request that cannot run yet
  bool is_unattended_ MUSTER_GUARDED_BY(mutex_) = false;
  bool has_backlog_ MUSTER_GUARDED_BY(mutex_) = false;         // though requests are there, since each is short
  bool has_guard_ MUSTER_GUARDED_BY(mutex_) = false;           // a thread that waits for calls for help, and for news
  bool guard_watches_ MUSTER_GUARDED_BY(mutex_) = false;       // it looks from time to time whether they really are
  std::uint32_t help_seen_ MUSTER_GUARDED_BY(mutex_) = 0;      // before they were left
  std::uint64_t backlogs_ MUSTER_GUARDED_BY(mutex_) = 0;       // how often there was one
  std::uint64_t backlogs_seen_ MUSTER_GUARDED_BY(mutex_) = 0;  // by the guard
  std::uint64_t served_ MUSTER_GUARDED_BY(mutex_) = 0;         // requests
  std::chrono::nanoseconds usual_ MUSTER_GUARDED_BY(mutex_) = std::chrono::seconds(1);  // what one takes
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  std::size_t running_ MUSTER_GUARDED_BY(mutex_) = 0;    // threads in the program's code that do not wait
  std::size_t behind_ MUSTER_GUARDED_BY(mutex_) = 0;     // threads that wait for one to end its request
  std::size_t runners_ MUSTER_GUARDED_BY(mutex_) = 0;    // in run()
  std::size_t returning_ MUSTER_GUARDED_BY(mutex_) = 0;  // that have waited and are to go on
  std::size_t inside_ MUSTER_GUARDED_BY(mutex_) = 0;     // in the program's code, whether or not they wait
  std::size_t idle_ MUSTER_GUARDED_BY(mutex_) = 0;       // threads of the crew without a request
  std::uint64_t news_ MUSTER_GUARDED_BY(mutex_) = 0;     // how often there was something to look at
  std::size_t started_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
