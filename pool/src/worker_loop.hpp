// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <muster/memory/detail/block.hpp>
#include <muster/process/worker_environment.hpp>

namespace muster::detail {

/// A worker_task as sent: token of its thunk, and the block with its frame, which the pool keeps.
struct sent_worker_task {
  std::uint64_t thunk = 0;  // function_token; meaningful only where there is one
  block_ref frame;
  bool some = false;
};

/// crew_options::payload of a pool.
struct worker_settings {
  sent_worker_task initializer;
  sent_worker_task finalizer;
  block_ref contexts;               // of so many sent_worker_task: one for all, or one each
  std::uint64_t context_count = 0;  // 0: workers have no context
  std::uint64_t max_tasks = 0;
  double tasks_jitter = 0;
  std::uint64_t heap_bytes = 0;
  std::uint64_t max_rss = 0;       // 0: any
  std::uint64_t memory_limit = 0;  // 0: none
  std::uint64_t early_successors = 0;
};

/// The entry of a pool's workers.
int run_pool_worker(worker_environment& environment);

/// The entry of muster::process: runs one task, and exits with 0 if its function has returned.
int run_process(worker_environment& environment);

}  // namespace muster::detail
