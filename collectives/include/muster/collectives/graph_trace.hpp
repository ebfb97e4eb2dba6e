// SPDX-License-Identifier: BSL-1.0
#pragma once

// Where the time of a graph's runs went.
//
// Thread safety: all functions are safe to call from any thread, while none of the plans runs.

#include <iosfwd>
#include <span>
#include <string>

#include <muster/collectives/graph_plan.hpp>

namespace muster {

/// For people: the mean time of every step over all runs, in microseconds, and at the end how much of a run is exposed
/// communication, which is time spent in waits.
void print_times(std::ostream& out, const graph_plan& plan);

/// The last run of each plan as a file that Perfetto and chrome://tracing open: a row for each rank, an arrow for each
/// message. Times are those of `muster::clock`, so that files of several processes of a machine can be laid side by
/// side.
[[nodiscard]] std::string trace_of(std::span<const graph_plan> plans);

}  // namespace muster
