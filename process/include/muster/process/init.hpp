// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/base/requirements.hpp>

namespace muster {

/// Must be the first thing that main() does.
///
/// Worker processes are this same program, executed anew: in a worker this call runs the worker and never returns, so
/// nothing after it happens there; in the program itself it only notes that it was called. A pool made without it
/// throws errc::not_initialized.
/// The mark by which a worker is known is an environment variable together with a socket that only its parent can have
/// prepared; it is removed at once, so a program that a task executes does not take itself for a worker. In a program
/// that has more rights than who started it (set-user-ID and the like) the mark means nothing, and pools throw
/// errc::not_initialized. A worker that the kernel gives such rights, because the program has given up only its
/// effective user or group, ends in this call, and the error of its start says so.
/// What stands before it runs in every worker as well. If threads have been started by then, a warning on stderr says
/// so. Thread safety: call it once, before other threads are started.
void init(int argc, char** argv);

namespace detail {

/// Throws errc::not_initialized with what to do, unless init() was called in this process.
void require_init();

}  // namespace detail

}  // namespace muster
