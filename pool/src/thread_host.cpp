// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/thread_host.hpp>

#include <unistd.h>

#include <muster/async/detail/callback_executor.hpp>
#include <muster/async/detail/future_source.hpp>
#include <muster/base/effective_cpus.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>
#include <muster/pool/detail/local_core.hpp>
#include <muster/pool/detail/thread_engine.hpp>

namespace muster::detail {

task_options checked_for_threads(const task_options& options) {
  const char* name = options.timeout.count() != 0                                              ? "timeout"
                     : options.deadline.count() != 0                                           ? "deadline"
                     : options.retry_on.after_exceptions() || options.retry_delay.count() != 0 ? "retry_on"
                     : options.priority != priority::normal                                    ? "priority"
                                                                                               : nullptr;
  if (name == nullptr) return options;
  throw error(errc::invalid_argument,
              text("task_options::", name,
                   " was given to a pool of threads, which cannot honour it (a thread cannot be "
                   "ended from outside): have the task look at this_task::stop_requested() and call future::cancel(), "
                   "or use a pool of processes"));
}

std::size_t thread_count(const thread_pool_options& options) {
  if (options.workers != 0) return options.workers;
  return options.as_caller ? effective_cpus_of(allowed_cpus()) : effective_cpus();
}

std::size_t thread_count(const thread_pool_options& options, std::size_t contexts) {
  if (contexts > 0 && (options.workers == 0 || options.workers == contexts)) return contexts;
  throw error(errc::invalid_argument,
              text(contexts, " contexts were given for ", options.workers,
                   " workers: give one for each worker, and thread_pool_options::workers 0 or their number"));
}

namespace {

void require_closed(const local_core& core) {
  if (core.is_closed()) return;
  throw error(errc::invalid_argument,
              "join() was called on a pool that still takes tasks: call close() or terminate() first");
}

// In a callback, those behind it go on meanwhile: tasks that run may wait for them.
void await_threads(local_core& core, std::chrono::nanoseconds grace) noexcept {
  const auto pause = callback_pause::if_possible();
  if (!core.wait_until_empty(deadline::after(grace))) core.terminate();
  core.join_threads();
  static_cast<void>(core.wait_until_empty(deadline::never()));  // what other threads run in place
}

// One of its own threads destroys the pool: inside of a task, or of what a task has captured. It cannot wait for
// itself, so another thread ends the pool. Where none can be started, the pool's threads end when they have run the
// tasks that there are, and its memory stays: they may still need it.
void end_after_task(const std::shared_ptr<local_core>& core, std::chrono::nanoseconds grace) noexcept {
  core->keep_itself(core);
  try {
    start_thread([core, grace] {
      await_threads(*core, grace);
      core->stop_callbacks();
      core->keep_itself(nullptr);
    }).detach();
  } catch (...) {
    core->log(log_level::error, "a pool of threads was destroyed by one of them, and there is no thread to end it");
  }
}

}  // namespace

void thread_host::close() { core()->close(); }

void thread_host::terminate() { core()->terminate(); }

thread_pool_statistics thread_host::stats() const { return core()->read_statistics(); }

thread_host::thread_host(const thread_pool_options& options, std::size_t threads,
                         const local_context_maker& make_context)
    : owner_(::getpid()),
      grace_(options.destructor_grace),
      core_(std::make_shared<local_core>(options, threads, make_context)) {}

thread_host::~thread_host() {
  if (::getpid() != owner_) {
    // A forked child has none of the threads: nothing here is its to undo.
    leave_to_parent(std::move(core_));
    return;
  }
  core_->close();
  if (core_->is_own_thread()) {
    end_after_task(core_, grace_);
    return;
  }
  await_threads(*core_, grace_);
  core_->stop_callbacks();
}

future<void> thread_host::started() const {
  auto is_ready = std::make_shared<local_state<void>>();
  is_ready->complete(outcome<void>::of_value());
  return future_access::of_source<void>(core(), std::move(is_ready));
}

bool thread_host::drain_until(deadline until) {
  close();
  const auto what_it_waits_for_may_be_behind_us = callback_pause::until(until);
  return core_->wait_until_empty(until);
}

future<void> thread_host::drain_async() {
  close();
  auto drained = std::make_shared<local_state<void>>();
  core_->when_empty([drained] { drained->complete(outcome<void>::of_value()); });
  return future_access::of_source<void>(core_, std::move(drained));
}

bool thread_host::join_until(deadline until) {
  require_closed(*core_);
  const auto what_it_waits_for_may_be_behind_us = callback_pause::until(until);
  return core()->wait_until_left(until);
}

std::vector<worker_info> thread_host::workers() const {
  const auto& of = *core();
  std::vector<worker_info> all(of.workers());
  for (std::size_t index = 0; index < all.size(); ++index) {
    const bool has_left = of.has_left(index);
    all[index] = {.index = index,
                  .pid = has_left ? 0 : ::getpid(),
                  .incarnation = 1,
                  .state = has_left ? worker_lifecycle::state::absent : worker_lifecycle::state::working};
  }
  return all;
}

}  // namespace muster::detail
