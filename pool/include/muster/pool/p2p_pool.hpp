// SPDX-License-Identifier: BSL-1.0
#pragma once

// A pool that deals its tasks out to its workers in turn.
//
//     muster::p2p_pool pool({.workers = 4});
//     pool.map(render, pages);  // chunks go to workers 0, 1, 2, 3, 0, …

#include <muster/pool/pool.hpp>

namespace muster {

/// A pool whose tasks, and chunks of maps and streams, go to its workers in turn, each to a queue of its own, where a
/// `pool` gives them to whichever worker is free. For tasks of equal length that find something of theirs in the
/// worker; elsewhere a `pool` is faster, because nobody waits there behind a long task while others are idle.
///
/// What waits for a worker that dies waits for the one that takes its place; so nothing is lost with it but the task at
/// which it died, as in any pool. `on(worker)` names the worker instead. Calls that tasks make themselves
/// (this_pool.hpp) go to whichever worker is free.
/// Thread safety and process safety: as `pool`.
class p2p_pool : public pool {
public:
  /// As pool's constructors.
  ///@{
  explicit p2p_pool(const pool_options& options = {}) : pool(detail::lane_route::in_turn(), options) {}
  explicit p2p_pool(boost::asio::io_context& loop, const pool_options& options = {})
      : pool(detail::lane_route::in_turn(), options, &loop) {}
  ///@}
};

}  // namespace muster
