// SPDX-License-Identifier: BSL-1.0
#include "worker_loop.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>

#include <muster/base/clock.hpp>
#include <muster/base/log.hpp>
#include <muster/base/own_device.hpp>
#include <muster/base/sanitizer.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/pool/detail/context.hpp>
#include <muster/pool/detail/local_worker.hpp>
#include <muster/pool/detail/process_call.hpp>
#include <muster/pool/detail/replacement.hpp>
#include <muster/pool/this_worker.hpp>
#include <muster/pool/worker_task.hpp>
#include <muster/queue/worker_end.hpp>

namespace muster {

namespace {

// Who this process is; written once, before any user code runs in it.
struct worker_self {
  int id = -1;
  std::uint32_t incarnation = 0;
  std::string pool_name;
  muster::device device{};
};

worker_self& self() {
  static worker_self instance;
  return instance;
}

void run_task(const detail::sent_worker_task& task, worker_environment& environment) {
  if (!task.some) return;
  auto& functions = environment.functions();
  auto* const thunk = functions.decode<detail::worker_task_thunk>(static_cast<function_token>(task.thunk));
  thunk(environment.shared().blocks().view(task.frame), functions);
}

void make_own_context(const detail::worker_settings& settings, worker_environment& environment) {
  if (settings.context_count == 0) return;
  const auto all = environment.shared().blocks().view(settings.contexts);
  const auto which = environment.who().index % settings.context_count;
  detail::sent_worker_task task;
  if (all.size() < (which + 1) * sizeof task) throw error(errc::corrupted, "the worker's context is not where it was");
  std::memcpy(&task, all.data() + which * sizeof task, sizeof task);
  run_task(task, environment);
}

// What a worker runs before it takes tasks; false, and said why, when that fails.
template <class Run>
bool prepare(worker_environment& environment, const char* what, Run run) {
  try {
    run();
    detail::replacement::of_this_process().require_none();
    return true;
  } catch (...) {
    auto why = capture_current_exception();
    environment.report_failure(error_info(errc::start_failed, text(what, " failed: ", why.describe())));
    return false;
  }
}

// A full device is no reason not to start: its tasks may not need it, and those that do say what is wrong.
void open_own_device() {
  if (self().device.is_cpu()) return;
  try {
    detail::own_device::open();
  } catch (const error& failure) {
    if (failure.code() != errc::out_of_memory) throw;
  }
}

// Of who has stood by: while its predecessor was at work the device had no room to spare for two. What is wrong with
// it, its first task says.
void open_own_device_late() noexcept {
  try {
    open_own_device();
  } catch (const std::exception& problem) {
    log_to_stderr(log_level::warning, text("worker ", self().id, " of '", self().pool_name, "' (process ", ::getpid(),
                                           ") could not open ", self().device, ": ", problem.what()));
  }
}

std::string opening_of(const worker_environment::identity& worker) {
  return text("opening ", worker.device, ", which is cuda:0 for the worker,");
}

void become(const worker_environment::identity& worker) {
  self() = {.id = static_cast<int>(worker.index),
            .incarnation = worker.incarnation,
            .pool_name = worker.crew_name,
            .device = worker.device};
}

// Without mappings of their own, large pieces come from the heap, whose end is given back above the threshold only.
void keep_heap(std::uint64_t bytes) {
#if defined(__GLIBC__)
  if (bytes == 0) return;
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(std::min<std::uint64_t>(bytes, INT_MAX)));
#endif
}

// As the kernel counts what a process could write to and nobody else sees.
void limit_memory(std::uint64_t bytes) {
  if (is_sanitized || bytes == 0) return;
  rlimit limit{};
  const auto get = [](rlimit* where) { return ::getrlimit(RLIMIT_DATA, where); };
  const auto set = [](const rlimit* where) { return ::setrlimit(RLIMIT_DATA, where); };
  system_call("getrlimit RLIMIT_DATA", get, &limit);
  limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_max);
  limit.rlim_max = limit.rlim_cur;
  system_call("setrlimit RLIMIT_DATA", set, static_cast<const rlimit*>(&limit));
}

std::uint64_t less_by_chance(std::uint64_t count, double part) {
  if (count == 0 || part <= 0) return count;
  std::random_device entropy;
  const auto less = std::uniform_real_distribution<double>(0, part)(entropy) * static_cast<double>(count);
  return std::max<std::uint64_t>(1, count - static_cast<std::uint64_t>(less));
}

/// Whether this process has more memory of its own in use than it may.
///
/// Thread safety: belongs to one thread.
class memory_watch {
public:
  explicit memory_watch(std::uint64_t most_bytes) : most_bytes_(most_bytes) {
    if (most_bytes == 0) return;
    const auto open = [](const char* name) { return ::open(name, O_RDONLY | O_CLOEXEC); };
    statm_ = unique_fd(system_call("open", open, "/proc/self/statm"));
  }

