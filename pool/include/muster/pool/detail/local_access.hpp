// SPDX-License-Identifier: BSL-1.0
#pragma once

// What templates do with the core of a pool of threads, which is declared only (local_core.hpp says more of each).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <muster/async/detail/future_home.hpp>
#include <muster/pool/detail/lane_route.hpp>
#include <muster/pool/detail/local_job.hpp>

namespace muster::detail {

class local_core;
class stop_flag;

/// Makes the context of a worker.
using local_context_maker = std::function<std::shared_ptr<void>(std::size_t worker)>;

/// How a unit, which is a task or a map, was accepted.
enum class local_admission : std::uint8_t {
  with_place,     ///< its place under max_pending and its end are owed
  without_place,  ///< its end is owed
  overflow        ///< not at all: it is to fail with that
};

[[nodiscard]] std::shared_ptr<future_home> home_of(const std::shared_ptr<local_core>& core) noexcept;
/// Throws errc::forked in a forked child.
void require_here(const local_core& core);
[[nodiscard]] std::size_t worker_count(const local_core& core) noexcept;
[[nodiscard]] bool is_serial(const local_core& core) noexcept;
/// Throws errc::invalid_argument when there is no worker with that index.
[[nodiscard]] lane_route route_to(const local_core& core, std::size_t worker);
/// The worker that the calling thread is, if it is one of that pool and may run what has that route; else nullptr.
[[nodiscard]] local_worker* worker_here(const local_core& core, lane_route route = {}) noexcept;

/// Of the pool whose task the calling thread runs; nullptr where it is no thread of a pool. Throws
/// errc::invalid_argument in an initializer and the like.
[[nodiscard]] std::shared_ptr<local_core> core_of_this_task();

/// Throws errc::pool_closed, and errc::overflow as the policy says; `limited`: it needs a place under max_pending.
[[nodiscard]] local_admission begin_unit(local_core& core, bool limited);
void end_unit(local_core& core) noexcept;
[[nodiscard]] error_info overflow_error();
[[nodiscard]] error_info terminated_error() noexcept;
/// Whether jobs wait that the calling thread, which is `here`, might run next. Roughly.
[[nodiscard]] bool has_waiting(const local_core& core, const local_worker& here) noexcept;

/// While it exists that worker is at a task with that word to stop it.
///
/// Thread safety: belongs to the worker's thread.
class local_task_scope {
public:
  local_task_scope(local_worker& who, stop_flag& stop) noexcept;
  local_task_scope(const local_task_scope&) = delete;
  local_task_scope& operator=(const local_task_scope&) = delete;
  ~local_task_scope();

private:
  local_worker& who_;
  stop_flag* const outer_;
};

/// Requires: an accepted unit, to which the job belongs.
void post(local_core& core, std::shared_ptr<local_job> job, lane_route route);

}  // namespace muster::detail
