// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/thread.hpp>

#include <exception>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/error.hpp>

namespace muster {

/// What a thread's handle and the thread itself share.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class detail::thread_state {
public:
  void start(const std::shared_ptr<thread_state>& self, thread_main run) {
    const scoped_lock lock(joining_);
    thread_ = std::thread([self, run = std::move(run)]() mutable { self->work(std::move(run)); });
  }

  bool join_until(deadline until) {
    if (!wait_until_over(until)) return false;
    const scoped_lock lock(joining_);  // it has nothing left to do but to end
    if (thread_.joinable()) thread_.join();
    return true;
  }

  [[nodiscard]] bool is_over() const MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    return over_;
  }
  void watch() const MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    if (thrown_) std::rethrow_exception(thrown_);
  }
  bool request_stop() { return stop_.request_stop(); }

  void end() noexcept {
    if (!made_in_.is_here()) return detach();  // the thread is the parent's
    request_stop();
    if (id_of_thread() == std::this_thread::get_id()) return detach();  // it cannot wait for itself
    static_cast<void>(join_until(deadline::never()));
  }

private:
  void detach() noexcept MUSTER_EXCLUDES(joining_) {
    const scoped_lock lock(joining_);
    if (thread_.joinable()) thread_.detach();
  }
  void work(thread_main run) noexcept MUSTER_EXCLUDES(mutex_) {
    std::exception_ptr thrown;
    try {
      run(stop_.get_token());
    } catch (...) {
      thrown = std::current_exception();
    }
    run = nullptr;  // what was given to the function goes before it counts as ended
    const scoped_lock lock(mutex_);
    thrown_ = std::move(thrown);
    over_ = true;
    changed_.notify_all();
  }

  bool wait_until_over(deadline until) MUSTER_EXCLUDES(mutex_) {
    scoped_lock lock(mutex_);
    if (!over_ && id_of_thread() == std::this_thread::get_id()) {
      throw error(errc::invalid_argument, "a thread waits for its own end");
    }
    while (!over_) {
      if (!changed_.wait_until(lock, until)) return over_;
    }
    return true;
  }
  [[nodiscard]] std::thread::id id_of_thread() MUSTER_EXCLUDES(joining_) {
    const scoped_lock lock(joining_);
    return thread_.get_id();
  }

  const process_mark made_in_;
  std::stop_source stop_;
  mutable mutex mutex_;
  condition changed_;
  bool over_ MUSTER_GUARDED_BY(mutex_) = false;
  std::exception_ptr thrown_ MUSTER_GUARDED_BY(mutex_);
  mutex joining_;  // after mutex_; never held while the function runs
  std::thread thread_ MUSTER_GUARDED_BY(joining_);
};

thread::thread(detail::thread_main run) : state_(std::make_shared<detail::thread_state>()) {
  state_->start(state_, std::move(run));
}

thread::thread(thread&& other) noexcept = default;

thread& thread::operator=(thread&& other) noexcept {
  thread(std::move(other)).state_.swap(state_);
  return *this;
}

thread::~thread() {
  if (state_) state_->end();
}

detail::thread_state& thread::self() const {
  if (state_) return *state_;
  throw error(errc::invalid_argument, "this thread object refers to nothing: it was moved from");
}

bool thread::join_until(deadline until) const { return self().join_until(until); }
bool thread::is_alive() const { return !self().is_over(); }
void thread::watch() const { self().watch(); }
bool thread::request_stop() const { return self().request_stop(); }

}  // namespace muster
