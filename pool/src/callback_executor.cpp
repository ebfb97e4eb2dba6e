// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/callback_executor.hpp>

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <muster/base/assert.hpp>
#include <muster/base/demangle.hpp>
#include <muster/base/error.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

// Whose callback this thread runs; nullptr: nobody's, or a loop's.
thread_local callback_executor* running_here = nullptr;

}  // namespace

callback_executor::~callback_executor() {
  // Its threads hold this object, so they have ended, or this is the last of them.
  for (auto& each : threads_) {
    if (each.joinable()) each.detach();
  }
}

void callback_executor::post(const job& what) {
  if (!try_post(what)) run(what);
}

bool callback_executor::try_post(const job& what) {
  scoped_lock lock(mutex_);
  if (stopped_) return false;
  if (loop_ != nullptr) {
    boost::asio::post(*loop_, [self = shared_from_this(), what] { self->run(what); });
    return true;
  }
  jobs_.push_back(what);
  const auto lack = have_thread();
  changed_.notify_one();
  lock.unlock();
  say_lack(lack);
  return true;
}

bool callback_executor::post_at(clock::time_point when, job what) {
  MUSTER_ASSERT(loop_ == nullptr);
  scoped_lock lock(mutex_);
  if (stopped_) return false;
  later_.emplace(when, std::move(what));
  const auto lack = have_thread();
  changed_.notify_one();  // who waits for a later one
  lock.unlock();
  say_lack(lack);
  return true;
}

void callback_executor::prepare() {
  const scoped_lock lock(mutex_);
  if (!stopped_ && loop_ == nullptr) require_thread();
}

// Why there is none; empty where there is.
std::string callback_executor::have_thread() {
  try {
    require_thread();
    return {};
  } catch (const error& failure) {
    return failure.what();
  }
}

// The program's sink may do anything, also post to where this was called.
void callback_executor::say_lack(const std::string& why) const {
  if (!why.empty()) log_(log_level::error, text("a callback waits for a thread: ", why));
}

void callback_executor::require_thread() {
  if (started_) return;
  add_thread();
  started_ = true;
}

void callback_executor::add_thread() {
  threads_.reserve(threads_.size() + 1);
  threads_.push_back(start_thread([self = shared_from_this()] { self->work(); }));
}

std::thread callback_executor::take_thread() {
  const scoped_lock lock(mutex_);
  return taken_ < threads_.size() ? std::move(threads_[taken_++]) : std::thread();
}

void callback_executor::stop() {
  bool never_started = false;
  decltype(later_) dropped;  // without the lock: what it captured may be the last to hold the pool
  {
    const scoped_lock lock(mutex_);
    stopped_ = true;
    dropped.swap(later_);
    never_started = !std::exchange(started_, true);
    changed_.notify_all();
  }
  if (running_here == this) return;  // they end when the callback returns
  if (never_started) work();         // what has waited for a thread
  // A callback that waits may still add one.
  for (auto ended = take_thread(); ended.joinable(); ended = take_thread()) ended.join();
}

void callback_executor::work() {
  auto* const before = std::exchange(running_here, this);
  scoped_lock lock(mutex_);
  while (!jobs_.empty() || !stopped_) {
    const auto next = take_due();
    if (jobs_.empty() || running_ || ready_ != 0) {
      ++idle_;
      changed_.wait_until(lock, next);
      --idle_;
      continue;
    }
    auto what = std::move(jobs_.front());
    jobs_.pop_front();
    running_ = true;
    lock.unlock();
    run(what);
    what = nullptr;  // what it captured may be the last to hold the pool
    lock.lock();
    running_ = false;
    if (ready_ != 0) turn_.notify_one();
  }
  changed_.notify_all();  // others may have gone to sleep over a job that this one has run since
  running_here = before;
}

// Those whose time has come are jobs like others. When that is so of the next.
deadline callback_executor::take_due() {
  const auto due = later_.empty() ? later_.end() : later_.upper_bound(clock::now());
  for (auto each = later_.begin(); each != due; each = later_.erase(each)) jobs_.push_back(std::move(each->second));
  return later_.empty() ? deadline::never() : deadline(later_.begin()->first);
}

void callback_executor::begin_pause() {
  const scoped_lock lock(mutex_);
  if (idle_ == 0) {
    if (threads_.size() >= most_threads) {
      throw error(errc::overflow,
                  text(most_threads,
                       " callbacks of this pool wait for others already: instead of waiting with get(), "
                       "let a callback return, and have the rest done by a then() of what it would wait for"));
    }
    add_thread();
  }
  running_ = false;
  if (ready_ != 0) {
    turn_.notify_one();
  } else {
    changed_.notify_one();
  }
}

void callback_executor::end_pause() noexcept {
  scoped_lock lock(mutex_);
  ++ready_;
  while (running_) turn_.wait(lock);
  --ready_;
  running_ = true;
}

callback_pause::callback_pause(callback_executor* where) : where_(where) {
  if (where_ != nullptr) where_->begin_pause();
}

callback_pause::callback_pause() : callback_pause(running_here) {}

callback_pause callback_pause::until(deadline when) {
  return callback_pause(running_here != nullptr && !when.expired() ? running_here : nullptr);
}

callback_pause::~callback_pause() {
  if (where_ != nullptr) where_->end_pause();
}

void callback_executor::run(const job& what) noexcept {
  try {
    what();
  } catch (const std::exception& failure) {
    log_(log_level::error, text("a callback threw ", name_of(typeid(failure)), ": ", text_or_none(failure.what())));
  } catch (...) {
    log_(log_level::error, "a callback threw something that is not a std::exception");
  }
}

}  // namespace muster::detail
