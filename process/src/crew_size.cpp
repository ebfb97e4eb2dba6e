// SPDX-License-Identifier: BSL-1.0
// Crews that grow and shrink. A worker beyond the size is like any other, but for its order, and that nobody takes its
// place unless there are tasks that only it may run.
#include <algorithm>
#include <utility>

#include <muster/base/room.hpp>

#include "crew_impl.hpp"

namespace muster {

/// Another number of workers, and the function that learns of it. Deletes itself.
///
/// Thread safety: as loop_call.
class crew::impl::size_call final : public detail::loop_call {
public:
  size_call(std::shared_ptr<impl> crew, std::size_t size, size_listener done)
      : crew_(std::move(crew)), size_(size), done_(std::move(done)) {}

  void run() noexcept override {
    const std::unique_ptr<size_call> self(this);
    crew_->begin_size(size_, std::move(done_));
  }

private:
  const std::shared_ptr<impl> crew_;
  const std::size_t size_;
  size_listener done_;
};

void crew::impl::resize(std::size_t size, size_listener done) {
  hub().ask_for(*std::make_unique<size_call>(shared_from_this(), size, std::move(done)).release());
}

void crew::impl::begin_size(std::size_t size, size_listener done) noexcept {
  if (left_ || order_ != worker_order::work || giving_up_) {
    const auto stopped = error_info::described(
        errc::cancelled, [] { return std::string("the workers are leaving: their number does not change any more"); });
    return done(giving_up_ ? &*giving_up_ : &stopped);
  }
  guard([&] {
    muster::make_room(size_waiters_);
    size_waiters_.push_back(std::move(done));
    set_size(size);
  });
  if (!done) return;  // it waits, or has been told
  const error_info no_memory(errc::out_of_memory, {});
  done(&no_memory);
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

void crew::impl::call_back(std::size_t worker) noexcept {
  returning_[worker].store(true, std::memory_order_relaxed);
  hub().ask_for(return_call_);
}

void crew::impl::start_returning() noexcept {
  for (std::size_t worker = 0; worker < returning_.size(); ++worker) {
    if (!returning_[worker].exchange(false, std::memory_order_relaxed)) continue;
    guard([this, worker] { start_if_absent(*workers_[worker]); });
  }
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
