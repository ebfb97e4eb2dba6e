// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

#include <muster/memory/domain.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/dispatcher.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace bench {

/// The core without a pool: one board, one forked worker that sits in worker_end::run_next, one dispatcher.
class core_pair {
public:
  /// Binds the worker to the `processor`-th processor.
  explicit core_pair(std::size_t processor);
  core_pair(const core_pair&) = delete;
  core_pair& operator=(const core_pair&) = delete;
  ~core_pair();

  /// Posts an empty task, waits for it and takes its reply; `count` times.
  void run(std::size_t count);

private:
  [[noreturn]] void work(std::size_t processor);

  muster::domain domain_;
  muster::board board_;
  muster::token_encoder functions_;
  muster::dispatcher tasks_;
  muster::participant_id worker_id_;
  int worker_ = 0;
};

}  // namespace bench
