// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/loop_attendant.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <boost/asio/defer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>

#include <muster/base/detail/known_descriptor.hpp>
#include <muster/base/spin.hpp>
#include <muster/base/standard_streams.hpp>
#include <muster/base/system_call.hpp>
#include <muster/memory/detail/wait/look.hpp>
#include <muster/pool/detail/pool_core.hpp>

namespace muster::detail {

namespace {

// For so long other handlers of the loop wait at most for this one, besides for those that it calls.
constexpr std::chrono::nanoseconds slice = std::chrono::microseconds(10);
// Handlers may take this long before the supervisor stands in for their loop, about.
constexpr std::chrono::nanoseconds loop_patience = std::chrono::milliseconds(10);

unique_fd make_bell() {
  auto bell = above_standard_streams(unique_fd(system_call("eventfd", ::eventfd, 0U, EFD_CLOEXEC | EFD_NONBLOCK)));
  known_descriptor::mark(bell.get());  // workers write to it while tasks may close descriptors
  return bell;
}

}  // namespace

/// What it needs of Asio.
///
/// Thread safety: `stream` is guarded by the mutex.
struct loop_attendant::descriptors {
  explicit descriptors(boost::asio::io_context& whose) : loop(whose), stream(std::in_place, whose, bell.get()) {}

  boost::asio::io_context& loop;
  const unique_fd bell = make_bell();
  std::optional<boost::asio::posix::stream_descriptor> stream;  // until the pool ends
};

/// Sees to it that the handler is followed by another, also when what it called throws.
///
/// Thread safety: an object belongs to one thread.
class loop_attendant::link {
public:
  explicit link(loop_attendant& of) : of_(of) {}
  link(const link&) = delete;
  link& operator=(const link&) = delete;
  ~link() {
    if (goes_on_) of_.poll_again();
  }
  void cut() noexcept { goes_on_ = false; }

private:
  loop_attendant& of_;
  bool goes_on_ = true;
};

loop_attendant::loop_attendant(boost::asio::io_context& loop, std::function<void(clock::time_point)> watch)
    : watch_(std::move(watch)), descriptors_(std::make_unique<descriptors>(loop)) {}

// In a forked child Asio's epoll may be the parent's, until the program says notify_fork: nothing is taken out of it.
loop_attendant::~loop_attendant() {
  stop();
  if (!made_in_.is_here()) static_cast<void>(descriptors_.release());  // NOLINT(bugprone-unused-return-value)
}

int loop_attendant::bell() const noexcept { return descriptors_->bell.get(); }

void loop_attendant::call() {
  const scoped_lock lock(mutex_);
  if (!stopped_) boost::asio::post(descriptors_->loop, [self = shared_from_this()] { self->poll(); });
}

void loop_attendant::ring() const noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(bell(), &one, sizeof one));  // fails only when it has been rung often enough
}

void loop_attendant::stop() noexcept {
  if (!made_in_.is_here()) return;
  {
    const scoped_lock lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    static_cast<void>(descriptors_->stream->release());  // ends the wait; `bell` owns it
    descriptors_->stream.reset();
  }
  send_rest();  // there may be no next turn
}

// ---- on the loop

// In a forked child that goes on with the loop it does nothing: completions are the parent's.
void loop_attendant::poll() {
  if (!made_in_.is_here()) return;
  const auto core = core_.lock();
  if (core == nullptr) return;
  auto& tasks = core->tasks();
  looks_.fetch_add(1, std::memory_order_relaxed);
  if (tasks.begin_poll()) {
    in_vain_ = std::chrono::nanoseconds(0);
    ensure_watched();
  }
  link next(*this);
  const auto budget = tasks.spin_budget();
  const auto time = std::min(slice, budget - in_vain_);
  const bool found = serve(tasks, time);
  if (!made_in_.is_here()) return next.cut();
  in_vain_ =
      found ? std::chrono::nanoseconds(0) : in_vain_ + (tasks.ask_of_many() == prospect::futile ? budget : slice);
  if (!found && in_vain_ >= budget) {
    next.cut();
    if (tasks.end_poll()) sleep();
  }
}

// Not while a worker is to run on this thread's processor.
bool loop_attendant::look_long(dispatcher& tasks, std::chrono::nanoseconds time) {
  return look_until(time, [&] { return tasks.has_completions(); }, [&] { return tasks.ask_of_many(); });
}

