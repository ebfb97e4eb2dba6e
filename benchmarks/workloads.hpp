// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <muster/pool/pool.hpp>

#include "comparison.hpp"

namespace bench {

/// One row of bench.json.
struct workload {
  std::string name;
  std::function<row(const effort&)> run;
  bool needs_two_processors = true;  ///< to spin on
  std::string needs_module = {};     ///< of Python
  bool needs_mpi = false;
  std::function<std::string()> hindrance = {};  ///< why it cannot be measured here; empty where it can
};

/// One call and its answer.
[[nodiscard]] std::vector<workload> round_trips();
/// One call and its answer, in bursts, unbound, beside what else runs.
[[nodiscard]] std::vector<workload> bursts();
/// Many calls.
[[nodiscard]] std::vector<workload> throughputs();
/// On a loop of Boost.Asio's, and what a trace costs.
[[nodiscard]] std::vector<workload> loops();
/// Making what is made often.
[[nodiscard]] std::vector<workload> makings();
/// Starting and dying.
[[nodiscard]] std::vector<workload> lifetimes();
/// Tensors by reference, and their memory.
[[nodiscard]] std::vector<workload> tensors();
/// Queues between processes.
[[nodiscard]] std::vector<workload> queues();
/// Graphs of computation and communication.
[[nodiscard]] std::vector<workload> graphs();
/// What ranks do together, and messages between them.
[[nodiscard]] std::vector<workload> collectives();
/// Data-parallel calls.
[[nodiscard]] std::vector<workload> worlds();
/// Members of RPC groups.
[[nodiscard]] std::vector<workload> rpc_calls();
/// The versioned store.
[[nodiscard]] std::vector<workload> stores();
/// Servers whose requests are tasks.
[[nodiscard]] std::vector<workload> services();
/// Compiling a program that includes muster.
[[nodiscard]] std::vector<workload> compiling();
/// Memory, allocations, and what is used while there is nothing to do.
[[nodiscard]] std::vector<workload> costs();

// Ours on the first processor, the other side of it on the second.
inline constexpr std::size_t caller = 0;
inline constexpr std::size_t callee = 1;

/// What starting a process and waiting for its end costs: posix_spawn of /bin/true.
[[nodiscard]] side spawning_peer();

/// A pool of one worker, bound to the callee's processor; the calling thread is bound to the caller's, afterwards: a
/// pool looks at the processors that its maker may use.
class bound_pool {
public:
  explicit bound_pool(const muster::pool_options& options = {.workers = 1}) : pool_(unbound(options)) { bind(); }
  explicit bound_pool(boost::asio::io_context& loop) : pool_(loop, unbound({.workers = 1})) { bind(); }
  [[nodiscard]] const muster::pool& operator*() const { return pool_; }
  [[nodiscard]] const muster::pool* operator->() const { return &pool_; }
  [[nodiscard]] muster::pool* operator->() { return &pool_; }

private:
  static muster::pool_options unbound(const muster::pool_options& options) {
    unpin();
    return options;
  }

  void bind() const {
    pin(pool_.workers().front().pid, callee);
    pin(0, caller);
  }

  muster::pool pool_;
};

}  // namespace bench
