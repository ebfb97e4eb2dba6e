// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/graph_local.hpp>

#include <algorithm>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "graph_exchange.hpp"

namespace muster {

namespace {

class local_link final : public graph_link {
public:
  local_link(detail::graph_exchange& exchange, int rank) : exchange_(exchange), rank_(rank) {}

  ticket isend(const tensor& what, int to, int tag) override {
    return exchange_.start({.from = rank_, .to = to, .tag = tag, .sends = true, .elements = what});
  }
  ticket irecv(const tensor& room, int from, int tag) override {
    return exchange_.start({.from = from, .to = rank_, .tag = tag, .sends = false, .elements = room});
  }
  bool test(ticket which) override { return exchange_.test(which); }
  bool wait(ticket which, deadline until) override { return exchange_.wait(which, until); }
  void abort(std::string_view why) noexcept override { exchange_.abort(rank_, why); }

private:
  detail::graph_exchange& exchange_;
  int rank_;
};

std::vector<graph_plan> plans_of(const graph& what) {
  std::vector<graph_plan> plans;
  for (const auto rank : what.ranks()) plans.push_back(what.plan(rank));
  return plans;
}

int count_of(const std::vector<graph_plan>& plans) { return plans.empty() ? 1 : plans.back().rank() + 1; }

bool has(const std::vector<graph_plan>& plans, int rank) {
  return std::any_of(plans.begin(), plans.end(), [&](const graph_plan& each) { return each.rank() == rank; });
}

void require_peers(const std::vector<graph_plan>& plans) {
  for (const auto& plan : plans) {
    for (const auto& step : plan.steps()) {
      if (step.peer == -1 || has(plans, step.peer)) continue;
      throw error(errc::invalid_argument,
                  text("graph, rank ", plan.rank(), ": \"", step, "\" in a process of all ranks, ", "but rank ",
                       step.peer, " has no nodes: define them"));
    }
  }
}

}  // namespace

// ---- links

local_graph_links::local_graph_links(int ranks) : exchange_(std::make_unique<detail::graph_exchange>()) {
  if (ranks < 1)
    throw error(errc::invalid_argument, text("links between ", ranks, " ranks: there must be one or more"));
  for (int rank = 0; rank < ranks; ++rank) links_.push_back(std::make_unique<local_link>(*exchange_, rank));
}

local_graph_links::~local_graph_links() = default;

graph_link& local_graph_links::operator[](int rank) {
  if (rank >= 0 && static_cast<std::size_t>(rank) < links_.size()) return *links_[static_cast<std::size_t>(rank)];
  throw error(errc::invalid_argument,
              text("the link of rank ", rank, " was asked for, but ranks are 0 to ", links_.size() - 1));
}

// ---- all ranks in one thread

local_graph::local_graph(const graph& what) : plans_(plans_of(what)), links_(count_of(plans_)), ended_(plans_.size()) {
  require_peers(plans_);
}

graph_plan& local_graph::operator[](int rank) {
  const auto is_it = [&](const graph_plan& each) { return each.rank() == rank; };
  const auto found = std::find_if(plans_.begin(), plans_.end(), is_it);
  if (found != plans_.end()) return *found;
  throw error(errc::invalid_argument, text("the plan of rank ", rank, " was asked for, which has no nodes"));
}

// Some rank moves in each turn: both ends of all messages are here, and the schedule has no circle.
void local_graph::run() {
  for (const auto& each : plans_) each.require_ready();
  std::fill(ended_.begin(), ended_.end(), false);
  while (std::find(ended_.begin(), ended_.end(), false) != ended_.end()) {
    for (std::size_t index = 0; index < plans_.size(); ++index) {
      if (!ended_[index]) ended_[index] = plans_[index].advance(links_[plans_[index].rank()]);
    }
  }
}

}  // namespace muster
