// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/pool_core.hpp>

#include <muster/base/futex.hpp>
#include <muster/base/spin.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

pool_core::pool_core(std::shared_ptr<domain> shared, const spin_policy& spin, std::size_t workers,
                     const pool_options& options)
    : domain_(std::move(shared)),
      max_tasks_per_worker_(options.max_tasks_per_worker),
      board_({.workers = workers}, spin),
      functions_(board_.modules()),
      tasks_(board_, domain_->blocks(),
             {.max_pending = options.max_pending,
              .overflow = options.overflow,
              .overflow_wait = options.overflow_wait,
              .watch = [this] { start_watch(); },
              .watch_time = [this](clock::time_point when) { watch_time(when); }}),
      callbacks_(std::make_shared<callback_executor>(options.log)) {}

pool_core::~pool_core() = default;

task_record& pool_core::submit(function_token function, outgoing_frame frame, const task_options& options,
                               bool limited) {
  return tasks_.post({.function = function,
                      .frame = std::move(frame),
                      .retries = options.retries,
                      .label = options.label.view(),
                      .timeout = options.timeout,
                      .limited = limited});
}

dispatcher::statistics pool_core::read_statistics() const {
  auto counted = tasks_.read_statistics();
  counted.retried += elements_retried_.load(std::memory_order_relaxed);
  counted.lost += elements_lost_.load(std::memory_order_relaxed);
  return counted;
}

bool pool_core::wait_helping(const std::atomic<std::uint32_t>& done, deadline until) {
  const auto is_done = [&] { return done.load(std::memory_order_acquire) != 0; };
  while (!is_done()) {
    {
      const dispatcher::helper scope(tasks_);
      spin_until(tasks_.spin_budget(until), [&] {
        if (tasks_.has_completions()) tasks_.drain();
        return is_done();
      });
    }
    if (is_done()) break;
    // Asleep, the supervisor goes on with what this thread was helping.
    if (!futex_wait(futex_address(done), 0, futex_scope::within_process, until)) return is_done();
  }
  return true;
}

void pool_core::worker_started(std::size_t worker, pid_t pid) noexcept { tasks_.set_worker(worker, pid); }

void pool_core::worker_ended(std::size_t worker, const exit_status& how) noexcept { tasks_.recover(worker, how); }

void pool_core::crew_broken(const error_info& why) noexcept {
  tasks_.stop(error_info(errc::pool_broken, text("the pool is broken: ", why.describe())));
}

void pool_core::bell_rang() noexcept {
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

bool pool_core::repair_start() noexcept {
  const bool header = board_.restore_header();
  const bool modules = functions_.restore_directory();
  const bool domain = domain_->restore_header();
  if (!header && !modules && !domain) return false;
  tasks_.report_damage();
  return true;
}

audit_report pool_core::audit() noexcept { return tasks_.audit(); }

overdue_report pool_core::check_times() noexcept { return tasks_.check_times(); }

void pool_core::crew_replaced() noexcept {
  tasks_.renew();
  functions_.restore_directory();
}

}  // namespace muster::detail
