// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>

#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/queue/detail/message_ring.hpp>
#include <muster/rpc/detail/call_ledger.hpp>
#include <muster/rpc/detail/served_counts.hpp>

namespace muster::detail {

/// Waiting for replies. One thread at a time reads the member's ring of replies, for all: a thread that waits for a
/// call, or, where calls have callbacks and none waits, a thread of its own, which is started by the first callback.
/// The others sleep until their call has ended, or no thread reads.
///
/// Thread safety: safe.
class reply_reader {
public:
  /// What it tells of.
  class events {
  public:
    virtual ~events() = default;
    /// Looks at whether members have died. Called by the thread that reads, when one may have.
    virtual void look_at_deaths() = 0;
    /// Ends calls whose time has passed.
    virtual void look_at_times() = 0;
    /// Replies cannot be read any more: all calls end with that.
    virtual void reading_failed(const std::exception_ptr& why) noexcept = 0;
  };

  /// Lifetime: borrows all.
  reply_reader(const domain& where, std::shared_ptr<message_ring> replies, call_ledger& calls, events& owner);
  reply_reader(const reply_reader&) = delete;
  reply_reader& operator=(const reply_reader&) = delete;
  ~reply_reader();

  /// Waits until the call has ended; false when `until` passed first.
  /// Unblocked by: the reply, the death of the member that serves it, or another thread that ends the call and nudges.
  bool wait(const pending_call& what, deadline until) {
    return wait_until([](const void* of) { return static_cast<const pending_call*>(of)->is_done(); }, &what, until);
  }
  /// The same, until `is_over(of)`, which changes when a call ends.
  using question = bool (*)(const void* of);
  bool wait_until(question is_over, const void* of, deadline until) MUSTER_EXCLUDES(mutex_);
  /// Takes what is there, if no other thread reads. Does not wait.
  void catch_up() MUSTER_EXCLUDES(mutex_);
  /// Somebody wants to be told of ends, or the first of their times has changed.
  void attend() MUSTER_EXCLUDES(mutex_);
  /// The thread that reads next looks at whether members have died, behind all replies that there are.
  void look_again() noexcept;
  /// Threads that wait look anew.
  void nudge() MUSTER_EXCLUDES(mutex_);
  /// Ends the thread, and waits until no thread reads. Requires: all calls have ended.
  void stop() noexcept MUSTER_EXCLUDES(mutex_);
  /// Of all replies so far.
  [[nodiscard]] std::uint64_t received_bytes() const noexcept { return bytes_.read(); }

private:
  struct asked {
    question is_over;
    const void* of;
    bool is_endless = false;  ///< takes all that there is, whatever the time
    [[nodiscard]] bool operator()() const { return is_over(of); }
  };

  class waiter;
  /// Ends the reading that its thread has begun.
  ///
  /// Thread safety: belongs to its thread.
  class reading_turn {
  public:
    explicit reading_turn(reply_reader& of) noexcept : of_(of) {}
    reading_turn(const reading_turn&) = delete;
    reading_turn& operator=(const reading_turn&) = delete;
    ~reading_turn() { of_.end_reading(); }

  private:
    reply_reader& of_;
  };
  bool wait_once(const asked& what, deadline until) MUSTER_EXCLUDES(mutex_);
  void begin_reading() MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool try_begin_reading() MUSTER_EXCLUDES(mutex_);
  void end_reading() MUSTER_EXCLUDES(mutex_);
  void ask_for_turn();
  void read_until(const asked& what, deadline until);
  void read(const asked& what, deadline until);
  void take(ring_position at) noexcept;
  void take_out(ring_position at);
  [[nodiscard]] bool is_interrupted(const asked& what) noexcept;
  void tell_others() noexcept MUSTER_EXCLUDES(mutex_);
  void ring_bell();
  void watch_on() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool watch_once() noexcept;
  [[nodiscard]] bool is_watched() const noexcept MUSTER_REQUIRES(mutex_) {
    return stopped_ || (calls_.has_notices() && !is_reading_ && waiting_ == 0);
  }

  const domain& domain_;
  const std::shared_ptr<message_ring> replies_;
  call_ledger& calls_;
  events& owner_;
  std::atomic<std::uint32_t> deaths_;           // that were looked at
  std::atomic<std::uint32_t> nudges_ = 0;       // so many there were
  std::atomic<std::uint32_t> nudges_seen_ = 0;  // the reader's
  count bytes_;
  std::atomic<std::size_t> sleeping_ = 0;  // threads that wait for another that reads
  std::atomic<bool> watches_ = false;      // whether it is the thread of its own that reads
  mutex mutex_;
  condition changed_;
  bool is_reading_ MUSTER_GUARDED_BY(mutex_) = false;
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  std::size_t waiting_ MUSTER_GUARDED_BY(mutex_) = 0;  // threads that wait for a call
  std::thread thread_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
