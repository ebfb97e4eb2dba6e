// SPDX-License-Identifier: BSL-1.0
// From nodes to steps, and what each needs.
#include <algorithm>
#include <tuple>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/collectives/detail/graph_nodes.hpp>
#include <muster/collectives/detail/graph_order.hpp>

namespace muster::detail {

namespace {

class step_maker {
public:
  // Steps get their numbers in an order that is the same whatever the order of definition was: these decide ties.
  explicit step_maker(const graph_nodes& nodes) {
    for (const auto& [rank, all] : nodes) {
      add_sends(rank, all);
      add_receives(rank, all);
      add_computes(rank, all);
      add_updates(rank, all);
      ++rank_index_;
    }
    for (const auto& [rank, all] : nodes) connect(rank, all);
  }

  graph_schedule ordered() {
    const auto found = order_of(items_);
    if (!found.circle.empty()) refuse(found.circle);
    std::vector<graph_step> steps;
    steps.reserve(steps_.size());
    for (const auto each : found.sequence) steps.push_back(std::move(steps_[each]));
    return graph_schedule(std::move(steps));
  }

private:
  using value_name = std::pair<int, std::string>;

  std::size_t add(order_class what, graph_step step, std::vector<std::size_t> after = {}) {
    items_.push_back({.what = what, .rank = rank_index_, .tag = step.tag, .after = std::move(after), .started = {}});
    steps_.push_back(std::move(step));
    return steps_.size() - 1;
  }

  // Both halves. Returns the number of the first; the second follows it.
  std::size_t add_message(graph_step step, graph_step_kind wait) {
    const auto start = add(order_class::start, step);
    step.kind = wait;
    add(order_class::wait, std::move(step), {start});
    return start;
  }

  void add_sends(int rank, const graph_rank_nodes& all) {
    for (const auto& [where, name] : all.sends) {
      graph_step step{.kind = graph_step_kind::send, .rank = rank, .node = name, .peer = where.to, .tag = where.tag};
      step.form = *all.values.at(name).form;
      sends_[{rank, where.to, where.tag}] = add_message(std::move(step), graph_step_kind::wait_sent);
    }
  }

  void add_receives(int rank, const graph_rank_nodes& all) {
    std::map<std::pair<int, int>, std::string> by_tag;
    for (const auto& [name, node] : all.values) {
      if (node.kind == graph_node_kind::receive) by_tag[{node.tag, node.from}] = name;
    }
    for (const auto& [origin, name] : by_tag) {
      graph_step step{.kind = graph_step_kind::receive, .rank = rank, .node = name, .form = *all.values.at(name).form};
      std::tie(step.tag, step.peer) = origin;
      makers_[{rank, name}] = add_message(std::move(step), graph_step_kind::wait_received) + 1;
    }
  }

  void add_computes(int rank, const graph_rank_nodes& all) {
    for (const auto& [name, node] : all.values) {
      if (node.kind != graph_node_kind::compute) continue;
      graph_step step{.rank = rank, .node = name, .inputs = node.inputs, .in_place = node.in_place, .form = *node.form};
      makers_[{rank, name}] = add(order_class::work, std::move(step));
    }
  }

  void add_updates(int rank, const graph_rank_nodes& all) {
    for (const auto& [state, name] : all.updates) {
      graph_step step{.kind = graph_step_kind::update,
                      .rank = rank,
                      .node = state,
                      .inputs = {name},
                      .form = *all.values.at(state).form};
      updates_[{rank, state}] = add(order_class::last, std::move(step));
    }
  }

  // ---- what needs what

  void connect(int rank, const graph_rank_nodes& all) {
    for (const auto& [where, name] : all.sends) needs_value(sends_.at({rank, where.to, where.tag}), {rank, name});
    for (const auto& [name, node] : all.values) {
      if (node.kind == graph_node_kind::compute) connect_compute(rank, all, name, node);
      if (node.kind == graph_node_kind::receive) connect_receive(rank, name, node);
    }
    for (const auto& [state, name] : all.updates) {
      const auto overwrites = updates_.find({rank, name});
      if (overwrites != updates_.end()) needs(overwrites->second, updates_.at({rank, state}));
    }
  }

  void connect_compute(int rank, const graph_rank_nodes& all, const std::string& name, const graph_node& node) {
    const auto step = makers_.at({rank, name});
    for (const auto& each : node.inputs) needs_value(step, {rank, each});
    if (node.in_place.empty()) return;
    needs_value(step, {rank, node.in_place});
    // Whoever reads what is overwritten comes first, to the end of its transfer.
    for (const auto& [reader, its] : all.values) {
      const bool reads = std::find(its.inputs.begin(), its.inputs.end(), node.in_place) != its.inputs.end();
      if (reads) needs(step, makers_.at({rank, reader}));
    }
    for (const auto& [where, sent] : all.sends) {
      if (sent == node.in_place) needs(step, sends_.at({rank, where.to, where.tag}) + 1);
    }
  }

  void connect_receive(int rank, const std::string& name, const graph_node& node) {
    const auto sent = sends_.find({node.from, rank, node.tag});
    if (sent != sends_.end()) items_[makers_.at({rank, name})].started = sent->second;
  }

  // Inputs and states are there from the start.
  void needs_value(std::size_t step, const value_name& value) {
    const auto maker = makers_.find(value);
    if (maker != makers_.end()) needs(step, maker->second);
  }

  void needs(std::size_t step, std::size_t other) { items_[step].after.push_back(other); }

  [[noreturn]] void refuse(const std::vector<std::size_t>& circle) const {
    std::string names;
    for (const auto each : circle) names += text("rank ", steps_[each].rank, ": ", steps_[each], "; ");
    throw error(errc::invalid_argument,
                text("graph: steps need each other in a circle, each the next one, the last the "
                     "first: ",
                     names, "take one of these dependences away"));
  }

  std::size_t rank_index_ = 0;
  std::vector<graph_step> steps_;
  std::vector<order_item> items_;
  std::map<std::tuple<int, int, int>, std::size_t> sends_;  // from, to, tag: the start
  std::map<value_name, std::size_t> makers_;                // after which step the value is there
  std::map<value_name, std::size_t> updates_;
};

}  // namespace

graph_schedule schedule_of(const graph_nodes& checked) { return step_maker(checked).ordered(); }

}  // namespace muster::detail
