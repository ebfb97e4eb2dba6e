// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <boost/container/small_vector.hpp>

#include <muster/async/detail/end_notice.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/memory/detail/wait/rank_identity.hpp>
#include <muster/queue/detail/taken_message.hpp>
#include <muster/rpc/detail/call_retry.hpp>
#include <muster/rpc/detail/call_subject.hpp>
#include <muster/rpc/detail/group_table.hpp>
#include <muster/rpc/detail/rpc_heads.hpp>

namespace muster::detail {

/// Which member a call goes to, as it was when the call began.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct call_peer {
  std::size_t member = 0;
  std::uint32_t incarnation = 0;
  rank_identity who;
};

/// What a call is begun with.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct call_terms {
  call_peer peer;
  deadline until;
  call_subject subject{};
  std::shared_ptr<void> kept{};         ///< what must be there until it has ended: the reference that it is called by
  std::shared_ptr<call_retry> retry{};  ///< null: it is made once
};

/// A call of this member's that is under way, or has ended and was not taken yet.
///
/// Thread safety: is_done(): safe. What it ended with: safe once that is true, for one thread. Else: the ledger's.
class pending_call {
public:
  pending_call(const call_terms& terms, std::size_t slot, std::uint32_t generation)
      : terms_(terms), slot_(slot), generation_(generation) {}
  pending_call(const pending_call&) = delete;
  pending_call& operator=(const pending_call&) = delete;

  [[nodiscard]] bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }
  /// Of its last attempt. Requires, where it has a retry: the ledger's lock, or is_done().
  [[nodiscard]] const call_peer& peer() const noexcept { return terms_.peer; }
  [[nodiscard]] const call_subject& subject() const noexcept { return terms_.subject; }
  [[nodiscard]] std::size_t slot() const noexcept { return slot_; }
  /// Of its last attempt.
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
  /// When its caller stops waiting for it.
  [[nodiscard]] deadline until() const noexcept { return terms_.until; }

  /// Why there is no reply; null where there is one. Requires: is_done(); the same of reply().
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }
  [[nodiscard]] taken_message& reply() noexcept { return reply_; }
  [[nodiscard]] reply_kind kind() const noexcept { return kind_; }
  /// Whether an attempt of it has begun that was not the last one, or that has failed.
  [[nodiscard]] bool had_begun() const noexcept { return had_begun_; }

private:
  friend class call_ledger;

  call_terms terms_;
  const std::size_t slot_;
  std::atomic<std::uint32_t> generation_;
  bool rests_ = false;      // between two attempts
  bool had_begun_ = false;  // an attempt of before
  taken_message reply_;
  reply_kind kind_ = reply_kind::value;
  std::exception_ptr failure_;
  std::unique_ptr<end_notice> notice_;
  std::atomic<bool> done_ = false;
};

using call_ptr = std::shared_ptr<pending_call>;

/// Makes calls again that have failed.
///
/// Thread safety: safe.
class call_repeater {
public:
  virtual ~call_repeater() = default;
  /// The call rests until begin_again().
  virtual void repeat(call_ptr call, std::shared_ptr<call_retry> how) noexcept = 0;
};

/// Of a member's calls so far.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct call_tally {
  std::uint64_t made = 0;
  std::uint64_t lost = 0;      ///< ended because their member was
  std::uint64_t given_up = 0;  ///< ended by their caller, or unsent
  std::size_t under_way = 0;
};

/// The calls of a member that are under way. It decides how each ends, once: by a reply, or why there is none.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: the words are in shared memory (call_word.hpp), the rest is this process's own.
class call_ledger {
public:
  using reason_of_call = std::function<std::exception_ptr(const pending_call&, bool had_begun)>;

  /// Lifetime: borrows the lines, which no other ledger uses from now on, and the repeater.
  call_ledger(group_table::call_lines of_member, call_repeater& again);
  call_ledger(const call_ledger&) = delete;
  call_ledger& operator=(const call_ledger&) = delete;

