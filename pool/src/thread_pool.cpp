// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/thread_pool.hpp>

#include <unistd.h>

#include <muster/base/effective_cpus.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>

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

void require_closed(const local_core& core) {
  if (core.is_closed()) return;
  throw error(errc::invalid_argument,
              "join() was called on a pool that still takes tasks: call close() or terminate() first");
}

pid_t this_process() noexcept { return ::getpid(); }

std::vector<worker_info> threads_of(const local_core& core) {
  std::vector<worker_info> all(core.workers());
  for (std::size_t index = 0; index < all.size(); ++index) {
    const bool has_left = core.has_left(index);
    all[index] = {.index = index,
                  .pid = has_left ? 0 : ::getpid(),
                  .incarnation = 1,
                  .state = has_left ? worker_lifecycle::state::absent : worker_lifecycle::state::working};
  }
  return all;
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

void end_threads(std::shared_ptr<local_core>& core, pid_t owner, std::chrono::nanoseconds grace) noexcept {
  if (::getpid() != owner) {
    // A forked child has none of the threads: nothing here is its to undo.
    leave_to_parent(std::move(core));
    return;
  }
  core->close();
  if (core->is_own_thread()) return end_after_task(core, grace);
  await_threads(*core, grace);
  core->stop_callbacks();
}

}  // namespace muster::detail
