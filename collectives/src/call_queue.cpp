// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/detail/call_queue.hpp>

#include <algorithm>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/start_thread.hpp>

namespace muster::detail {

namespace {

// Of which rank this is the group's thread, if it is one.
constinit thread_local const rank_end* serves_here = nullptr;

void require_other_thread(const rank_end& than_of) {
  if (serves_here != &than_of) return;
  throw error(errc::invalid_argument,
              "a callback of a group's collective waited for a collective of that group: the group's thread makes them "
              "one after the other, and is in this callback. Begin it there, and go on in a callback of its own "
              "(work::then), or wait for it in another thread");
}

}  // namespace

queued_call::queued_call(std::shared_ptr<rank_end> end, std::uint64_t sequence, std::function<tensor()> run)
    : end_(std::move(end)), sequence_(sequence), run_(std::move(run)), made_in_(float_state::of_thread()) {}

// The call itself looks at the other ranks, and ends whatever becomes of them.
bool queued_call::wait(deadline until) {
  if (!test()) require_other_thread(*end_);
  return end_->wait_here(until, [this] { return test(); });
}

bool queued_call::wait_for_any(std::span<work_state* const> all, deadline until) {
  if (!test()) require_other_thread(*end_);
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
void queued_call::make() {
  in_float_state(made_in_, [this] { make_as_caller(); });
}

void queued_call::make_as_caller() {
  try {
    result_ = run_();
  } catch (...) {
    failure_ = std::current_exception();
  }
  run_ = nullptr;  // lets go of its tensors
}

void queued_call::tell() {
  std::vector<std::function<void(std::exception_ptr)>> callbacks;
  {
    const std::scoped_lock lock(guard_);
    ended_.store(true, std::memory_order_seq_cst);
    callbacks.swap(callbacks_);
  }
  end_->notify_own();
  in_float_state(made_in_, [&] {
    for (const auto& each : callbacks) call(each, failure_);
  });
}

call_queue::~call_queue() {
  if (is_own_thread()) {
    thread_.detach();  // it ends by itself, behind this
  } else {
    join();
  }
}

void call_queue::finish() {
  if (!is_own_thread()) return join();
  if (is_at_call_) {
    throw error(errc::invalid_argument,
                "a callback of a message was to end all calls of its group inside of one of them: do so when that has "
                "ended, or in another thread");
  }
  while (auto left = take()) run(std::move(left));
}

void call_queue::join() noexcept {
  {
    const std::scoped_lock lock(guard_);
    stops_ = true;
  }
  added_.notify_all();
  if (thread_.joinable()) thread_.join();
  const std::scoped_lock lock(guard_);
  stops_ = false;  // what is added now has a thread of its own again
}

bool call_queue::is_own_thread() const noexcept { return serves_here == end_.get(); }

void call_queue::require_other_thread() const { detail::require_other_thread(*end_); }

void call_queue::keep_to_the_end(std::shared_ptr<void> last) noexcept {
  last_ = std::move(last);
  const std::scoped_lock lock(guard_);
  stops_ = true;
}

void call_queue::add(std::shared_ptr<queued_call> call) {
  if (!thread_.joinable()) {
    end_->be_imprecise();
    thread_ = start_thread([this] { serve(); });
  }
  pending_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::scoped_lock lock(guard_);
    calls_.push_back(std::move(call));
  }
  added_.notify_one();
}

// What it keeps to the end has the queue, which is not touched any more after that.
void call_queue::serve() {
  serves_here = end_.get();
  while (auto call = next()) run(std::move(call));
  const auto last = std::move(last_);
}

void call_queue::run(std::shared_ptr<queued_call> what) {
  is_at_call_ = true;
  what->make();
  is_at_call_ = false;
  what->tell();
  what.reset();
  pending_.fetch_sub(1, std::memory_order_release);
}

std::shared_ptr<queued_call> call_queue::next() {
  {
    std::unique_lock lock(guard_);
    added_.wait(lock, [this] { return stops_ || !calls_.empty(); });
  }
  return take();
}

std::shared_ptr<queued_call> call_queue::take() {
  const std::scoped_lock lock(guard_);
  if (calls_.empty()) return nullptr;
  auto first = std::move(calls_.front());
  calls_.pop_front();
  return first;
}

}  // namespace muster::detail
