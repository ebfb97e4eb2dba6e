// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/local_core.hpp>

#include <algorithm>
#include <bit>

#include <muster/base/cpu_list.hpp>
#include <muster/base/detail/futex.hpp>
#include <muster/base/effective_cpus.hpp>
#include <muster/base/spin.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/detail/wait/look.hpp>
#include <muster/memory/wait/parking.hpp>
#include <muster/queue/board.hpp>
#include <muster/serialize/exceptions.hpp>

namespace muster::detail {

namespace {

void rouse(std::atomic<std::uint32_t>& parked) noexcept {
  futex_wake(futex_address(parked), 1, futex_scope::within_process);
}

std::size_t checked(std::size_t threads) {
  if (threads <= most_workers) return threads;
  throw error(errc::invalid_argument, text("a pool of ", threads, " threads was asked for; possible are 1 to ",
                                           most_workers, ", or 0 for as many as there are processors"));
}

}  // namespace

local_core::local_core(const thread_pool_options& options, std::size_t threads, const context_maker& make_context)
    : future_home(options.log),
      serial_(threads == 0),
      name_(options.name),
      max_pending_(options.max_pending),
      overflow_(options.overflow),
      overflow_wait_(options.overflow_wait),
      initializer_(options.initializer),
      finalizer_(options.finalizer),
      log_(callable(options.log)),
      as_caller_(options.as_caller),
      spin_(threads == 0 || (as_caller_ && effective_cpus_of(allowed_cpus()) < 2) ? spin_policy()
                                                                                  : spin_policy::of_process()),
      waits_(checked(threads)),
      sleeping_((checked(threads) + 63) / 64) {
  for (std::size_t index = 0; index < std::max<std::size_t>(1, threads); ++index) {
    auto& made = *workers_.emplace_back(std::make_unique<worker>());
    made.self = {.core = this, .id = static_cast<int>(index), .pool_name = &name_, .pool_stop = &stopping_};
  }
  if (!serial_) start(make_context);
}

local_core::~local_core() = default;

// ---- threads

void local_core::start(const context_maker& make_context) {
  try {
    for (std::size_t index = 0; index < workers_.size(); ++index) {
      workers_[index]->thread = std::thread([this, index, &make_context] { work(index, make_context); });
    }
    throw_if_unprepared();
  } catch (...) {
    close();
    join_threads();
    throw;
  }
}

void local_core::throw_if_unprepared() {
  scoped_lock lock(end_mutex_);
  while (prepared_ < workers_.size()) end_changed_.wait(lock);
  if (!failure_.empty()) throw error(errc::start_failed, failure_);
}

void local_core::prepare(std::size_t index, const context_maker& make_context) noexcept {
  std::string failure;
  try {
    if (initializer_) initializer_();
    auto& mine = *workers_[index];
    if (make_context) mine.context = make_context(index);
    mine.self.context = mine.context.get();
  } catch (...) {
    failure = text("thread ", index, " of '", name_, "' could not be prepared for tasks: its initializer or context ",
                   "failed: ", capture_current_exception().describe());
  }
  const scoped_lock lock(end_mutex_);
  ++prepared_;
  if (failure_.empty()) failure_ = std::move(failure);
  end_changed_.notify_all();
}

void local_core::work(std::size_t index, const context_maker& make_context) noexcept {
  if (!as_caller_) run_where_process_may();
  auto& self = workers_[index]->self;
  const local_worker::scope scope(self);
  prepare(index, make_context);  // the maker is not there any more after this
  while (const auto job = next_job(index)) {
    run(*job, self);
    note_meeting(index);
  }
  run_finalizer(index);
  workers_[index]->context = nullptr;
  leave(index);
}

void local_core::run(local_job& job, local_worker& here) noexcept {
  if (!stopping_.is_requested()) return job.run(here);
  job.withdraw(terminated_error());
}

void local_core::run_finalizer(std::size_t index) noexcept {
  if (!finalizer_) return;
  try {
    finalizer_();
  } catch (...) {
    log_(log_level::error,
         text("the finalizer of thread ", index, " of '", name_, "' failed: ", capture_current_exception().describe()));
  }
}

void local_core::leave(std::size_t index) {
  workers_[index]->has_left.store(true, std::memory_order_release);
  const scoped_lock lock(end_mutex_);
  ++left_;
  end_changed_.notify_all();
}

std::shared_ptr<local_job> local_core::next_job(std::size_t index) {
  bool was_idle = false;
  for (;;) {
    if (auto job = take(index)) {
      // Whoever submitted more relied on this thread being awake; now that it is busy, the next one must be.
      if (was_idle && workers_.size() > 1 && !queue_.seems_empty()) wake_any();
      tell_place(workers_[index]->place);
      return job;
    }
    if (must_leave()) return nullptr;
    was_idle = true;
    if (!spin(index)) park(index);
  }
}

std::shared_ptr<local_job> local_core::take(std::size_t index) {
  auto& own = workers_[index]->own;
  if (!own.seems_empty()) {
    if (auto job = own.pop()) return job;
  }
  return queue_.seems_empty() ? nullptr : queue_.pop();
}

// True when there is something to do; false also where another thread looks, or a caller is to run on this processor.
bool local_core::spin(std::size_t index) {
  if (spin_.budget.count() == 0) return false;
  auto& mine = *workers_[index];
  const auto look = [&] { return seems_wanted(index); };
  const auto ask = [&] {
    tell_place(mine.place);
    return prospect_of(caller_place_);
  };
  const auto look_long = [&] { return look_until(spin_.budget, look, ask); };
  return parking::spin_alone(spinning(), index, look_long);
}

// Not only where it has looked in vain: a worker that wakes its caller on its own processor is mostly preempted by it,
// and finds the next task when it goes on, so that it never looks.
void local_core::note_meeting(std::size_t index) noexcept {
  auto& mine = *workers_[index];
  tell_place(mine.place);
  const auto of_caller = prospect_of(caller_place_);
  if (of_caller == prospect::futile && !is_room_aside(workers_.size(), sleeping().count(), spin_.processors)) return;
  // Where there is a job already the caller has been here since, and waits.
  mine.aside.note(mine.place, of_caller, queue_.seems_empty());
}

prospect local_core::ask(std::optional<std::size_t> next) noexcept {
  tell_place(caller_place_);
  const auto place_of = [this](std::size_t worker) -> const place_word& { return workers_[worker]->place; };
  if (next && *next < workers_.size()) return prospect_of(place_of(*next));
  return outlook::of_any(spinning(), sleeping(), workers_.size(), place_of);
}

void local_core::park(std::size_t index) {
  auto& parked = workers_[index]->parked;
  parking::park(
      parked, sleeping(), index, [&] { return is_wanted(index); },
      [&] { futex_wait(futex_address(parked), 1, futex_scope::within_process); });
}

bool local_core::seems_wanted(std::size_t index) const noexcept {
  return !queue_.seems_empty() || !workers_[index]->own.seems_empty() || must_leave();
}

bool local_core::is_wanted(std::size_t index) const {
  return !queue_.empty() || !workers_[index]->own.empty() || must_leave();
}

std::atomic<std::uint32_t>& local_core::wake_word_of(std::size_t worker) noexcept {
  note_woken(workers_[worker]->place);
  return workers_[worker]->parked;
}

void local_core::wake(std::size_t worker) noexcept {
  if (sleeping().remove(worker)) parking::unpark(wake_word_of(worker), rouse);
}

void local_core::wake_any() noexcept {
  if (spinning().check_any()) return;
  parking::wake_any(sleeping(), [this](std::size_t worker) { return &wake_word_of(worker); }, rouse);
}

void local_core::wake_all() noexcept {
  for (std::size_t index = 0; index < workers_.size(); ++index) wake(index);
}

lane_route local_core::route_to(std::size_t worker) const {
  if (worker < workers()) return lane_route::to(worker);
  throw error(errc::invalid_argument,
              text("on(", worker, ") of a pool of ", workers(), " workers: they are 0 to ", workers() - 1));
}

local_worker* local_core::inside(lane_route route) const noexcept {
  auto* const here = local_worker::current();
  if (here == nullptr || here->core != this) return nullptr;
  return route.is_shared() || route.worker() == static_cast<std::size_t>(here->id) ? here : nullptr;
}

error_info local_core::circle_error(const local_worker& here) const {
  return {
      errc::invalid_argument,
      text("a task on thread ", here.id, " of '", name_, "' waits for a call that is for another thread alone, and ",
           "that one waits, or those for whom it waits, for thread ", here.id, ": none of them could ever go on. ",
           "What nobody had begun of it is not run. Name no thread where tasks wait for one another, or have only one "
           "of them wait")};
}

std::chrono::nanoseconds local_core::spin_budget() const noexcept {
  std::size_t asleep = 0;
  for (const auto& word : sleeping_) {
    asleep += static_cast<std::size_t>(std::popcount(word.load(std::memory_order_relaxed)));
  }
  const bool all_needed = workers_.size() >= spin_.processors + asleep;
  return all_needed ? std::chrono::nanoseconds(0) : spin_.budget;
}

// ---- jobs

void local_core::post(std::shared_ptr<local_job> job, lane_route route) {
  if (serial_) {
    auto here = workers_.front()->self;  // each call its own: they may come from several threads, and be nested
    const local_worker::scope scope(here);
    run(*job, here);
  } else if (route.is_shared()) {
    queue_.push(std::move(job));
    wake_any();
  } else {
    workers_[route.worker()]->own.push(std::move(job));
    wake(route.worker());
  }
}

bool local_core::has_waiting(const local_worker& here) const noexcept {
  return !queue_.seems_empty() || !workers_[static_cast<std::size_t>(here.id)]->own.seems_empty();
}

}  // namespace muster::detail
