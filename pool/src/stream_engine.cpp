// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/stream_engine.hpp>

#include <algorithm>
#include <climits>
#include <cstdint>

#include <muster/base/detail/futex.hpp>

namespace muster::detail {

stream_engine::stream_engine(std::shared_ptr<pool_core> core, std::shared_ptr<map_job> job,
                             std::unique_ptr<stream_input> input, settings how)
    : core_(std::move(core)),
      job_(std::move(job)),
      input_(std::move(input)),
      settings_(std::move(how)),
      policy_({.workers = workers(), .given = settings_.chunk, .most = core_->max_tasks_per_worker()}) {}

stream_engine::~stream_engine() {
  if (!core_->is_here()) {
    leave_to_parent(under_way_, job_);
    return;
  }
  for (const auto& each : under_way_) each->abandon();
}

std::shared_ptr<batch_run> stream_engine::next_batch(std::size_t consumed) {
  core_->require_here();
  ahead_ -= consumed;
  while (wants_more() && !must_hand_out()) take(next_size());
  if (settings_.progress) settings_.progress->show();
  if (under_way_.empty()) {
    if (settings_.progress) settings_.progress->finish();
    if (input_failure_) std::rethrow_exception(std::exchange(input_failure_, nullptr));
    return nullptr;
  }
  auto done = wait_for_one();
  policy_.observe(done->count(), done->elapsed());
  return done;
}

std::optional<std::chrono::nanoseconds> stream_engine::when_next(std::size_t consumed, std::function<void()> then) {
  core_->require_here();
  ahead_ -= consumed;
  while (!input_->may_be_slow() && wants_more()) take(next_size());
  if (settings_.progress) settings_.progress->show();
  const auto patience = wants_more() ? std::optional(input_->patience()) : std::nullopt;
  if (under_way_.empty()) {
    if (patience) return std::chrono::nanoseconds(0);
    then();
    return std::nullopt;
  }
  finished_->when(settings_.ordered ? under_way_.front().get() : nullptr, std::move(then));
  core_->catch_up();  // which may be what it waits for
  return patience;
}

// An input that may make wait is not asked while there is a result to hand out.
bool stream_engine::must_hand_out() {
  if (!input_->may_be_slow() || under_way_.empty()) return false;
  const auto patience = input_->patience();
  if (patience.count() == 0) {
    core_->catch_up();
    return has_result();
  }
  const auto until = deadline::after(patience);
  return settings_.ordered ? under_way_.front()->wait(until) : core_->wait_helping(finished_->some, until);
}

bool stream_engine::has_result() const noexcept {
  if (settings_.ordered) return under_way_.front()->is_done();
  return finished_->some.load(std::memory_order_acquire) != 0;
}

void stream_engine::take(std::size_t most) {
  try {
    auto taken = input_->pull(most);
    exhausted_ = taken.ended;
    if (taken.count != 0) begin(std::move(taken.batch), taken.count);
  } catch (...) {
    exhausted_ = true;
    input_failure_ = std::current_exception();
  }
}

// How many elements to take now; 0 when the window is full.
std::size_t stream_engine::next_size() const noexcept {
  const auto wanted = input_->may_be_slow() ? 1 : policy_.next(SIZE_MAX);
  if (settings_.window == 0) return under_way_.size() < batches_per_worker * workers() ? wanted : 0;
  const auto room = settings_.window - std::min(settings_.window, ahead_);
  // Of a small window every worker should get something.
  const auto share = std::max<std::size_t>(1, settings_.window / (2 * workers()));
  return std::min({wanted, room, settings_.chunk != 0 ? wanted : share});
}

void stream_engine::begin(packed_batch batch, std::size_t count) {
  auto run = std::make_shared<batch_run>(
      core_, job_, std::move(batch),
      batch_run::settings{.retries = settings_.retries,
                          .terms = settings_.terms,
                          .urgency = settings_.urgency,
                          .label = settings_.label,
                          .first_element = taken_,
                          .chunking = {.workers = workers(), .given = count, .most = core_->max_tasks_per_worker()},
                          .route = settings_.route,
                          .progress = settings_.progress});
  finished_->make_room(under_way_.size() + 1);
  under_way_.push_back(run);
  try {
    run->start([finished = finished_, ordered = settings_.ordered, raw = run.get()] {
      if (!ordered) finished->add(*raw);
      finished->tell(*raw);
    });
  } catch (...) {
    under_way_.pop_back();
    throw;
  }
  taken_ += count;
  ahead_ += count;
}

std::shared_ptr<batch_run> stream_engine::wait_for_one() {
  auto which = under_way_.begin();
  if (settings_.ordered) {
    (*which)->wait();
  } else {
    wait_showing(*core_, finished_->some, deadline::never(), settings_.progress.get());
    const auto* const first = finished_->take();
    which = std::find_if(under_way_.begin(), under_way_.end(), [&](const auto& each) { return each.get() == first; });
  }
  auto done = std::move(*which);
  under_way_.erase(which);
  return done;
}

void stream_engine::finished_batches::make_room(std::size_t under_way) {
  const scoped_lock lock(guard);
  if (order.capacity() < under_way) order.reserve(2 * under_way);
}

void stream_engine::finished_batches::add(batch_run& run) {
  const scoped_lock lock(guard);
  order.push_back(&run);
  some.store(1, std::memory_order_release);
  futex_wake(futex_address(some), INT_MAX, futex_scope::within_process);
}

void stream_engine::finished_batches::tell(const batch_run& run) {
  std::function<void()> what;
  {
    const scoped_lock lock(guard);
    if (awaited == nullptr || awaited == &run) what = std::exchange(then, nullptr);
  }
  if (what) what();
}

void stream_engine::finished_batches::when(const batch_run* which, std::function<void()> what) {
  {
    const scoped_lock lock(guard);
    awaited = which;
    then = nullptr;
    if (which != nullptr ? !which->is_done() : order.empty()) {
      then = std::move(what);
      return;
    }
  }
  what();
}

batch_run* stream_engine::finished_batches::take() {
  const scoped_lock lock(guard);
  auto* const first = order.front();
  order.erase(order.begin());
  if (order.empty()) some.store(0, std::memory_order_release);
  return first;
}

}  // namespace muster::detail