// Looks for so long, or until what it delivered has taken as long. False when nothing has come.
bool loop_attendant::serve(dispatcher& tasks, std::chrono::nanoseconds time) {
  constexpr unsigned rounds_per_clock_reading = 4;
  auto end = clock::now() + slice;
  if (!deliver(end)) return true;
  for (unsigned round = 1; look_long(tasks, time); ++round) {
    if (drain(tasks) > 1) end = clock::now() + slice;  // which may have taken long
    if (!deliver(end)) return true;
    if (round % rounds_per_clock_reading == 0 && clock::now() >= end) return true;
    if (tasks.loop() != dispatcher::loop_state::polls) return true;
    time = slice;
  }
  return false;
}

std::size_t loop_attendant::drain(dispatcher& tasks) {
  {
    const delivery_scope scope(fresh_);
    tasks.drain();
  }
  const scoped_lock lock(mutex_);
  const auto count = fresh_.size();
  ended_.take(fresh_);
  return count;
}

// False when some are left for the next time. Handlers that take long are not to wait for each other where several
// threads run the loop: behind such the rest is posted.
bool loop_attendant::deliver(clock::time_point end) {
  constexpr unsigned most_at_once = 8;
  unsigned done = 0;
  while (auto each = next_ended()) {
    delivery::deliver(std::move(each), descriptors_->loop);
    if (!made_in_.is_here()) return false;  // the handler has forked, and this is the child
    ++done;
    if (done == 1 || (done % most_at_once != 0 && (done & (done - 1)) != 0))
      continue;  // looks after 2, 4, 8, 16, 24, …
    const auto late = clock::now() - end;
    if (late > 10 * slice) {
      send_rest();
    } else if (late >= late.zero()) {
      return false;
    }
  }
  return true;
}

std::unique_ptr<delivery> loop_attendant::next_ended() {
  const scoped_lock lock(mutex_);
  return ended_.pop_front();
}

void loop_attendant::send_rest() {
  if (!made_in_.is_here()) return;
  while (auto each = next_ended()) delivery::send(std::move(each));
}

// Deferred: by this thread, without waking another, behind what the loop has to do. Once stopped there are no turns.
void loop_attendant::poll_again() {
  if (!made_in_.is_here()) return;
  {
    const scoped_lock lock(mutex_);
    if (!stopped_) return boost::asio::defer(descriptors_->loop, [self = shared_from_this()] { self->poll(); });
  }
  send_rest();
}

void loop_attendant::sleep() {
  const scoped_lock lock(mutex_);
  if (stopped_) return;
  descriptors_->stream->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                   [self = shared_from_this()](boost::system::error_code failure) {
                                     // Stopped; or a forked child, which would take the parent's bell.
                                     if (failure || !self->made_in_.is_here()) return;
                                     std::uint64_t count = 0;
                                     static_cast<void>(!::read(self->bell(), &count, sizeof count));
                                     self->poll();
                                   });
}

// ---- the supervisor

void loop_attendant::ensure_watched() {
  if (!watched_.exchange(true)) watch_(clock::now() + loop_patience);
}

clock::time_point loop_attendant::look_after(dispatcher& tasks) {
  using state = dispatcher::loop_state;
  const auto is_in_charge = [&] { return tasks.loop() == state::polls || tasks.loop() == state::sleeps; };
  if (!watched_) return clock::time_point::max();
  const auto looks = looks_.load(std::memory_order_relaxed);
  const bool lives = std::exchange(looks_seen_, looks) != looks;
  if (!lives) send_rest();  // the handler that was called may wait for one behind it
  const bool needed = is_in_charge() && !lives && tasks.has_completions();
  if (needed) tasks.retire_loop();
  if (!is_in_charge() || (!lives && tasks.ring_both())) {
    watched_ = false;
    // It may have begun just now, and found itself watched.
    if (!is_in_charge() || tasks.loop() == state::sleeps || watched_.exchange(true)) return clock::time_point::max();
  }
  return clock::now() + loop_patience;
}

bool loop_attendant::sees_to_it(const dispatcher& tasks) {
  using state = dispatcher::loop_state;
  if (tasks.loop() != state::polls && tasks.loop() != state::sleeps) return false;
  ensure_watched();
  return true;
}

}  // namespace muster::detail
