// SPDX-License-Identifier: BSL-1.0
#include <muster/async/detail/waiting_call.hpp>

#include <utility>

#include <muster/async/detail/callback_executor.hpp>
#include <muster/async/detail/waiting_calls.hpp>

namespace muster::detail {

std::function<void(cancellation)> waiting_call::canceller() {
  return [weak = weak_from_this()](cancellation how) {
    if (const auto self = weak.lock()) self->cancel(how);
  };
}

std::function<void(deadline)> waiting_call::waiter() {
  return [weak = weak_from_this()](deadline until) {
    if (const auto self = weak.lock()) self->wait(until);
  };
}

void waiting_call::expect(const future_handle& argument) {
  arguments_.push_back({.cancel = argument.canceller(), .wait = argument.waiter()});
}

void waiting_call::enter() {
  registered_ = home_->waiting().add([weak = weak_from_this()](const error_info& why) {
    if (const auto self = weak.lock()) self->end_for(why);
  });
  if (!registered_) end_for(home_->waiting().reason());
  arrived();
}

// Once: the last argument or the end of the pool, whichever comes first.
void waiting_call::arrived() {
  if (missing_.fetch_sub(1, std::memory_order_acq_rel) > 1 || !try_begin()) return;
  if (registered_) home_->waiting().remove(*registered_);
  submit();
}

// The arguments are for this call alone.
void waiting_call::end_for(const error_info& why) {
  if (!try_begin()) return;
  give_up(why);
  for (const auto& each : arguments_) each.cancel(cancellation::ask);
}

void waiting_call::note_end() {
  const scoped_lock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

// From now on a cancellation goes to the task.
void waiting_call::became(const future_handle& task) {
  used_future used{.cancel = task.canceller(), .wait = task.waiter()};
  std::optional<cancellation> asked;
  {
    const scoped_lock lock(mutex_);
    task_ = std::move(used);
    changed_.notify_all();
    asked = asked_;
  }
  if (asked) task.cancel(*asked);
}

// The arguments are for this call alone.
void waiting_call::cancel(cancellation how) {
  std::function<void(cancellation)> task;
  {
    const scoped_lock lock(mutex_);
    asked_ = how;
    if (task_) task = task_->cancel;
  }
  if (task) return task(how);
  for (const auto& each : arguments_) each.cancel(how);
}

// By a thread that may have to run the arguments, and then the task, itself.
void waiting_call::wait(deadline until) {
  for (const auto& each : arguments_) {
    if (each.wait) each.wait(until);
  }
  if (const auto task = await_task(until)) task(until);
}

// Nothing when it ends without one, or `until` passes first. What submits it may be behind the calling thread.
std::function<void(deadline)> waiting_call::await_task(deadline until) {
  const auto pause = callback_pause::until(is_decided() ? deadline(clock::time_point()) : until);
  scoped_lock lock(mutex_);
  while (!task_ && !ended_ && !until.expired()) changed_.wait_until(lock, until);
  return task_ ? task_->wait : nullptr;
}

bool waiting_call::is_decided() {
  const scoped_lock lock(mutex_);
  return task_ || ended_;
}

}  // namespace muster::detail
