// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/pool_core.hpp>

#include <algorithm>

#include <muster/async/detail/callback_executor.hpp>
#include <muster/async/detail/waiting_calls.hpp>
#include <muster/base/detail/demangle.hpp>
#include <muster/base/detail/futex.hpp>
#include <muster/base/spin.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/detail/wait/look.hpp>

namespace muster::detail {

void require_valid(const task_options& options) {
  const auto refuse = [](const char* name, std::chrono::nanoseconds given, const char* what) {
    const auto milliseconds = std::chrono::duration<double, std::milli>(given).count();
    throw error(errc::invalid_argument, text("task_options::", name, " = ", milliseconds, " ms was given: ", what));
  };
  if (options.timeout.count() < 0) {
    refuse("timeout", options.timeout, "0 is without limit; for an end that may have passed already there is deadline");
  }
  if (options.retry_delay.count() < 0) refuse("retry_delay", options.retry_delay, "0 is at once");
}

namespace {

std::vector<device> names_of(const std::vector<device_assignment>& assignments) {
  std::vector<device> names;
  names.reserve(assignments.size());
  for (const auto& each : assignments) names.push_back(each.device);
  return names;
}

}  // namespace

pool_core::pool_core(std::shared_ptr<domain> shared, const spin_policy& spin, const board_sizes& sizes,
                     const pool_options& options, boost::asio::io_context* loop,
                     const std::vector<device_assignment>& devices)
    : future_home(options.log, loop),
      domain_(std::move(shared)),
      max_tasks_per_worker_(options.max_tasks_per_worker),
      quarantine_after_(options.quarantine_after),
      board_(sizes, spin),
      functions_(board_.modules()),
      attendant_(loop != nullptr
                     ? std::make_shared<loop_attendant>(*loop, [this](clock::time_point when) { watch_time(when); })
                     : nullptr),
      name_(options.name),
      tasks_(board_, domain_->blocks(),
             {.max_pending = options.max_pending,
              .overflow = options.overflow,
              .overflow_wait = options.overflow_wait,
              .quarantine_after = options.quarantine_after,
              .devices = names_of(devices),
              .watch = [this] { start_watch(); },
              .call_back = [this](std::size_t worker) { call_back(worker); },
              .watch_time = [this](clock::time_point when) { watch_time(when); },
              .call_loop = loop != nullptr ? [this] { attendant_->call(); } : std::function<void()>(),
              .release_loop = [this] { attendant_->ring(); }}),
      output_(options.output.to() ? std::make_shared<output_relay>(
                                        options.output, loop != nullptr ? shared_steps() : shared_callbacks())
                                  : nullptr),
      waiting_end_(std::make_unique<waiting_end>()) {}

pool_core::~pool_core() = default;

task_record& pool_core::submit(function_token function, outgoing_frame frame, const task_options& options,
                               const task_terms& terms, lane_route route, admission admitted) {
  return tasks_.post({.function = function,
                      .frame = std::move(frame),
                      .retries = options.retries,
                      .label = options.label.view(),
                      .terms = terms.some() ? &terms : nullptr,
                      .lane = lane_for(route, options.priority),
                      .admitted = admitted});
}

std::size_t pool_core::lane_for(lane_route route, priority urgency) noexcept {
  if (route.is_shared()) return static_cast<std::size_t>(urgency);
  if (!route.is_in_turn()) return board::shared_lanes + route.worker();
  return board::shared_lanes + turn_.fetch_add(1, std::memory_order_relaxed) % workers();
}

lane_route pool_core::route_to(std::size_t worker) const {
  if (worker < workers()) return lane_route::to(worker);
  throw error(errc::invalid_argument,
              text("on(", worker, ") of a pool of ", workers(), " workers: they are 0 to ", workers() - 1));
}

dispatcher::statistics pool_core::read_statistics() const {
  auto counted = tasks_.read_statistics();
  counted.retried += elements_retried_.load(std::memory_order_relaxed);
  counted.lost += elements_lost_.load(std::memory_order_relaxed);
  counted.timed_out += elements_timed_out_.load(std::memory_order_relaxed);
  counted.quarantined += elements_quarantined_.load(std::memory_order_relaxed);
  counted.argument_bytes_copied += element_bytes_copied_.load(std::memory_order_relaxed);
  counted.argument_bytes_referenced += element_bytes_referenced_.load(std::memory_order_relaxed);
  return counted;
}

void pool_core::name_function(function_token token, const std::type_info& callable) {
  const scoped_lock lock(names_mutex_);
  auto& name = names_[token];
  if (name.empty()) name = muster::name_of(callable);
}

std::string pool_core::name_of(function_token token) {
  const scoped_lock lock(names_mutex_);
  const auto found = names_.find(token);
  return found != names_.end() ? found->second : text("function ", std::hex, static_cast<std::uint64_t>(token));
}

std::shared_ptr<void> pool_core::listen() {
  if (attendant_ == nullptr) return nullptr;
  tasks_.begin_listening();
  return {&tasks_, [core = shared_from_this()](dispatcher* tasks) { tasks->end_listening(); }};
}

bool pool_core::wait_helping(const std::atomic<std::uint32_t>& done, deadline until) {
  const auto is_done = [&] { return done.load(std::memory_order_acquire) != 0; };
  while (!is_done()) {
    {
      const dispatcher::helper scope(tasks_);
      const auto look = [&] {
        if (tasks_.has_completions()) tasks_.drain();
        return is_done();
      };
      look_until(tasks_.spin_budget(until), look, [&] { return tasks_.ask_of_many(); });
    }
    if (is_done()) break;
    tasks_.retire_loop();  // it may be this very thread's
    // Asleep, the supervisor goes on with what this thread was helping.
    if (!futex_wait(futex_address(done), 0, futex_scope::within_process, until)) return is_done();
  }
  return true;
}

void pool_core::worker_started(std::size_t worker, pid_t pid) noexcept { tasks_.set_worker(worker, pid); }

void pool_core::crew_greeted() noexcept { start_.end(); }

void pool_core::crew_will_be_killed() noexcept {
  tasks_.expect_kills(
      error_info::described(errc::cancelled, [] { return std::string("the pool was terminated while the task ran"); }));
}

void pool_core::worker_wrote(const worker_output& line) noexcept {
  if (output_) output_->push(line);
}

void pool_core::worker_ended(std::size_t worker, const exit_status& how, const last_words& words) noexcept {
  tasks_.recover(worker, how, words);
}

/// Ends the calls that wait for their arguments when the crew is broken: not on the supervisor, since their callables
/// are the program's. Allocated with the pool.
///
/// Thread safety: as deferred_call.
class pool_core::waiting_end final : public deferred_call {
public:
  void begin(std::weak_ptr<pool_core> core, error_info why) noexcept {
    core_ = std::move(core);
    why_ = std::move(why);
  }
  void run() override {
    if (const auto core = core_.lock()) core->waiting().end_all(why_);
  }

private:
  std::weak_ptr<pool_core> core_;
  error_info why_;
};

void pool_core::crew_broken(const error_info& why) noexcept {
  const auto broken =
      error_info::described(errc::pool_broken, [&] { return text("the pool is broken: ", why.describe()); });
  tasks_.stop(broken);
  if (waiting_end_ != nullptr) {
    waiting_end_->begin(weak_from_this(), error_info::copy_of(broken));
    steps().post(deferred_ptr(waiting_end_.release()));
  }
  // Behind it: a caller that learns that the pool did not start finds that it takes no tasks.
  start_.end(error_info::described(why.code(),
                                   [&] { return text("the pool '", name_, "' cannot be started: ", why.describe()); }));
}

void pool_core::bell_rang() noexcept {
  if (attendant_ && attendant_->sees_to_it(tasks_)) return;
  tasks_.drain();
  tasks_.arm_bell();
}

// ---- damage

void pool_core::set_watch(crew* workers) {
  const scoped_lock lock(watch_mutex_);
  watch_ = workers;
}

void pool_core::start_watch() {
  const scoped_lock lock(watch_mutex_);
  if (watch_ != nullptr) watch_->watch();
}

void pool_core::watch_time(clock::time_point when) {
  const scoped_lock lock(watch_mutex_);
  if (watch_ != nullptr) watch_->watch_time(when);
}

void pool_core::call_back(std::size_t worker) {
  const scoped_lock lock(watch_mutex_);
  if (watch_ != nullptr) watch_->call_back(worker);
}

bool pool_core::needs_worker(std::size_t worker) noexcept { return tasks_.needs_worker(worker); }

bool pool_core::repair_start() noexcept {
  const bool header = tasks_.restore_header();
  const bool modules = functions_.restore_directory();
  const bool domain = domain_->restore_header();
  if (modules || domain) tasks_.report_damage();
  return header || modules || domain;
}

// Without memory to look at all there is, it is looked at again next time.
audit_report pool_core::audit() noexcept {
  try {
    return tasks_.audit();
  } catch (const std::bad_alloc&) {
    audit_report again;
    again.more = true;
    return again;
  }
}

overdue_report pool_core::check_times() noexcept {
  auto report = tasks_.check_times();
  if (attendant_) report.next = std::min(report.next, attendant_->look_after(tasks_));
  return report;
}

void pool_core::crew_replaced() noexcept {
  tasks_.renew();
  functions_.restore_directory();
}

}  // namespace muster::detail
