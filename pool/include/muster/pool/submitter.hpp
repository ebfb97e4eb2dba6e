// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/pool/detail/context.hpp>
#include <muster/pool/detail/process_engine.hpp>
#include <muster/pool/pool_submitter.hpp>
#include <muster/pool/submit_calls.hpp>

namespace muster {

/// What `with` and `on` of pools of processes return, and what their `collect_errors` does.
///
/// Thread safety: as pool_submitter.
///@{
template <class Adapter>
using basic_submitter = pool_submitter<detail::process_engine, Adapter>;
template <class Adapter>
using basic_collecting_submitter = pool_submitter<detail::process_engine, Adapter, map_failures::collected>;
///@}

/// Those of pools without contexts.
///@{
using submitter = basic_submitter<detail::as_given>;
using collecting_submitter = basic_collecting_submitter<detail::as_given>;
///@}

}  // namespace muster
