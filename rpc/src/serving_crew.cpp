// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/serving_crew.hpp>

#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/room.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

// The crew whose request this thread serves.
constinit thread_local serving_crew* serving_here = nullptr;

// A request that takes longer is shared with a thread that has to be woken.
constexpr std::chrono::nanoseconds least_to_share = std::chrono::microseconds(20);
// How long one may hold up others though they are short as a rule.
constexpr std::chrono::nanoseconds look_at_backlog = std::chrono::microseconds(200);

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
      wait_while_idle(lock);
    }
  }
}

void serving_crew::wait_for_turn(scoped_lock& lock) {
  ++behind_;
  turn_.wait(lock);
  --behind_;
}

// One of the idle threads guards the requests. Where it is called it attends to them. While there is more to do than
// one thread does, but each is short, it looks whether that is still so: there is no event when one turns out long.
void serving_crew::wait_while_idle(scoped_lock& lock) {
  if (has_guard_) return turn_.wait(lock);
  const bool watches = (is_unattended_ && has_backlog_) || backlogs_ != std::exchange(backlogs_seen_, backlogs_);
  const bool is_left = is_unattended_ && !has_backlog_;
  const auto seen = is_left ? help_seen_ : requests_.calls_for_help();
  const auto served = served_;
  has_guard_ = true;
  guard_watches_ = watches;
  lock.unlock();
  const bool is_called =
      requests_.await_call_for_help(seen, is_left, watches ? deadline::after(look_at_backlog) : deadline::never());
  lock.lock();
  has_guard_ = guard_watches_ = false;
  const bool makes_progress = served_ != served;
  if (has_backlog_ && is_unattended_ && (watches ? !is_called && makes_progress : true)) return;
  come_back();
}

void serving_crew::try_to_add_thread() noexcept {
  try {
    add_thread();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): those that are there do
  }
}

bool serving_crew::is_short() const noexcept { return usual_ < least_to_share; }

// When another thread could serve the next request, which is not there yet as a rule. If it is, and requests are short,
// this thread is done sooner than another one is awake.
void serving_crew::leave_requests(bool is_back_soon) noexcept {
  help_seen_ = requests_.calls_for_help();
  const bool is_empty = requests_.look_away();
  if (idle_ == 0 && started_ < limit_ + most_spare) try_to_add_thread();
  is_unattended_ = is_empty || (is_back_soon && idle_ != 0);
  if (!is_unattended_) return tell_all();
  has_backlog_ = !is_empty;
  if (has_backlog_) ++backlogs_;
  if (!has_guard_) {
    turn_.notify_all();
  } else if (has_backlog_ && !guard_watches_) {
    requests_.call_for_help();
  }
}

void serving_crew::come_back() noexcept {
  if (!is_unattended_) return;
  is_unattended_ = false;
  if (!std::exchange(has_backlog_, false)) requests_.look_back();
}

void serving_crew::end_soon() noexcept {
  if (!serves_here()) return;
  const scoped_lock lock(mutex_);
  come_back();
}

void serving_crew::tell_those_behind() noexcept {
  if (behind_ != 0) turn_.notify_all();
}

// For run(), too, which looks without the lock whether it is over.
void serving_crew::tell_all() noexcept {
  ++news_;
  turn_.notify_all();
  if (has_guard_) requests_.call_for_help();
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

// Requests are begun in the order in which they came. The thread that has run one goes on with the next.
void serving_crew::serve_next(scoped_lock& lock) {
  is_receiving_ = true;
  lock.unlock();
  auto request = receive();
  lock.lock();
  is_receiving_ = false;
  if (request == nullptr) {
    if (runners_ != 0 || behind_ != 0 || stopped_) tell_all();
    return;
  }
  is_holding_ = true;
  while (running_ >= limit_ && !stopped_) wait_for_turn(lock);
  is_holding_ = false;
  ++running_;
  ++inside_;
  const bool can_share = may_receive();
  if (can_share) leave_requests(is_short());
  lock.unlock();
  const auto begun = can_share ? clock::now() : clock::time_point();
  auto* const before = std::exchange(serving_here, this);
  request();
  request = nullptr;
  serving_here = before;
  const auto time = can_share ? clock::now() - begun : std::chrono::nanoseconds(0);
  lock.lock();
  if (can_share) usual_ = served_ == 0 ? time : usual_ - usual_ / 8 + time / 8;
  ++served_;
  --running_;
  --inside_;
  come_back();
  tell_those_behind();
}

void serving_crew::run(const std::function<bool()>& is_over) {
  scoped_lock lock(mutex_);
  ++limit_;
  ++runners_;
  ++idle_;
  tell_all();
  while (!stopped_) {
    const auto seen = news_;
    lock.unlock();
    const bool ends = is_over();
    lock.lock();
    if (ends || stopped_) break;
    if (may_receive()) {
      --idle_;
      serve_next(lock);
      ++idle_;
    } else if (news_ == seen) {
      wait_while_idle(lock);
    }
  }
  --limit_;
  --runners_;
  --idle_;
  // Those that wait inside of requests may have counted on this thread.
  if (idle_ == 0 && inside_ != 0 && !is_receiving_ && !stopped_) try_to_add_thread();
  tell_all();
}

void serving_crew::wake_runners() {
  requests_.interrupt();
  const scoped_lock lock(mutex_);
  tell_all();
}

// Those that wait inside of a request may wait for one that is still to come: until they have ended, requests go on
// coming, and the source says to each that this member does not serve any more.
void serving_crew::stop() noexcept {
  {
    scoped_lock lock(mutex_);
    const std::size_t own = serves_here() ? 1 : 0;
    while (inside_ > own && !stopped_) wait_for_turn(lock);
    stopped_ = true;
    tell_all();
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

// Requests that come meanwhile find a guard, or a thread that attends.
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
  if (has_backlog_) come_back();
  if (may_receive()) {
    leave_requests(false);
  } else {
    tell_those_behind();
  }
}

void serving_crew::end_pause() noexcept {
  scoped_lock lock(mutex_);
  ++returning_;
  while (running_ >= limit_ && !stopped_) wait_for_turn(lock);
  --returning_;
  ++running_;
  if (may_receive()) {
    leave_requests(false);
  } else {
    tell_those_behind();
  }
}

serving_crew::pause::pause() : crew_(serving_here) {
  if (crew_ != nullptr) crew_->begin_pause();
}

serving_crew::pause::~pause() {
  if (crew_ != nullptr) crew_->end_pause();
}

}  // namespace muster::detail
