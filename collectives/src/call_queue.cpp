// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/detail/call_queue.hpp>

#include <algorithm>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/signals_blocked.hpp>
#include <muster/base/start_thread.hpp>

namespace muster::detail {

queued_call::queued_call(std::shared_ptr<rank_end> end, std::uint64_t sequence, std::function<tensor()> run)
    : end_(std::move(end)), sequence_(sequence), run_(std::move(run)), made_in_(float_state::of_thread()) {}

// The call itself looks at the other ranks, and ends whatever becomes of them.
bool queued_call::wait(deadline until) {
  return end_->wait_here(until, [this] { return test(); });
}

bool queued_call::wait_for_any(std::span<work_state* const> all, deadline until) {
  return end_->wait_here(until,
                         [&] { return std::any_of(all.begin(), all.end(), [](auto* each) { return each->test(); }); });
}

void queued_call::then(std::function<void(std::exception_ptr)> what) {
  {
    const std::scoped_lock lock(guard_);
    if (!test()) {
      callbacks_.push_back(std::move(what));
      return;
    }
  }
  call(what, failure_);
}

std::size_t queued_call::source() const {
  throw error(errc::invalid_argument, "a collective has no source: ask a receive");
}

// What the caller has given runs as it would in the caller's thread.
void queued_call::run() {
  in_float_state(made_in_, [this] { run_as_caller(); });
}

void queued_call::run_as_caller() {
  try {
    result_ = run_();
  } catch (...) {
    failure_ = std::current_exception();
  }
  run_ = nullptr;  // lets go of its tensors
  std::vector<std::function<void(std::exception_ptr)>> callbacks;
  {
    const std::scoped_lock lock(guard_);
    ended_.store(true, std::memory_order_seq_cst);
    callbacks.swap(callbacks_);
  }
  end_->notify_own();
  for (const auto& each : callbacks) call(each, failure_);
}

void call_queue::finish() {
  {
    const std::scoped_lock lock(guard_);
    stops_ = true;
  }
  added_.notify_all();
  if (thread_.joinable()) thread_.join();
  const std::scoped_lock lock(guard_);
  stops_ = false;  // what is added now has a thread of its own again
}

void call_queue::add(std::shared_ptr<queued_call> call) {
  if (!thread_.joinable()) {
    end_->be_imprecise();
    const signals_blocked quiet;  // they are for the program's threads
    thread_ = start_thread([this] { serve(); });
  }
  pending_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::scoped_lock lock(guard_);
    calls_.push_back(std::move(call));
  }
  added_.notify_one();
}

void call_queue::serve() {
  for (;;) {
    std::shared_ptr<queued_call> next;
    {
      std::unique_lock lock(guard_);
      added_.wait(lock, [this] { return stops_ || !calls_.empty(); });
      if (calls_.empty()) return;
      next = std::move(calls_.front());
      calls_.pop_front();
    }
    next->run();
    next.reset();
    pending_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace muster::detail
