// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/core_access.hpp>

#include <utility>

#include <muster/pool/detail/pool_core.hpp>
#include <muster/pool/detail/task_source.hpp>

namespace muster::detail {

namespace {

struct reserved_task {
  std::shared_ptr<pool_core> core;  // outlives what borrows it
  dispatcher::reservation place;
};

}  // namespace

std::shared_ptr<future_home> home_of(const std::shared_ptr<pool_core>& core) noexcept { return core; }

void require_here(const pool_core& core) { core.require_here(); }

std::size_t worker_count(const pool_core& core) noexcept { return core.workers(); }

lane_route route_to(const pool_core& core, std::size_t worker) { return core.route_to(worker); }

arena& memory_of(pool_core& core) noexcept { return core.memory(); }

const std::shared_ptr<domain>& domain_of(const pool_core& core) noexcept { return core.shared(); }

token_encoder& functions_of(pool_core& core) noexcept { return core.functions(); }

void note_name(pool_core& core, function_token code, const std::type_info& callable) {
  if (core.names_functions()) core.name_function(code, callable);
}

// The record is the pool's.
held_source submit_task(const std::shared_ptr<pool_core>& core, function_token code, outgoing_frame frame,
                        const task_options& options, const task_terms& terms, lane_route route, admission admitted) {
  auto& record = core->submit(code, std::move(frame), options, terms, route, admitted);
  return {.home = core, .what = std::shared_ptr<void>(std::shared_ptr<void>(), &record)};
}

std::shared_ptr<void> reserve_task(const std::shared_ptr<pool_core>& core) {
  return std::make_shared<reserved_task>(reserved_task{.core = core, .place = core->tasks().reserve()});
}

}  // namespace muster::detail
