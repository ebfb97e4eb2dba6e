// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/serving_crew.hpp>

#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/room.hpp>
#include <muster/base/signals_blocked.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

// The crew whose request this thread serves.
constinit thread_local serving_crew* serving_here = nullptr;

}  // namespace

serving_crew::~serving_crew() { stop(); }

bool serving_crew::serves_here() const noexcept { return serving_here == this; }

void serving_crew::start(const std::shared_ptr<void>& owner) {
  owner_ = owner;
  const scoped_lock lock(mutex_);
  if (limit_ != 0) add_thread();
}

void serving_crew::add_thread() {
  make_room(threads_);
  const signals_blocked quiet;  // they are for the program's threads
  threads_.push_back(start_thread([this, kept = owner_.lock()] { serve(); }));
  ++started_;
  ++idle_;  // from now on: it may take long until it runs, and another one must not be started meanwhile
}

void serving_crew::serve() {
  scoped_lock lock(mutex_);
  while (!stopped_) {
    if (may_receive()) {
      --idle_;
      serve_next(lock);
      ++idle_;
    } else {
      turn_.wait(lock);
    }
  }
}

// For run(), which looks without the lock whether it is over.
void serving_crew::tell() noexcept {
  ++news_;
  turn_.notify_all();
}

// A source that cannot go on ends the crew: this member cannot be asked any more.
std::function<void()> serving_crew::receive() noexcept {
  try {
    return requests_.next();
  } catch (...) {
    const scoped_lock lock(mutex_);
    stopped_ = true;
    return nullptr;
  }
}

// The thread that has a request lets another one wait for the next, but not before its own runs: requests are begun in
// the order in which they came.
void serving_crew::serve_next(scoped_lock& lock) {
  is_receiving_ = true;
  lock.unlock();
  auto request = receive();
  lock.lock();
  is_receiving_ = false;
  if (request == nullptr) return tell();
  is_holding_ = true;
  while (running_ >= limit_ && !stopped_) turn_.wait(lock);
  is_holding_ = false;
  ++running_;
  ++inside_;
  if (idle_ == 0 && running_ < limit_ && started_ < limit_ + most_spare) {
    try {
      add_thread();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): those that are there do
    }
  }
  tell();
  lock.unlock();
  auto* const before = std::exchange(serving_here, this);
  request();
  request = nullptr;
  serving_here = before;
  lock.lock();
  --running_;
  --inside_;
  tell();
}

void serving_crew::run(const std::function<bool()>& is_over) {
  scoped_lock lock(mutex_);
  ++limit_;
  tell();
  while (!stopped_) {
    const auto seen = news_;
    lock.unlock();
    const bool ends = is_over();
    lock.lock();
    if (ends || stopped_) break;
    if (may_receive()) {
      serve_next(lock);
    } else if (news_ == seen) {
      turn_.wait(lock);
    }
  }
  --limit_;
  tell();
}

void serving_crew::wake_runners() {
  requests_.interrupt();
  const scoped_lock lock(mutex_);
  tell();
}

// Those that wait inside of a request may wait for one that is still to come: until they have ended, requests go on
// coming, and the source says to each that this member does not serve any more.
void serving_crew::stop() noexcept {
  {
    scoped_lock lock(mutex_);
    const std::size_t own = serves_here() ? 1 : 0;
    while (inside_ > own && !stopped_) turn_.wait(lock);
    stopped_ = true;
    tell();
  }
  requests_.interrupt();
  for (;;) {
    std::thread next;
    {
      const scoped_lock lock(mutex_);
      if (threads_.empty()) return;
      next = std::move(threads_.back());
      threads_.pop_back();
    }
    if (next.get_id() == std::this_thread::get_id()) {
      next.detach();  // it ends by itself, behind this
    } else {
      next.join();
    }
  }
}

void serving_crew::begin_pause() {
  const scoped_lock lock(mutex_);
  if (idle_ == 0 && !is_receiving_ && !stopped_) {
    if (started_ >= limit_ + most_spare) {
      throw error(errc::overflow,
                  text(most_spare,
                       " requests of this member wait for others already, each on a thread of its own: let "
                       "services return, and go on in a callback of the call (then, on_complete), or call "
                       "less deeply"));
    }
    add_thread();
  }
  --running_;
  tell();
}

void serving_crew::end_pause() noexcept {
  scoped_lock lock(mutex_);
  ++returning_;
  while (running_ >= limit_ && !stopped_) turn_.wait(lock);
  --returning_;
  ++running_;
  tell();
}

serving_crew::pause::pause() : crew_(serving_here) {
  if (crew_ != nullptr) crew_->begin_pause();
}

serving_crew::pause::~pause() {
  if (crew_ != nullptr) crew_->end_pause();
}

}  // namespace muster::detail
