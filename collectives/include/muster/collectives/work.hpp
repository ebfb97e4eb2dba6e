// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/function_type.hpp>
#include <muster/device/tensor.hpp>

namespace muster {

namespace detail {

class work_home;
struct work_access;

/// What a handle of work stands for.
///
/// Thread safety: safe.
class work_state {
public:
  work_state() = default;
  work_state(const work_state&) = delete;
  work_state& operator=(const work_state&) = delete;
  virtual ~work_state() = default;

  /// Throws errc::forked in a forked child.
  virtual void require_here() const = 0;

  /// Brings it forward if it can be; true when it has ended.
  virtual bool test() = 0;
  /// The same, and ends it where wait() would throw.
  virtual bool test_or_fail() { return test(); }
  /// False when `until` passed first. Throws peer_lost and the like when it cannot end any more.
  virtual bool wait(deadline until) = 0;
  /// Until one of several has ended, or been ended by test_or_fail(); all are of the same group. False when `until`
  /// passed first. Requires: this is a message if any of them is.
  virtual bool wait_for_any(std::span<work_state* const> all, deadline until) = 0;
  virtual bool cancel() = 0;
  virtual void then(std::function<void(std::exception_ptr)> what) = 0;

  /// Requires: it has ended.
  [[nodiscard]] virtual std::exception_ptr failure() const = 0;
  [[nodiscard]] virtual std::uint64_t sequence() const noexcept = 0;
  [[nodiscard]] virtual std::size_t source() const = 0;
  [[nodiscard]] virtual tensor result() const = 0;
  /// Where callbacks of its futures run.
  [[nodiscard]] virtual std::shared_ptr<work_home> home() = 0;

protected:
  using callback = std::function<void(std::exception_ptr)>;
  /// What it throws ends the program.
  static void call(const callback& whom, const std::exception_ptr& with) noexcept { whom(with); }
};

}  // namespace detail

/// An operation of a group that may still be under way. Copies are the same operation.
///
/// Collectives are done by a thread of the group, in the order in which they were begun. Messages are brought forward
/// by whoever waits for, tests or begins one in the same group and rank.
/// The tensors of an operation must not be touched until it has ended; the handle keeps their memory, and need not be
/// kept: the operation goes on without it.
///
/// Thread safety: distinct objects: safe, also copies of one another. Shared objects: safe while nobody assigns.
class work {
public:
  /// Stands for no operation.
  work() noexcept = default;
  /// For the group.
  explicit work(std::shared_ptr<detail::work_state> state) noexcept : state_(std::move(state)) {}

  /// Returns whether this handle stands for an operation. All calls below throw errc::invalid_argument where it does
  /// not.
  [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }

  /// Waits until it has ended. Throws what it ended with: everything that the blocking form of the operation throws.
  /// Unblocked by: the other ranks; the timeout of the call, for collectives; the death of a member; group::abort().
  void wait() const;
  /// Waits for a limited time. Returns false when the time passed first; the operation goes on then. Throws as wait().
  ///@{
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> time) const {
    return wait_until(deadline::after(time));
  }
  [[nodiscard]] bool wait_until(deadline until) const;
  ///@}
  /// Whether it has ended, well or not. Brings messages forward, and ends one that cannot come any more, since the
  /// other rank is dead or has left, or the group is broken.
  [[nodiscard]] bool test() const;
  /// What it ended with; nullptr while it has not ended, and when it ended well.
  [[nodiscard]] std::exception_ptr exception() const;

  /// Of a collective: its number in the group, from 1. Of a message: 0.
  [[nodiscard]] std::uint64_t sequence() const;
  /// Of a receive that has ended well: the rank that sent. Throws errc::invalid_argument for others.
  [[nodiscard]] std::size_t source() const;
  /// What came out of it: the tensor of a gather, all_gather, scatter, all_to_all, or receive. Waits for its end.
  [[nodiscard]] tensor result() const;

  /// Takes back a receive that no message has met yet, or a send of which the receiver has not been told. False when it
  /// is too late, and for collectives, which others take part in. Ends with errc::cancelled.
  bool cancel() const;

  /// Calls `what` once, when it has ended, with what exception() gives: of a collective in the thread of the group, of
  /// a message in whichever thread has brought it forward; at once if it has ended already. What it throws ends the
  /// program. It may begin messages, and a collective where its rank is not in a blocking one, or about to begin
  /// another: that is refused as if by two threads. In the thread of the group it must not wait for the group's
  /// collectives, nor make a blocking one: both throw errc::invalid_argument; it may shrink() the group, and destroy
  /// it, which then leaves when its other collectives have ended. A message that cannot come any more ends only when
  /// somebody asks for it: by test(), exception() or wait_any().
  void then(std::function<void(std::exception_ptr)> what) const;

private:
  friend struct detail::work_access;
  friend std::optional<std::size_t> wait_any(std::span<const work> works, deadline until);
  [[nodiscard]] detail::work_state& state() const;

  std::shared_ptr<detail::work_state> state_;
};

/// Waits until one of several operations of one group has ended, well or not. Returns which; the first, of several.
/// Nothing when `until` passed first. A message that cannot come any more (its other rank is dead or has left, or the
/// group is broken) ends by that, and its wait() throws what became of it; the others go on. Throws
/// errc::invalid_argument for no operations, or empty handles.
[[nodiscard]] std::optional<std::size_t> wait_any(std::span<const work> works, deadline until = {});

}  // namespace muster
