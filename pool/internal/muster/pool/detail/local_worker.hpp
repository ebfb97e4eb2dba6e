// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <stop_token>
#include <string>

#include <muster/pool/detail/stop_flag.hpp>

namespace muster::detail {

class local_core;

/// A thread of this process as a worker: what a task that runs in it may ask.
///
/// Thread safety: an object belongs to its thread, but for what its pointers lead to.
struct local_worker {
  local_core* core = nullptr;
  int id = -1;
  const std::string* pool_name = nullptr;
  void* context = nullptr;
  stop_flag* task_stop = nullptr;  ///< of the task at hand; nullptr: between two
  stop_flag* pool_stop = nullptr;

  /// Whether it is at a task: not so in an initializer, a finalizer, or a context's beginning and end.
  [[nodiscard]] bool is_at_task() const noexcept { return task_stop != nullptr; }
  /// Throws errc::invalid_argument when it is at none.
  void require_task() const;
  [[nodiscard]] bool stop_requested() const noexcept {
    return (task_stop != nullptr && task_stop->is_requested()) || (pool_stop != nullptr && pool_stop->is_requested());
  }
  [[nodiscard]] std::stop_token stop_token() const {
    if (task_stop == nullptr) return {};
    return task_stop->token(pool_stop != nullptr ? pool_stop->token() : std::stop_token());
  }

  /// The worker that the calling thread is; nullptr outside of pools of threads.
  [[nodiscard]] static local_worker* current() noexcept;

  /// While it exists the calling thread is that worker.
  class scope {
  public:
    explicit scope(local_worker& who) noexcept;
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope();

  private:
    local_worker* const outer_;
  };

  /// While it exists the worker is at a task with that word to stop it; tasks may run inside of one another.
  class task_scope {
  public:
    task_scope(local_worker& who, stop_flag& stop) noexcept : who_(who), outer_(who.task_stop) {
      who_.task_stop = &stop;
    }
    task_scope(const task_scope&) = delete;
    task_scope& operator=(const task_scope&) = delete;
    ~task_scope() { who_.task_stop = outer_; }

  private:
    local_worker& who_;
    stop_flag* const outer_;
  };
};

}  // namespace muster::detail
