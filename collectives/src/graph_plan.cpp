// SPDX-License-Identifier: BSL-1.0
// What a plan consists of: where values lie, and what the steps do with them.
#include <muster/collectives/graph_plan.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include <muster/base/assert.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/overlap.hpp>

namespace muster {

using detail::graph_node_kind;

graph_plan::graph_plan(int rank, const detail::graph_rank_nodes& nodes, std::vector<graph_step> steps)
    : rank_(rank), steps_(std::move(steps)), bound_(steps_.size()), times_(steps_.size()) {
  place(nodes);
  for (std::size_t step = 0; step < steps_.size(); ++step) bind(nodes, step);
}

// ---- memory

void graph_plan::place(const detail::graph_rank_nodes& nodes) {
  for (const auto& [name, node] : nodes.values) place(nodes, name);
  shown_.resize(buffers_.size());
  std::iota(shown_.begin(), shown_.end(), std::size_t{0});
}

std::size_t graph_plan::place(const detail::graph_rank_nodes& nodes, const std::string& name) {
  const auto known = places_.find(name);
  if (known != places_.end()) return known->second;
  const auto& node = nodes.values.at(name);
  const auto shared = node.in_place.empty() ? buffers_.size() : place(nodes, node.in_place);
  places_.emplace(name, shared);
  if (!node.in_place.empty()) return shared;
  const bool given = node.kind == graph_node_kind::input;
  buffers_.push_back(given ? tensor() : tensor::zeros(node.form->type, node.form->shape));
  if (given || node.kind == graph_node_kind::state) settable_[name] = {.form = *node.form, .copied = !given};
  if (given) not_given_.push_back(name);
  if (node.content) set(name, *node.content);
  return shared;
}

std::size_t graph_plan::buffer_of(std::string_view name) const {
  const auto found = places_.find(name);
  if (found != places_.end()) return found->second;
  throw error(errc::invalid_argument, text("graph, rank ", rank_, ": there is no value \"", name,
                                           "\" in this plan: name one that was defined on this rank"));
}

tensor graph_plan::value(std::string_view name) const { return buffers_[shown_[buffer_of(name)]]; }

void graph_plan::set(std::string_view name, const tensor& content) {
  const auto at = buffer_of(name);
  const auto found = settable_.find(name);
  if (found == settable_.end()) {
    throw error(errc::invalid_argument, text("graph, rank ", rank_, ": \"", name,
                                             "\" was to be set, but is computed or received: set inputs and states"));
  }
  if (graph_form::of(content) != found->second.form || !content.is_contiguous()) {
    throw error(errc::invalid_argument, text("graph, rank ", rank_, ": \"", name, "\" was given as ",
                                             graph_form::of(content), ", ", content.is_contiguous() ? "" : "not ",
                                             "contiguous: it must be ", found->second.form, ", contiguous"));
  }
  if (found->second.copied) return buffers_[at].copy_from(content);
  buffers_[at] = writes_into(content) ? content.clone() : content;
  std::erase(not_given_, name);
}

// What a run computes or receives it writes there, while an input is to stay as it was given.
bool graph_plan::writes_into(const tensor& content) const {
  const auto is_input = [&](std::size_t buffer) {
    return std::ranges::any_of(
        settable_, [&](const auto& each) { return !each.second.copied && places_.at(each.first) == buffer; });
  };
  for (std::size_t buffer = 0; buffer < buffers_.size(); ++buffer) {
    if (overlap_of(content, buffers_[buffer]) != overlap::none && !is_input(buffer)) return true;
  }
  return false;
}

// ---- steps

void graph_plan::bind(const detail::graph_rank_nodes& nodes, std::size_t step) {
  const auto& what = steps_[step];
  auto& bound = bound_[step];
  bound.buffer = places_.at(what.node);
  for (const auto& each : what.inputs) bound.inputs.push_back(places_.at(each));
  bound.arguments.resize(what.inputs.size());
  if (what.kind == graph_step_kind::compute) bound.call = nodes.values.at(what.node).call;
  if (what.waits()) bound.start = start_of(step);
  if (what.kind == graph_step_kind::update) bind_update(nodes, step);
}

std::size_t graph_plan::start_of(std::size_t wait) const {
  const auto& waits = steps_[wait];
  const auto kind = waits.kind == graph_step_kind::wait_sent ? graph_step_kind::send : graph_step_kind::receive;
  const auto starts = [&](const graph_step& each) {
    return each.kind == kind && each.peer == waits.peer && each.tag == waits.tag;
  };
  const auto found = std::find_if(steps_.begin(), steps_.end(), starts);
  MUSTER_ASSERT(found != steps_.end());
  return static_cast<std::size_t>(found - steps_.begin());
}

// Memory that nobody else needs after the run changes hands; what it held is the state's then, also for who looks at it
// by its own name.
void graph_plan::bind_update(const detail::graph_rank_nodes& nodes, std::size_t step) {
  auto& bound = bound_[step];
  const auto from = bound.inputs.front();
  const auto takes = [&](const auto& update) { return places_.at(update.second) == from; };
  const auto takers = std::count_if(nodes.updates.begin(), nodes.updates.end(), takes);
  bound.exchanges = takers == 1 && !settable_.contains(steps_[step].inputs.front());
  if (bound.exchanges) shown_[from] = bound.buffer;
}

}  // namespace muster
