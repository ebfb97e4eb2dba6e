// SPDX-License-Identifier: BSL-1.0
#include <muster/async/detail/callback_executor.hpp>

#include <cstddef>
#include <memory>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <muster/base/assert.hpp>
#include <muster/base/detail/demangle.hpp>
#include <muster/base/error.hpp>
#include <muster/base/room.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

// The executor whose callback this thread runs; nullptr: none, or one with a loop.
thread_local callback_executor* running_here = nullptr;

// Also where the sink has thrown, which it must not.
void log_shortly(const log_sink& log, const char* what) noexcept {
  try {
    log(log_level::error, what);
  } catch (...) {  // NOLINT(bugprone-empty-catch): nobody is left to tell
  }
}

}  // namespace

void loop_room_disposal::operator()(loop_room* room) const noexcept { delete room; }

callback_executor::~callback_executor() {
  // Its threads hold this object, so they have ended, or this is the last of them.
  for (auto& each : threads_) {
    if (each.joinable()) each.detach();
  }
}

/// A call on the program's loop.
///
/// Thread safety: as a handler of Asio.
struct callback_executor::loop_handler {
  using allocator_type = room_allocator<std::byte>;
  [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_type(*call->room_); }
  // Not in a forked child that goes on with the loop.
  void operator()() const {
    if (executor->made_in_.is_here()) executor->run(*call);
  }

  std::shared_ptr<callback_executor> executor;
  deferred_ptr call;
};

void callback_executor::prepare() {
  const scoped_lock lock(mutex_);
  if (!stopped_ && loop_ == nullptr) require_thread();
}

void callback_executor::prepare(deferred_call& call) {
  reserve(call);
  prepare();
}

void callback_executor::reserve(deferred_call& call) const {
  if (loop_ != nullptr) call.room_.reset(new loop_room);
}

void callback_executor::post(deferred_ptr call) noexcept {
  if (!try_post(call)) run(*call);
}

bool callback_executor::try_post(deferred_ptr& call) noexcept {
  const scoped_lock lock(mutex_);
  if (stopped_) return false;
  if (loop_ != nullptr) {
    MUSTER_ASSERT(call->room_ != nullptr);  // prepare(call) was called
    boost::asio::post(*loop_, loop_handler{.executor = shared_from_this(), .call = std::move(call)});
    return true;
  }
  calls_.push_back(std::move(call));
  try_to_have_thread();
  changed_.notify_one();
  return true;
}

void callback_executor::run_posted() {
  for (;;) {
    deferred_ptr call;
    {
      const scoped_lock lock(mutex_);
      call = calls_.pop_front();
    }
    if (call == nullptr) return;
    run(*call);
  }
}

bool callback_executor::post_at(clock::time_point when, deferred_ptr call) {
  MUSTER_ASSERT(loop_ == nullptr);
  const scoped_lock lock(mutex_);
  if (stopped_) return false;
  later_.emplace(when, std::move(call));
  try_to_have_thread();
  changed_.notify_one();  // a thread that waits for a later one
  return true;
}

void callback_executor::try_to_have_thread() noexcept {
  try {
    require_thread();
  } catch (...) {
    lack_ = std::current_exception();
  }
}

void callback_executor::log_lack() noexcept {
  std::exception_ptr lack;
  {
    const scoped_lock lock(mutex_);
    lack = std::exchange(lack_, nullptr);
  }
  if (lack == nullptr) return;
  try {
    std::rethrow_exception(lack);
  } catch (...) {
    log_failure("a callback had to wait for a thread, which could not be started because of");
  }
}

void callback_executor::require_thread() {
  if (started_ || by_hand_) return;
  add_thread();
  started_ = true;
}

void callback_executor::add_thread() {
  make_room(threads_);
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
  log_lack();
  scoped_lock lock(mutex_);
  while (!calls_.empty() || !stopped_) {
    const auto next = take_due();
    if (calls_.empty() || running_ || ready_ != 0) {
      ++idle_;
      changed_.wait_until(lock, next);
      --idle_;
      continue;
    }
    auto call = calls_.pop_front();
    running_ = true;
    lock.unlock();
    run(*call);
    call.reset();  // what it captured may be the last owner of the pool
    lock.lock();
    running_ = false;
    if (ready_ != 0) turn_.notify_one();
  }
  changed_.notify_all();  // others may have gone to sleep over a call that this thread has run since
  running_here = before;
}

// Calls whose time has come are calls like others. Returns when that is so of the next.
deadline callback_executor::take_due() {
  const auto due = later_.empty() ? later_.end() : later_.upper_bound(clock::now());
  for (auto each = later_.begin(); each != due; each = later_.erase(each)) calls_.push_back(std::move(each->second));
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

callback_pause callback_pause::if_possible() noexcept {
  try {
    return callback_pause();
  } catch (...) {
    return callback_pause(nullptr);
  }
}

callback_pause::~callback_pause() {
  if (where_ != nullptr) where_->end_pause();
}

void callback_executor::run(deferred_call& call) const noexcept {
  try {
    call.run();
  } catch (...) {
    log_failure("a callback threw");
  }
}

// Inside a catch block. Without memory for the text, the sink gets what there is.
void callback_executor::log_failure(const char* what) const noexcept {
  try {
    try {
      throw;
    } catch (const std::exception& failure) {
      log_(log_level::error, text(what, ' ', name_of(typeid(failure)), ": ", text_or_none(failure.what())));
    } catch (...) {
      log_(log_level::error, text(what, " something that is not a std::exception"));
    }
  } catch (...) {
    log_shortly(log_, what);
  }
}

}  // namespace muster::detail
