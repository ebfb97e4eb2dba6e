// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <muster/memory/block.hpp>
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
  std::uint64_t max_tasks = 0;
  std::uint64_t heap_bytes = 0;
};

/// The entry of a pool's workers.
int run_pool_worker(worker_environment& environment);

}  // namespace muster::detail
