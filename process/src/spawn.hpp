// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <span>
#include <string>
#include <string_view>

#include <muster/base/unique_fd.hpp>

#include "environment_copy.hpp"
#include "program_state.hpp"

namespace muster::detail {

/// Where a worker finds its control socket. Besides it, stdout and stderr, it inherits nothing.
inline constexpr int control_descriptor = 3;

/// The environment variable that says so, with a number that the greeting on the socket repeats.
inline constexpr const char* worker_variable = "MUSTER_WORKER";

/// Signals by which people, shells and service managers end programs, often whole groups of processes at once.
inline constexpr std::array ending_signals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

struct child {
  pid_t pid = 0;
  unique_fd process;  // pidfd
};

struct spawn_request {
  std::string program;
  std::span<const std::string> arguments{};  // in front of the label; borrowed
  std::string label;                         // shows up in ps
  std::string worker_mark;                   // value of worker_variable
  const environment_copy& environment;
  const program_state& state;
  std::span<const std::string> own_environment{};  // `NAME=value`, in the place of what that has; borrowed
  unsigned threads_each = 1;                       // for OMP_NUM_THREADS and its like, where they are not set
  int control = -1;                                // borrowed, as these; above the standard three
  int out = -1;                                    // its stdout; -1: as ours
  int err = -1;
  bool own_group = true;  // it leads a process group; else it is in ours
};

/// Starts a worker: exec, never fork alone, so that it costs the same for a parent of any size and is safe beside
/// threads and CUDA. Signal dispositions are the defaults; ending_signals, and those that are left to the program, are
/// blocked until the worker has been told what they are to it, so that Ctrl-C never hits it.
/// Throws muster::error: ENOENT, EAGAIN, ENOMEM, EMFILE, as posix_spawn says.
[[nodiscard]] child spawn_worker(const spawn_request& request);

}  // namespace muster::detail
