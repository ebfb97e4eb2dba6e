// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/pool/detail/context.hpp>
#include <muster/pool/detail/thread_engine.hpp>
#include <muster/pool/pool_calls.hpp>
#include <muster/pool/pool_submitter.hpp>

namespace muster {

/// The calls of pools of threads.
///
/// Thread safety: as pool_calls.
template <class Derived, class Adapter = detail::as_given>
using local_calls = pool_calls<Derived, detail::thread_engine, Adapter>;

/// What `with` and `on` of pools of threads return, and what their `collect_errors` does.
///
/// Thread safety: as pool_submitter.
template <class Adapter>
using local_submitter = pool_submitter<detail::thread_engine, Adapter>;
/// … with maps that give a result for every element.
template <class Adapter>
using collecting_local_submitter = pool_submitter<detail::thread_engine, Adapter, map_failures::collected>;

}  // namespace muster
