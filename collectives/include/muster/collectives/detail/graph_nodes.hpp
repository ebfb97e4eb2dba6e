// SPDX-License-Identifier: BSL-1.0
#pragma once

// What users have said of a graph. Everything is found by name and kept in the order of the names, so that nothing can
// depend on the order in which it was said.

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <muster/collectives/detail/graph_call.hpp>
#include <muster/collectives/graph_form.hpp>
#include <muster/collectives/graph_schedule.hpp>

namespace muster::detail {

enum class graph_node_kind : std::uint8_t { input, state, compute, receive };

/// A value of one rank, and where it comes from.
struct graph_node {
  graph_node_kind kind = graph_node_kind::input;
  std::optional<graph_form> form;   // not known: that of the sender, or of what is written in place
  std::optional<tensor> content;    // input, state: as given when the graph was made
  std::vector<std::string> inputs;  // compute
  std::string in_place;             // compute
  graph_call call;                  // compute
  int from = 0;                     // receive
  int tag = 0;                      // receive
};

struct graph_destination {
  int tag = 0;
  int to = 0;
  auto operator<=>(const graph_destination&) const = default;
};

/// Of one rank.
struct graph_rank_nodes {
  std::map<std::string, graph_node, std::less<>> values;
  std::map<graph_destination, std::string> sends;           // where to, and which value
  std::map<std::string, std::string, std::less<>> updates;  // which state, and its next value
};

using graph_nodes = std::map<int, graph_rank_nodes>;

/// The same with every form known. Throws errc::invalid_argument, saying what and where, for names of nothing, for
/// messages without another end or with ends that differ, and for what may not be written in place or updated.
/// What the other end of a message is like is known when its rank has anything.
[[nodiscard]] graph_nodes checked(graph_nodes given);

/// The steps of checked nodes, in order. Throws errc::invalid_argument for nodes that need each other in a circle, with
/// the circle.
[[nodiscard]] graph_schedule schedule_of(const graph_nodes& checked);

}  // namespace muster::detail
