// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/reply_reader.hpp>

#include <cstring>
#include <utility>

#include <muster/base/start_thread.hpp>
#include <muster/memory/domain.hpp>
#include <muster/queue/detail/incoming_message.hpp>

namespace muster::detail {

namespace {

bool is_never_over(const void* /*of*/) noexcept { return false; }

}  // namespace

reply_reader::reply_reader(const domain& where, std::shared_ptr<message_ring> replies, call_ledger& calls,
                           events& owner)
    : domain_(where),
      replies_(std::move(replies)),
      calls_(calls),
      owner_(owner),
      deaths_(where.deaths().load(std::memory_order_acquire)) {}

reply_reader::~reply_reader() { stop(); }

// Nudges of before had their cause before, which the reader looks at from now on.
void reply_reader::begin_reading() {
  is_reading_ = true;
  nudges_seen_.store(nudges_.load(std::memory_order_acquire), std::memory_order_relaxed);
}

bool reply_reader::try_begin_reading() {
  const scoped_lock lock(mutex_);
  if (is_reading_ || stopped_) return false;
  begin_reading();
  return true;
}

void reply_reader::end_reading() {
  const scoped_lock lock(mutex_);
  is_reading_ = false;
  if (sleeping_.load(std::memory_order_relaxed) != 0 || is_watched()) changed_.notify_all();
}

/// One of those that wait, while it lives.
///
/// Thread safety: belongs to its thread.
class reply_reader::waiter {
public:
  explicit waiter(reply_reader& of) : of_(of) {
    const scoped_lock lock(of_.mutex_);
    ++of_.waiting_;
  }
  waiter(const waiter&) = delete;
  waiter& operator=(const waiter&) = delete;
  ~waiter() {
    const scoped_lock lock(of_.mutex_);
    --of_.waiting_;
    if (of_.is_watched()) of_.changed_.notify_all();
  }

private:
  reply_reader& of_;
};

bool reply_reader::wait_until(question is_over, const void* of, deadline until) {
  const asked what{is_over, of};
  if (what()) return true;
  const waiter here(*this);
  while (!what() && !until.expired() && wait_once(what, until)) continue;
  return what();
}

// False when there is nothing more to read.
bool reply_reader::wait_once(const asked& what, deadline until) {
  if (try_begin_reading()) {
    const reading_turn turn(*this);
    read_until(what, until);
    return true;
  }
  ask_for_turn();
  scoped_lock lock(mutex_);
  if (stopped_) return false;
  sleeping_.fetch_add(1, std::memory_order_seq_cst);
  while (is_reading_ && !what() && changed_.wait_until(lock, until)) continue;
  sleeping_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

void reply_reader::catch_up() {
  if (!try_begin_reading()) return;
  const reading_turn turn(*this);
  read({&is_never_over, nullptr, true}, deadline(clock::time_point()));
}

// The library's own thread gives way to one that waits.
void reply_reader::ask_for_turn() {
  if (watches_.load(std::memory_order_acquire)) ring_bell();
}

// The thread that reads looks at the times of calls that have callbacks.
void reply_reader::read_until(const asked& what, deadline until) {
  const bool has_others = calls_.has_notices();
  const auto due = has_others ? calls_.next_due() : deadline::never();
  read(what, due.when() < until.when() ? due : until);
  if (has_others) owner_.look_at_times();
}

// Until the call has ended, or there is another reason to look up.
void reply_reader::read(const asked& what, deadline until) {
  struct looker {
    reply_reader* self;
    const asked& what;
  } look_up{.self = this, .what = what};
  const auto is_over = [](void* of) {
    const auto& found = *static_cast<looker*>(of);
    return found.self->is_interrupted(found.what);
  };
  ring_position at;
  for (;;) {
    const auto found = replies_->claim(at, until, is_over, &look_up);
    if (found == queue_result::done) {
      take(at);
      if (what() || (!what.is_endless && until.expired())) return;
      continue;
    }
    if (const auto now = domain_.deaths().load(std::memory_order_acquire); deaths_.exchange(now) != now) {
      owner_.look_at_deaths();
      tell_others();
    }
    if (found != queue_result::interrupted || is_interrupted(what)) return;
  }
}

bool reply_reader::is_interrupted(const asked& what) noexcept {
  if (what()) return true;
  if (nudges_.load(std::memory_order_acquire) != nudges_seen_.load(std::memory_order_relaxed)) return true;
  return domain_.deaths().load(std::memory_order_acquire) != deaths_.load(std::memory_order_relaxed);
}

// One that cannot be taken out has been overwritten, or there is no memory for it: its caller waits for its time.
void reply_reader::take(ring_position at) noexcept {
  try {
    take_out(at);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): see above
  }
}

void reply_reader::take_out(ring_position at) {
  incoming_message message(*replies_, at);
  auto taken = message.take_out();
  reply_head head;
  if (taken.frame().size() < sizeof head) return;
  bytes_.add(taken.frame().size());
  std::memcpy(&head, taken.frame().data(), sizeof head);
  if (head.kind == reply_kind::nudge) return;
  if (head.kind == reply_kind::look) return look_again();
  calls_.settle(head, std::move(taken));
  tell_others();
}

void reply_reader::tell_others() noexcept {
  if (sleeping_.load(std::memory_order_seq_cst) == 0) return;
  const scoped_lock lock(mutex_);
  changed_.notify_all();
}

// A message wakes the thread that sleeps at the ring; at a full ring none does.
void reply_reader::ring_bell() {
  nudges_.fetch_add(1, std::memory_order_acq_rel);
  const reply_head head;
  const message_view what{.form = {.frame_bytes = sizeof head}, .bytes = std::as_bytes(std::span(&head, 1))};
  try {
    static_cast<void>(replies_->try_push(what));
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): who waits there is told by the ring that it is broken
  }
}

