// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/callback_executor.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <muster/base/demangle.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

callback_executor::~callback_executor() {
  // The thread holds this object, so it has ended or this is it.
  if (thread_.joinable()) thread_.detach();
}

void callback_executor::post(const job& what) {
  if (!try_post(what)) run(what);
}

bool callback_executor::try_post(const job& what) {
  const scoped_lock lock(mutex_);
  if (stopped_) return false;
  if (loop_ != nullptr) {
    boost::asio::post(*loop_, [self = shared_from_this(), what] { self->run(what); });
    return true;
  }
  jobs_.push_back(what);
  try {
    require_thread();
  } catch (const error& failure) {
    log_(log_level::error, text("a callback waits for a thread: ", failure.what()));
  }
  changed_.notify_one();
  return true;
}

void callback_executor::prepare() {
  const scoped_lock lock(mutex_);
  if (!stopped_ && loop_ == nullptr) require_thread();
}

void callback_executor::require_thread() {
  if (started_) return;
  thread_ = start_thread([self = shared_from_this()] { self->work(); });
  started_ = true;
}

void callback_executor::stop() {
  std::thread ended;
  bool never_started = false;
  {
    const scoped_lock lock(mutex_);
    stopped_ = true;
    never_started = !std::exchange(started_, true);
    changed_.notify_one();
    if (thread_.get_id() == std::this_thread::get_id()) return;  // it ends when the callback returns
    ended.swap(thread_);
  }
  if (ended.joinable()) ended.join();
  if (never_started) work();  // what has waited for a thread
}

void callback_executor::work() {
  scoped_lock lock(mutex_);
  while (!jobs_.empty() || !stopped_) {
    if (jobs_.empty()) {
      changed_.wait(lock);
      continue;
    }
    auto what = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    run(what);
    what = nullptr;  // what it captured may be the last to hold the pool
    lock.lock();
  }
}

void callback_executor::run(const job& what) noexcept {
  try {
    what();
  } catch (const std::exception& failure) {
    log_(log_level::error, text("a callback threw ", name_of(typeid(failure)), ": ", failure.what()));
  } catch (...) {
    log_(log_level::error, "a callback threw something that is not a std::exception");
  }
}

}  // namespace muster::detail
