// SPDX-License-Identifier: BSL-1.0
#include "stream.hpp"

#include <chrono>
#include <csignal>
#include <thread>

namespace fake_cuda {

namespace {

thread_local bool this_thread_is_a_stream = false;

// Signals are for the program's threads.
std::thread start(std::function<void()> what) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread started(std::move(what));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

std::minstd_rand::result_type seed() {
  static std::atomic<std::minstd_rand::result_type> streams = 0;
  return static_cast<std::minstd_rand::result_type>(number_of("FAKE_CUDA_DELAY", 0)) * 1000 + ++streams;
}

}  // namespace

bool is_on_stream() { return this_thread_is_a_stream; }

std::uint64_t progress::last() const {
  const std::scoped_lock lock(mutex_);
  return submitted_;
}

bool progress::is_done(std::uint64_t number) const {
  const std::scoped_lock lock(mutex_);
  return done_ >= number;
}

void progress::wait(std::uint64_t number) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= number; });
}

stream::stream(std::shared_ptr<context> in, bool waits_for_default)
    : in_(std::move(in)),
      waits_for_default_(waits_for_default),
      random_(seed()),
      has_delays_(number_of("FAKE_CUDA_DELAY", 0) != 0),
      thread_(start([this] { run(); })) {}

stream::~stream() {
  end();
  thread_.join();
}

std::uint64_t stream::submit(std::function<void()> operation, bool always) {
  const std::scoped_lock lock(state_->mutex_);
  waiting_.push_back({std::move(operation), always});
  state_->changed_.notify_all();
  return ++state_->submitted_;
}

void stream::end() {
  const std::scoped_lock lock(state_->mutex_);
  ends_ = true;
  state_->changed_.notify_all();
}

bool stream::take(task& next) {
  std::unique_lock lock(state_->mutex_);
  state_->changed_.wait(lock, [this] { return !waiting_.empty() || ends_; });
  if (waiting_.empty()) return false;
  next = std::move(waiting_.front());
  waiting_.pop_front();
  return true;
}

void stream::count_one() {
  const std::scoped_lock lock(state_->mutex_);
  ++state_->done_;
  state_->changed_.notify_all();
}

// Mostly none, sometimes long: a device is late where it was never late before.
void stream::delay() {
  if (!has_delays_) return;
  const auto dice = random_() % 16;
  if (dice < 8) return;
  std::this_thread::sleep_for(std::chrono::microseconds(dice == 15 ? 3000 : random_() % 300));
}

void stream::run() {
  this_thread_is_a_stream = true;
  for (task next; take(next);) {
    if (!in_->is_over()) {
      delay();
      next.what();
    } else if (next.always) {
      next.what();
    }
    next.what = nullptr;  // what it holds goes before anybody hears that it is done
    count_one();
  }
  has_ended_ = true;
}

}  // namespace fake_cuda
