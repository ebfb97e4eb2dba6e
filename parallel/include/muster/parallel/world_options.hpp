// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string>

#include <muster/base/detail/duration.hpp>
#include <muster/base/log.hpp>
#include <muster/pool/device_choice.hpp>
#include <muster/pool/output_choice.hpp>
#include <muster/pool/pinning.hpp>
#include <muster/pool/worker_task.hpp>

namespace muster {

/// What a world is made of. All have defaults; `muster::world w({.ranks = 4});`.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct world_options {
  /// How many compute, the caller among them if `caller_computes`; at most 256. 0: as many as this process may keep
  /// processors busy, or 256 if those are more. A variable takes up to 6 * ranks of the program's blocks and holds
  /// (domain_options::max_blocks), but 2 * ranks * (ranks + 1) if a function reduces into it, and 2 * (ranks + 1) more
  /// for each tensor that its rule remembers: of 2^20, which large arenas have, 64 ranks take all for 126 such
  /// variables. Then have more made, by domain::of_program before anything else, or one variable of several.
  unsigned ranks = 0;
  /// What they compute on: with devices, rank `r` on the `r`-th of them, in turn, and its functions get their tensors
  /// there (rank_context::device). Variables stay there between calls, and come to the host when they are asked for;
  /// what calls update is computed there, with the same bits as on processors. Each rank's process is pinned as
  /// pool_options::devices says; the program's own rank uses the device as the program numbers it. None: the
  /// processors. See docs/gpu.md.
  device_choice devices{};
  /// Which rank the caller is, if he computes. It is also whose value a broadcast gives to all by default, what
  /// reduced_into begins with where replicas differ, and what a function has that is run by local(); and so one of the
  /// ranks in any case.
  unsigned master_rank = 0;
  /// Whether the program itself computes a share, in the thread that calls. Otherwise all ranks are worker processes.
  bool caller_computes = true;
  /// Shown in logs, errors and ps.
  std::string name = "world";
  /// How long a call may take before it fails with errc::timed_out. The share of the program itself is not cut short.
  /// Starting a rank in the place of one that died is a part of it: what is not there in time goes on starting, and the
  /// next call waits for it. Waiting for another thread's call is none.
  std::chrono::nanoseconds call_timeout = std::chrono::nanoseconds::max();
  /// When a call fails, how long ranks that are in user code may take to come back before they are killed and replaced.
  std::chrono::nanoseconds grace = std::chrono::seconds(2);
  /// How long a rank's process may take to start, initializer included.
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(60);
  /// Run in every rank's process before it takes part, and in each that takes its place; not in the program's own.
  worker_task initializer{};
  /// Which processors the ranks' processes may run on: rank r gets list r of those that it makes. The program's own
  /// rank runs wherever the program does; the list that would be its own is left to it. By default nobody is bound.
  pinning pin{};
  /// What becomes of what they write to stdout and stderr. To a sink worker_output::worker is the rank, and
  /// worker_output::function the function that was called last when the line was read.
  output_choice output{};
  /// Receives the messages about the world and its processes.
  log_sink log = log_to_stderr;
};

}  // namespace muster
