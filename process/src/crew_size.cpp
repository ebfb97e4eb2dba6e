// SPDX-License-Identifier: BSL-1.0
// Crews that grow and shrink. A worker beyond the size is like any other, but for its order, and that nobody takes its
// place unless there are tasks that only it may run.
#include <algorithm>
#include <utility>

#include "crew_impl.hpp"

namespace muster {

void crew::impl::resize(std::size_t size, std::function<void(const error_info*)> done) {
  boost::asio::post(hub().loop(), [self = shared_from_this(), size, done = std::move(done)]() mutable {
    if (self->left_ || self->order_ != worker_order::work || self->giving_up_) {
      const error_info stopped(errc::cancelled, "the workers are leaving: their number does not change any more");
      return done(self->giving_up_ ? &*self->giving_up_ : &stopped);
    }
    self->guard([&] {
      self->size_waiters_.push_back(std::move(done));
      self->set_size(size);
    });
  });
}

void crew::impl::set_size(std::size_t size) {
  size_ = size;
  {
    const scoped_lock lock(mutex_);
    shown_size_ = size;
  }
  for (const auto& each : workers_) {
    if (each->index < size && each->pid == 0) start_if_absent(*each);
    if (each->index >= size) forget_start(*each);
    if (each->index >= size && has_successor(*each)) dismiss(*successors_[each->index]);
  }
  give_orders();
  watch();  // until they have heard it
  check_size();
}

void crew::impl::call_back(std::size_t worker) {
  boost::asio::post(hub().loop(), handler([this, worker] { start_if_absent(*workers_.at(worker)); }));
}

void crew::impl::start_if_absent(worker& who) {
  if (order_ != worker_order::work || giving_up_ || who.life.now() != worker_lifecycle::state::absent) return;
  {
    const scoped_lock lock(mutex_);
    greeted_[who.index] = false;
  }
  perform(who, who.life.start());
}

// One that has not been greeted has run nothing of the user's.
void crew::impl::forget_start(worker& who) {
  if (who.life.now() != worker_lifecycle::state::starting || client_.needs_worker(who.index)) return;
  who.life.excuse();
  kill(who);
}

// Asked when its process has ended.
bool crew::impl::is_wanted(const worker& who) { return who.index < size_ || client_.needs_worker(who.index); }

bool crew::impl::has_size() const {
  const scoped_lock lock(mutex_);
  return std::all_of(workers_.begin(), workers_.end(), [this](const auto& each) MUSTER_REQUIRES(mutex_) {
    return each->index < size_ ? greeted_[each->index] : each->pid == 0 && !has_successor(*each);
  });
}

void crew::impl::check_size() {
  if (!size_waiters_.empty() && !giving_up_ && has_size()) tell_size(nullptr);
}

void crew::impl::tell_size(const error_info* failure) {
  for (const auto& each : std::exchange(size_waiters_, {})) each(failure);
}

}  // namespace muster