  [[nodiscard]] bool is_too_much() {
    constexpr auto interval = std::chrono::milliseconds(50);
    if (most_bytes_ == 0) return false;
    const auto now = clock::now();
    if (now < next_look_) return false;
    next_look_ = now + interval;
    return own_bytes() > most_bytes_;
  }

private:
  // Resident, without what belongs to files or is shared.
  [[nodiscard]] std::uint64_t own_bytes() const {
    std::array<char, 128> room{};
    const auto length = ::pread(statm_.get(), room.data(), room.size() - 1, 0);
    if (length <= 0) return 0;  // somebody has closed it: nobody knows
    std::uint64_t size = 0;
    std::uint64_t resident = 0;
    std::uint64_t shared = 0;
    detail::text_reader(std::string(room.data(), static_cast<std::size_t>(length))) >> size >> resident >> shared;
    return resident > shared ? (resident - shared) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
  }

  const std::uint64_t most_bytes_;
  unique_fd statm_;
  clock::time_point next_look_{};
};

void run_finalizer(const detail::sent_worker_task& task, worker_environment& environment) {
  try {
    run_task(task, environment);
  } catch (...) {
    log_to_stderr(log_level::error, text("the finalizer of worker ", self().id, " of '", self().pool_name, '\'',
                                         self().device.is_cpu() ? "" : text(" on ", self().device), " (process ",
                                         ::getpid(), ") failed: ", capture_current_exception().describe()));
  }
}

// The successor gets an eighth of this worker's life to start.
std::uint64_t tasks_until_soon(std::uint64_t max_tasks) { return max_tasks - std::min(max_tasks, max_tasks / 8 + 1); }

void run_tasks(const detail::worker_settings& settings, worker_environment& environment) {
  const auto max_tasks = less_by_chance(settings.max_tasks, settings.tasks_jitter);
  worker_end end(environment.tasks(), environment.shared().blocks(), environment.functions(),
                 {.index = environment.who().index,
                  .bell = environment.parents_bells().supervisor,
                  .loop_bell = environment.parents_bells().loop,
                  .max_tasks = max_tasks,
                  .device = self().device,
                  .unfit = &detail::replacement::of_this_process().is_due(),
                  .note_failed_task = &detail::note_failed_task});
  auto soon = settings.early_successors != 0 ? tasks_until_soon(max_tasks) : 0;
  memory_watch memory(settings.max_rss);
  bool too_much = false;
  while (end.run_next()) {
    if (soon != 0 && end.finished() >= soon && end.finished() < max_tasks) {
      environment.report_soon();
      soon = 0;
    }
    if (too_much || !memory.is_too_much()) continue;
    too_much = true;
    environment.report_memory();
  }
}

}  // namespace

int this_worker::id() noexcept {
  const auto* const thread = detail::local_worker::current();
  return thread != nullptr ? thread->id : self().id;
}

std::uint32_t this_worker::incarnation() noexcept {
  return detail::local_worker::current() != nullptr ? 1 : self().incarnation;
}

const std::string& this_worker::pool_name() noexcept {
  const auto* const thread = detail::local_worker::current();
  return thread != nullptr ? *thread->pool_name : self().pool_name;
}

device this_worker::device() noexcept { return self().device; }

int detail::run_process(worker_environment& environment) {
  const auto& who = environment.who();
  become(who);
  if (!prepare(environment, opening_of(who).c_str(), open_own_device)) return EXIT_FAILURE;
  if (!environment.report_ready()) return EXIT_FAILURE;
  worker_end end(environment.tasks(), environment.shared().blocks(), environment.functions(),
                 {.index = who.index, .bell = environment.parents_bells().supervisor, .max_tasks = 1});
  while (end.run_next()) continue;
  return function_has_returned() ? EXIT_SUCCESS : EXIT_FAILURE;
}

bool& detail::function_has_returned() noexcept {
  static bool has_returned = false;  // of the process: it has one function
  return has_returned;
}

int detail::run_pool_worker(worker_environment& environment) {
  const auto& who = environment.who();
  become(who);
  worker_settings settings;
  if (who.payload.size() != sizeof settings) throw error(errc::corrupted, "the worker's settings have the wrong size");
  std::memcpy(&settings, who.payload.data(), sizeof settings);
  limit_memory(settings.memory_limit);
  keep_heap(settings.heap_bytes);
  auto& unfit = replacement::of_this_process();
  unfit.prepare();
  const bool ready =
      (who.stands_by || prepare(environment, opening_of(who).c_str(), open_own_device)) &&
      prepare(environment, "the initializer", [&] { run_task(settings.initializer, environment); }) &&
      prepare(environment, "making the worker's context", [&] { make_own_context(settings, environment); });
  if (!ready) return EXIT_FAILURE;
  if (environment.report_ready()) {
    if (who.stands_by) open_own_device_late();
    unfit.serve(environment);
    run_tasks(settings, environment);
    unfit.leave();
  }
  run_finalizer(settings.finalizer, environment);
  set_process_context(nullptr);
  return EXIT_SUCCESS;
}

}  // namespace muster