  /// Begins a call; nullptr when as many are under way as there can be, and after close().
  [[nodiscard]] call_ptr open(const call_terms& terms) MUSTER_EXCLUDES(mutex_);
  /// Ends all, each with what `why` gives, and begins no further ones.
  void close(const reason_of_call& why) MUSTER_EXCLUDES(mutex_);
  /// When the first call is to be over.
  [[nodiscard]] deadline first_due() const MUSTER_EXCLUDES(mutex_);
  /// The reply of a call; of one that is over already, it is dropped.
  void settle(const reply_head& head, taken_message reply) MUSTER_EXCLUDES(mutex_);
  /// The call ends with what `why` gives for whether it may have begun. Nothing when it has ended already.
  using reason = std::function<std::exception_ptr(bool had_begun)>;
  void fail(pending_call& which, const reason& why) MUSTER_EXCLUDES(mutex_);
  /// The same of the attempt `generation`, whose member is lost, if it has not begun; or it is made again.
  void lose(pending_call& which, std::uint32_t generation, const reason& why) MUSTER_EXCLUDES(mutex_);
  /// The same of all for which `is_lost`, each with what `why` gives; where it has begun, only if it `cannot_end`.
  void lose_all(const std::function<bool(const pending_call&)>& is_lost, bool cannot_end, const reason_of_call& why)
      MUSTER_EXCLUDES(mutex_);
  /// All for which `is_over` end with what `why` gives.
  void fail_all(const std::function<bool(const pending_call&)>& is_over, const reason_of_call& why)
      MUSTER_EXCLUDES(mutex_);
  /// The next attempt of a call that rests goes to that member: the generation. None where the call has ended.
  [[nodiscard]] std::optional<std::uint32_t> begin_again(pending_call& which, const call_peer& to)
      MUSTER_EXCLUDES(mutex_);
  /// True when it had not begun, and never will: it ends with `why`. Else it is asked to stop, and ends with `why` if
  /// `gives_up`.
  bool cancel(pending_call& which, bool gives_up, const reason& why) MUSTER_EXCLUDES(mutex_);
  /// Tells `notice` when it ends, at once when it has. One of before is dropped.
  void notify(pending_call& which, std::unique_ptr<end_notice> notice) MUSTER_EXCLUDES(mutex_);
  /// When the first call that has a notice is to be over.
  [[nodiscard]] deadline next_due() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool has_notices() const noexcept { return notices_.load(std::memory_order_acquire) != 0; }
  [[nodiscard]] std::size_t size() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] call_tally tally() const MUSTER_EXCLUDES(mutex_);

private:
  // What is done without the lock, when calls have ended: tell of it, and let go of what they kept.
  struct aftermath {
    template <class T>
    using few = boost::container::small_vector<T, 1>;  // mostly it is one call

    few<std::unique_ptr<end_notice>> told;
    few<call_ptr> ended;
    few<std::shared_ptr<void>> kept;
    few<std::pair<call_ptr, std::shared_ptr<call_retry>>> again;
  };
  struct loss {
    bool is_lost = false;     ///< its member, so that it may be made again
    bool cannot_end = false;  ///< though it has begun
  };

  void finish(pending_call& which, aftermath& after) MUSTER_REQUIRES(mutex_);
  /// Further attempts.
  static void make_no_more(pending_call& which, aftermath& after);
  bool end_with(pending_call& which, const loss& how, const reason& why, aftermath& after) MUSTER_REQUIRES(mutex_);
  bool end_now(pending_call& which, const reason& why, aftermath& after) MUSTER_REQUIRES(mutex_);
  void end_all(const std::function<bool(const pending_call&)>& which, const loss& how, const reason_of_call& why)
      MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool try_to_rest(pending_call& which, const loss& how, bool had_begun, aftermath& after)
      MUSTER_REQUIRES(mutex_);
  void rest(pending_call& which, aftermath& after) MUSTER_REQUIRES(mutex_);
  void settle(aftermath& after) noexcept;

  const group_table::call_lines lines_;
  call_repeater& again_;
  mutable mutex mutex_;
  std::vector<call_ptr> calls_ MUSTER_GUARDED_BY(mutex_);            // by slot
  std::vector<std::uint32_t> free_slots_ MUSTER_GUARDED_BY(mutex_);  // with room for all
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
  call_tally tally_ MUSTER_GUARDED_BY(mutex_);  // without under_way
  std::atomic<std::size_t> notices_ = 0;
};

}  // namespace muster::detail
