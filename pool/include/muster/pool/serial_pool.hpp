// SPDX-License-Identifier: BSL-1.0
#pragma once

// A pool without workers, for debugging.

#include <muster/pool/thread_pool.hpp>

namespace muster {

/// Runs everything in the calling thread at the moment when it is submitted: futures are ready, streams work out each
/// element when it is wanted, and a debugger sees the caller below the task. The calls are those of every pool, so it
/// takes the place of one to find out whether a fault has to do with threads or processes at all.
///
/// A task sees itself as worker 0; on(0) is the only worker. Callbacks run on a thread of their own, as in all pools.
/// Thread safety: distinct objects: safe. Shared objects: safe; tasks of several callers run at once.
class serial_pool : public basic_thread_pool<detail::as_given> {
public:
  /// `options.workers`, initializer and finalizer are not used.
  explicit serial_pool(const thread_pool_options& options = {.name = "serial"}) : basic_thread_pool(options, 0) {}
};

}  // namespace muster
