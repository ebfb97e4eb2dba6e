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
  bool needs_python = false;
};

/// One call and its answer.
[[nodiscard]] std::vector<workload> round_trips();
/// Many calls.
[[nodiscard]] std::vector<workload> throughputs();
/// Starting and dying.
[[nodiscard]] std::vector<workload> lifetimes();
/// Memory, allocations, and what is used while there is nothing to do.
[[nodiscard]] std::vector<workload> costs();

// Ours on the first processor, the other side of it on the second.
inline constexpr std::size_t caller = 0;
inline constexpr std::size_t callee = 1;

/// A pool of one worker, bound to the callee's processor; the calling thread is bound to the caller's.
class bound_pool {
public:
  explicit bound_pool(const muster::pool_options& options = {.workers = 1}) : pool_(options) {
    pin(pool_.workers().front().pid, callee);
    pin(0, caller);
  }
  [[nodiscard]] const muster::pool& operator*() const { return pool_; }
  [[nodiscard]] const muster::pool* operator->() const { return &pool_; }

private:
  muster::pool pool_;
};

}  // namespace bench
