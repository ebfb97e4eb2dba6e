// SPDX-License-Identifier: BSL-1.0
#pragma once

// In which order the ranks of a graph do what, before anything is done.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include <muster/collectives/graph_form.hpp>

namespace muster {

/// What a step does. Of a message each end has two: a start, which takes no time, and a wait.
enum class graph_step_kind : std::uint8_t {
  send,           ///< starts to send
  receive,        ///< starts to receive
  compute,        ///< calls a function
  wait_sent,      ///< waits until what is sent may be written again
  wait_received,  ///< waits until what is received can be read
  update,         ///< gives a state its content for the next run
};

/// One thing that a rank does.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct graph_step {
  graph_step_kind kind = graph_step_kind::compute;  ///< what it does
  int rank = 0;                                     ///< that does it
  std::string node{};                               ///< the value that is sent, received, computed or updated
  std::vector<std::string> inputs{};                ///< compute: the values it takes; update: the one it takes
  std::string in_place{};                           ///< compute: the value whose memory it writes, or empty
  int peer = -1;                                    ///< of a message: the rank at the other end
  int tag = -1;                                     ///< of a message
  graph_form form{};                                ///< of the value

  /// Whether it is the time that others take which passes in it.
  [[nodiscard]] bool waits() const noexcept {
    return kind == graph_step_kind::wait_sent || kind == graph_step_kind::wait_received;
  }
};

/// As in `send "H" to rank 1, tag 1` and `compute "A" of "Sigma", "H.T"`; the rank itself is not said.
std::ostream& operator<<(std::ostream& out, const graph_step& step);

/// The steps of all ranks of a graph, as graph::schedule() ordered them (docs/design/graph.md).
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class graph_schedule {
public:
  /// For graph::schedule(), which puts the steps into this order.
  explicit graph_schedule(std::vector<graph_step> steps) : steps_(std::move(steps)) {}

  /// Of all ranks, in an order in which one thread could do them all: no wait comes before what it waits for has begun,
  /// but waits at the end of a rank, for which nothing waits.
  [[nodiscard]] const std::vector<graph_step>& steps() const noexcept { return steps_; }
  /// Of one rank, in the order in which it does them.
  [[nodiscard]] std::vector<graph_step> of(int rank) const;
  /// Those that have steps, ascending.
  [[nodiscard]] std::vector<int> ranks() const;

  /// For people: a heading for each rank, and a numbered line for each of its steps.
  void print(std::ostream& out) const;
  /// For Graphviz: the values with the numbers of their steps, a box for each rank, messages as dashed arrows.
  [[nodiscard]] std::string to_dot() const;

private:
  std::vector<graph_step> steps_;
};

}  // namespace muster
