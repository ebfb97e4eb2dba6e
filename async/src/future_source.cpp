// SPDX-License-Identifier: BSL-1.0
#include <muster/async/detail/future_source.hpp>

#include <utility>

#include <muster/async/detail/callback_executor.hpp>
#include <muster/async/detail/task_thread.hpp>

namespace muster::detail {

namespace {

untyped_source& object_of(const held_source& which) noexcept { return *static_cast<untyped_source*>(which.what.get()); }

task_thread* only_thread_of(const held_source& which) noexcept {
  return which.home != nullptr ? which.home->only_thread() : nullptr;
}

constinit thread_local bool helps_here = false;

bool wait_for_object(const held_source& which, deadline until) {
  auto& source = object_of(which);
  auto* const here = only_thread_of(which);
  return here != nullptr ? here->wait_for(source, until) : source.wait(until);
}

bool object_is_done(const held_source& which) { return object_of(which).is_done(); }

bool cancel_object(const held_source& which, cancellation how) { return object_of(which).cancel(how); }

void notify_of_object(const held_source& which, std::unique_ptr<end_notice> notice) {
  object_of(which).when_done(std::move(notice));
}

void drop_object(const held_source& /*which*/) noexcept {}

bool object_runs_here(const held_source& which) noexcept { return object_of(which).runs_here(); }

std::function<void(cancellation)> canceller_of_object(const held_source& which) {
  return [which](cancellation how) { object_of(which).cancel(how); };
}

std::function<void(deadline)> waiter_of_object(const held_source& which) {
  return [which](deadline until) { static_cast<void>(wait_for_object(which, until)); };
}

}  // namespace

const source_functions object_functions{.wait = &wait_for_object,
                                        .is_done = &object_is_done,
                                        .cancel = &cancel_object,
                                        .notify = &notify_of_object,
                                        .drop = &drop_object,
                                        .runs_here = &object_runs_here,
                                        .canceller = &canceller_of_object,
                                        .waiter = &waiter_of_object,
                                        .read = nullptr};

bool helps_while_waiting() noexcept { return helps_here; }

void set_helps_while_waiting(bool on) noexcept { helps_here = on; }

void made_end::finish() noexcept {
  std::unique_ptr<end_notice> notice;
  {
    const scoped_lock lock(mutex_);
    done_ = true;
    notice = std::move(notice_);
    changed_.notify_all();
  }
  end_notice::tell(std::move(notice));
}

bool made_end::wait(deadline until) {
  if (is_done()) return true;
  if (wait_ && helps_while_waiting()) wait_(until);
  const auto what_makes_it_may_be_behind_us = callback_pause::until(until);
  scoped_lock lock(mutex_);
  while (!done_ && changed_.wait_until(lock, until)) continue;
  return done_;
}

bool made_end::is_done() const {
  const scoped_lock lock(mutex_);
  return done_;
}

void made_end::when_done(std::unique_ptr<end_notice> notice) {
  {
    const scoped_lock lock(mutex_);
    if (!done_) {
      notice_.swap(notice);  // the one of before is dropped without the lock: its observer is told
      return;
    }
  }
  end_notice::tell(std::move(notice));
}

bool made_end::cancel(cancellation how) {
  if (cancel_ && !is_done()) cancel_(how);
  return false;
}

}  // namespace muster::detail
