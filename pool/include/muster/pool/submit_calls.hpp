// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/pool/detail/context.hpp>
#include <muster/pool/detail/process_engine.hpp>
#include <muster/pool/pool_calls.hpp>

namespace muster {

/// The calls of pools of processes.
///
/// Thread safety: as pool_calls.
template <class Derived, class Adapter = detail::as_given>
using submit_calls = pool_calls<Derived, detail::process_engine, Adapter>;

}  // namespace muster
