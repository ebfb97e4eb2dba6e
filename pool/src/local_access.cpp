// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/local_access.hpp>

#include <utility>

#include <muster/pool/detail/local_core.hpp>

namespace muster::detail {

std::shared_ptr<future_home> home_of(const std::shared_ptr<local_core>& core) noexcept { return core; }

void require_here(const local_core& core) { core.require_here(); }

std::size_t worker_count(const local_core& core) noexcept { return core.workers(); }

bool is_serial(const local_core& core) noexcept { return core.is_serial(); }

lane_route route_to(const local_core& core, std::size_t worker) { return core.route_to(worker); }

local_worker* worker_here(const local_core& core, lane_route route) noexcept { return core.inside(route); }

std::shared_ptr<local_core> core_of_this_task() {
  const auto* const thread = local_worker::current();
  if (thread == nullptr) return nullptr;
  thread->require_task();
  return thread->core->shared_from_this();
}

local_admission begin_unit(local_core& core, bool limited) { return core.begin_unit(limited); }

void end_unit(local_core& core) noexcept { core.end_unit(); }

error_info overflow_error() { return local_core::overflow_error(); }

error_info terminated_error() noexcept { return local_core::terminated_error(); }

bool has_waiting(const local_core& core, const local_worker& here) noexcept { return core.has_waiting(here); }

local_task_scope::local_task_scope(local_worker& who, stop_flag& stop) noexcept
    : who_(who), outer_(std::exchange(who.task_stop, &stop)) {}

local_task_scope::~local_task_scope() { who_.task_stop = outer_; }

void post(local_core& core, std::shared_ptr<local_job> job, lane_route route) { core.post(std::move(job), route); }

}  // namespace muster::detail
