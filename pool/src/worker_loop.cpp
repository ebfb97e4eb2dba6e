// SPDX-License-Identifier: BSL-1.0
#include "worker_loop.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>

#include <muster/base/log.hpp>
#include <muster/base/text.hpp>
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

// Without mappings of their own, large pieces come from the heap, whose end is given back above the threshold only.
void keep_heap(std::uint64_t bytes) {
#if defined(__GLIBC__)
  if (bytes == 0) return;
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(std::min<std::uint64_t>(bytes, INT_MAX)));
#endif
}

void run_finalizer(const detail::sent_worker_task& task, worker_environment& environment) {
  try {
    run_task(task, environment);
  } catch (...) {
    log_to_stderr(log_level::error,
                  text("the finalizer of worker ", self().id, " of '", self().pool_name, "' (process ", ::getpid(),
                       ") failed: ", capture_current_exception().describe()));
  }
}

}  // namespace

int this_worker::id() noexcept { return self().id; }
std::uint32_t this_worker::incarnation() noexcept { return self().incarnation; }
const std::string& this_worker::pool_name() noexcept { return self().pool_name; }

int detail::run_pool_worker(worker_environment& environment) {
  const auto& who = environment.who();
  self() = {.id = static_cast<int>(who.index), .incarnation = who.incarnation, .pool_name = who.crew_name};
  worker_settings settings;
  if (who.payload.size() != sizeof settings) throw error(errc::corrupted, "the worker's settings have the wrong size");
  std::memcpy(&settings, who.payload.data(), sizeof settings);
  keep_heap(settings.heap_bytes);
  try {
    run_task(settings.initializer, environment);
  } catch (...) {
    auto why = capture_current_exception();
    environment.report_failure(error_info(errc::start_failed, "the initializer failed: " + why.describe()));
    return EXIT_FAILURE;
  }
  environment.report_ready();
  worker_end end(environment.tasks(), environment.shared().blocks(), environment.functions(),
                 {.index = who.index, .bell = environment.bell(), .max_tasks = settings.max_tasks});
  while (end.run_next()) continue;
  run_finalizer(settings.finalizer, environment);
  return EXIT_SUCCESS;
}

}  // namespace muster
