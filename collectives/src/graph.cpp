// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/graph.hpp>

#include <algorithm>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

using detail::graph_node;
using detail::graph_node_kind;

template <class... Parts>
[[noreturn]] void refuse(int rank, const Parts&... parts) {
  throw error(errc::invalid_argument, text("graph, rank ", rank, ": ", parts...));
}

graph_node node_of(graph_node_kind kind, const graph_form& form) {
  graph_node node;
  node.kind = kind;
  node.form = form;
  return node;
}

}  // namespace

// ---- the graph

graph_rank graph::on(int rank) {
  if (rank < 0) refuse(rank, "ranks are numbers from 0 on");
  return {nodes_, rank};
}

graph_schedule graph::schedule() const { return detail::schedule_of(detail::checked(nodes_)); }

graph_plan graph::plan(int rank) const {
  const auto nodes = detail::checked(nodes_);
  const auto mine = nodes.find(rank);
  const detail::graph_rank_nodes none;
  return {rank, mine != nodes.end() ? mine->second : none, detail::schedule_of(nodes).of(rank)};
}

std::vector<int> graph::ranks() const {
  std::vector<int> found;
  found.reserve(nodes_.size());
  for (const auto& [rank, all] : nodes_) found.push_back(rank);
  return found;
}

// ---- the nodes of a rank

detail::graph_rank_nodes& graph_rank::mine() { return nodes_[rank_]; }

graph_value graph_rank::add(std::string name, graph_node node) {
  if (name.empty()) refuse(rank_, "a node without a name was added: nodes are found by their names");
  if (!mine().values.emplace(name, std::move(node)).second) {
    refuse(rank_, "there are two nodes \"", name, "\": every name is one node's");
  }
  return {std::move(name), rank_};
}

const std::string& graph_rank::name_of(const graph_value& value) const {
  if (value.rank() == -1 || value.rank() == rank_) return value.name();
  refuse(rank_, '"', value.name(), "\" of rank ", value.rank(), " is used here: send it there, and receive it here");
}

std::vector<std::string> graph_rank::names_of(const std::vector<graph_value>& values) const {
  std::vector<std::string> names;
  names.reserve(values.size());
  for (const auto& each : values) names.push_back(name_of(each));
  return names;
}

graph_value graph_rank::input(std::string name, const graph_form& form) {
  return add(std::move(name), node_of(graph_node_kind::input, form));
}

graph_value graph_rank::input(std::string name, const tensor& content) {
  auto node = node_of(graph_node_kind::input, graph_form::of(content));
  node.content = content;
  return add(std::move(name), std::move(node));
}

graph_value graph_rank::state(std::string name, const graph_form& form) {
  return add(std::move(name), node_of(graph_node_kind::state, form));
}

graph_value graph_rank::state(std::string name, const tensor& initial) {
  auto node = node_of(graph_node_kind::state, graph_form::of(initial));
  node.content = initial.clone();
  return add(std::move(name), std::move(node));
}

void graph_rank::update(const graph_value& state, const graph_value& from) {
  if (mine().updates.emplace(name_of(state), name_of(from)).second) return;
  refuse(rank_, "state \"", state.name(), "\" is updated twice: once a run is what it can be");
}

graph_value graph_rank::add_compute(std::string name, const graph_form& form, const std::vector<graph_value>& inputs,
                                    detail::graph_call call) {
  auto node = node_of(graph_node_kind::compute, form);
  node.inputs = names_of(inputs);
  node.call = std::move(call);
  return add(std::move(name), std::move(node));
}

graph_value graph_rank::add_compute_in_place(std::string name, const graph_value& target,
                                             const std::vector<graph_value>& inputs, detail::graph_call call) {
  graph_node node;
  node.kind = graph_node_kind::compute;
  node.in_place = name_of(target);
  node.inputs = names_of(inputs);
  node.call = std::move(call);
  return add(std::move(name), std::move(node));
}

// ---- messages

void graph_rank::check_message(const std::string& name, const char* direction, int peer, int tag) const {
  if (peer >= 0 && tag >= 0 && peer != rank_) return;
  refuse(rank_, '"', name, "\" is to be ", direction, " rank ", peer, ", tag ", tag,
         ": the rank must be another one, and neither may be negative");
}

void graph_rank::send(const graph_value& what, const graph::destination& where) {
  const auto& name = name_of(what);
  check_message(name, "sent to", where.to, where.tag);
  const auto [first, fresh] = mine().sends.emplace(detail::graph_destination{.tag = where.tag, .to = where.to}, name);
  if (fresh) return;
  refuse(rank_, '"', first->second, "\" and \"", name, "\" are both sent to rank ", where.to, " with tag ", where.tag,
         ": every message between two ranks needs a tag of its own");
}

graph_value graph_rank::recv(std::string name, const graph_form& form, const graph::origin& where) {
  return add_receive(std::move(name), form, where);
}

graph_value graph_rank::recv(std::string name, const graph::origin& where) {
  return add_receive(std::move(name), std::nullopt, where);
}

graph_value graph_rank::add_receive(std::string name, std::optional<graph_form> form, const graph::origin& where) {
  check_message(name, "received from", where.from, where.tag);
  for (const auto& [other, node] : mine().values) {
    if (node.kind != graph_node_kind::receive || node.from != where.from || node.tag != where.tag) continue;
    refuse(rank_, '"', other, "\" and \"", name, "\" are both received from rank ", where.from, " with tag ", where.tag,
           ": every message between two ranks needs a tag of its own");
  }
  graph_node node;
  node.kind = graph_node_kind::receive;
  node.form = form;
  node.from = where.from;
  node.tag = where.tag;
  return add(std::move(name), std::move(node));
}

}  // namespace muster
