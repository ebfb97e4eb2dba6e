// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <muster/base/detail/float_state.hpp>
#include <muster/collectives/detail/rank_end.hpp>
#include <muster/collectives/work.hpp>

namespace muster::detail {

/// A collective that a group's thread does, or will do.
///
/// Thread safety: safe.
class queued_call final : public work_state {
public:
  queued_call(std::shared_ptr<rank_end> end, std::uint64_t sequence, std::function<tensor()> run);

  void require_here() const override { end_->require_here(); }
  // Also the last look before a sleep (wait_protocol.hpp).
  bool test() override { return ended_.load(std::memory_order_seq_cst); }
  bool wait(deadline until) override;
  bool wait_for_any(std::span<work_state* const> all, deadline until) override;
  bool cancel() override { return false; }
  void then(std::function<void(std::exception_ptr)> what) override;
  [[nodiscard]] std::exception_ptr failure() const override { return failure_; }
  [[nodiscard]] std::uint64_t sequence() const noexcept override { return sequence_; }
  [[nodiscard]] std::size_t source() const override;
  [[nodiscard]] tensor result() const override { return result_; }
  [[nodiscard]] std::shared_ptr<work_home> home() override { return end_->futures().get(); }

  /// In the group's thread, once: makes the call.
  void make();
  /// The same, after that: tells those who wait, and calls what is to be called.
  void tell();

private:
  void make_as_caller();

  const std::shared_ptr<rank_end> end_;
  const std::uint64_t sequence_;
  std::function<tensor()> run_;
  const float_state made_in_;
  tensor result_;
  std::exception_ptr failure_;
  std::mutex guard_;  // of callbacks_, and of ended_ becoming true
  std::vector<std::function<void(std::exception_ptr)>> callbacks_;
  std::atomic<bool> ended_ = false;
};

/// The thread that does a group's asynchronous collectives, in their order. It is started with the first.
///
/// Thread safety: one thread adds.
class call_queue {
public:
  explicit call_queue(std::shared_ptr<rank_end> end) : end_(std::move(end)) {}
  call_queue(const call_queue&) = delete;
  call_queue& operator=(const call_queue&) = delete;
  ~call_queue();

  /// Waits until all that was added has ended, and the thread has. In a callback of that thread it does what is left
  /// there. Throws errc::invalid_argument in a callback of a message, inside of a call.
  void finish();
  /// Lets go of `last` when all that was added has ended. Requires: is_own_thread().
  void keep_to_the_end(std::shared_ptr<void> last) noexcept;

  /// Throws muster::error where its thread cannot be had; then nothing was added.
  void add(std::shared_ptr<queued_call> call);
  /// Whether nothing is under way: then a call can be made in the caller's own thread.
  [[nodiscard]] bool is_idle() const noexcept { return pending_.load(std::memory_order_acquire) == 0; }
  /// Whether this thread is the queue's: in a callback, or in the destructor of something that a call has let go.
  [[nodiscard]] bool is_own_thread() const noexcept;
  /// Throws errc::invalid_argument in the queue's own thread, which makes no call while it waits for one.
  void require_other_thread() const;

private:
  void serve();
  [[nodiscard]] std::shared_ptr<queued_call> next();
  [[nodiscard]] std::shared_ptr<queued_call> take();
  void run(std::shared_ptr<queued_call> what);
  void join() noexcept;

  const std::shared_ptr<rank_end> end_;
  std::mutex guard_;
  std::condition_variable added_;
  std::deque<std::shared_ptr<queued_call>> calls_;
  std::atomic<std::size_t> pending_ = 0;
  bool stops_ = false;
  bool is_at_call_ = false;     // the thread's own
  std::shared_ptr<void> last_;  // the thread's own
  std::thread thread_;
};

}  // namespace muster::detail