void reply_reader::look_again() noexcept {
  deaths_.store(domain_.deaths().load(std::memory_order_acquire) - 1, std::memory_order_release);
}

// A thread that begins to read later looks first.
void reply_reader::nudge() {
  bool another_reads = false;
  {
    const scoped_lock lock(mutex_);
    another_reads = is_reading_;
    changed_.notify_all();
  }
  if (another_reads) ring_bell();
}

void reply_reader::attend() {
  bool another_reads = false;
  {
    const scoped_lock lock(mutex_);
    if (stopped_) return;
    if (!thread_.joinable()) {
      thread_ = start_thread([this] { watch_on(); });
    }
    another_reads = is_reading_;
    if (!another_reads) changed_.notify_all();
  }
  if (another_reads) ring_bell();
}

// The thread of its own.
void reply_reader::watch_on() {
  scoped_lock lock(mutex_);
  while (!stopped_) {
    if (!is_watched()) {
      changed_.wait(lock);
      continue;
    }
    begin_reading();
    watches_.store(true, std::memory_order_release);
    lock.unlock();
    const bool goes_on = watch_once();
    watches_.store(false, std::memory_order_release);
    lock.lock();
    is_reading_ = false;
    stopped_ |= !goes_on;
    changed_.notify_all();
  }
}

bool reply_reader::watch_once() noexcept {
  try {
    read_until({&is_never_over, nullptr, false}, deadline::never());
    return true;
  } catch (...) {
    owner_.reading_failed(std::current_exception());
    return false;
  }
}

void reply_reader::stop() noexcept {
  std::thread ended;
  {
    const scoped_lock lock(mutex_);
    stopped_ = true;
    ended = std::move(thread_);
    changed_.notify_all();
  }
  ring_bell();
  if (ended.joinable()) ended.join();
  scoped_lock lock(mutex_);
  while (is_reading_) changed_.wait(lock);
}

}  // namespace muster::detail
