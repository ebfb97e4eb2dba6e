// SPDX-License-Identifier: BSL-1.0
#pragma once

// What templates do with the core of a pool of processes, which is declared only (pool_core.hpp says more of each).

#include <cstddef>
#include <memory>
#include <typeinfo>

#include <muster/async/detail/future_home.hpp>
#include <muster/pool/detail/lane_route.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/queue/detail/admission.hpp>
#include <muster/queue/detail/outgoing_frame.hpp>
#include <muster/queue/detail/task_terms.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster {

class domain;

namespace detail {

class pool_core;
struct held_source;

[[nodiscard]] std::shared_ptr<future_home> home_of(const std::shared_ptr<pool_core>& core) noexcept;
/// Throws errc::forked in a forked child.
void require_here(const pool_core& core);
[[nodiscard]] std::size_t worker_count(const pool_core& core) noexcept;
/// Throws errc::invalid_argument when there is no worker with that index.
[[nodiscard]] lane_route route_to(const pool_core& core, std::size_t worker);
[[nodiscard]] arena& memory_of(pool_core& core) noexcept;
[[nodiscard]] const std::shared_ptr<domain>& domain_of(const pool_core& core) noexcept;
[[nodiscard]] token_encoder& functions_of(pool_core& core) noexcept;
/// Says what code is called, by the type of the callable, while a trace is taken.
void note_name(pool_core& core, function_token code, const std::type_info& callable);

/// Accepts a single task for a future. `terms`: of `options`, as they were when the call began.
[[nodiscard]] held_source submit_task(const std::shared_ptr<pool_core>& core, function_token code, outgoing_frame frame,
                                      const task_options& options, const task_terms& terms, lane_route route,
                                      admission admitted);

/// Work that will submit tasks later, with admission::reserved: until it is given up the pool is not empty. Throws what
/// the pool was closed with.
[[nodiscard]] std::shared_ptr<void> reserve_task(const std::shared_ptr<pool_core>& core);

}  // namespace detail
}  // namespace muster
