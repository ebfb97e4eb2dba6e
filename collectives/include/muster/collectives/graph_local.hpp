// SPDX-License-Identifier: BSL-1.0
#pragma once

// All ranks of a graph in one process: messages are copies from one rank's memory to another's.

#include <memory>
#include <utility>
#include <vector>

#include <muster/collectives/graph.hpp>
#include <muster/collectives/graph_link.hpp>
#include <muster/collectives/graph_plan.hpp>

namespace muster {

namespace detail {
class graph_exchange;
}  // namespace detail

/// Links between ranks of one process, each in a thread of its own or several in one.
///
/// Whoever comes second, sender or receiver, copies; so a send ends when it has been received.
///
/// Thread safety: distinct objects: safe. Shared objects: the links of different ranks may be used at once, one by one
/// thread each.
/// Process safety: for one process. Nothing of it is shared.
/// Cost: per message one copy, under a lock that all ranks share; a system call if somebody sleeps.
class local_graph_links {
public:
  /// For ranks 0 to ranks - 1. Throws errc::invalid_argument for less than one.
  explicit local_graph_links(int ranks);
  local_graph_links(const local_graph_links&) = delete;
  local_graph_links& operator=(const local_graph_links&) = delete;
  ~local_graph_links();

  /// Throws errc::invalid_argument for a rank that is not there.
  [[nodiscard]] graph_link& operator[](int rank);

private:
  std::unique_ptr<detail::graph_exchange> exchange_;
  std::vector<std::unique_ptr<graph_link>> links_;
};

/// A graph whose ranks all run in the calling thread, in turns: each goes on until it would have to wait.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class local_graph {
public:
  /// Throws as graph::plan does, and errc::invalid_argument for a message to or from a rank without nodes.
  explicit local_graph(const graph& what);

  /// The plan of a rank, to set and read values. Throws errc::invalid_argument for a rank without nodes.
  [[nodiscard]] graph_plan& operator[](int rank);
  /// Returns the plans of all ranks, ascending; of an rvalue, moved out of it.
  ///@{
  [[nodiscard]] const std::vector<graph_plan>& plans() const& noexcept { return plans_; }
  [[nodiscard]] std::vector<graph_plan> plans() && noexcept { return std::move(plans_); }
  ///@}

  /// Runs all ranks to their ends. Throws as graph_plan::run does.
  void run();

private:
  std::vector<graph_plan> plans_;
  local_graph_links links_;
  std::vector<bool> ended_;
};

}  // namespace muster
