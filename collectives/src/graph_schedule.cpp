// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/graph_schedule.hpp>

#include <algorithm>
#include <iomanip>
#include <map>
#include <ostream>
#include <set>

#include <muster/base/text.hpp>

#include "graph_text.hpp"

namespace muster {

namespace {

void print_inputs(std::ostream& out, const graph_step& step, const char* before) {
  const char* separator = before;
  for (const auto& each : step.inputs) {
    out << separator << '"' << each << '"';
    separator = ", ";
  }
}

void print_compute(std::ostream& out, const graph_step& step) {
  out << "compute \"" << step.node << '"';
  if (!step.in_place.empty()) out << " in place of \"" << step.in_place << '"';
  print_inputs(out, step, step.in_place.empty() ? " of " : ", of ");
}

void print_message(std::ostream& out, const graph_step& step, const char* before, const char* between) {
  out << before << '"' << step.node << '"' << between << step.peer << ", tag " << step.tag;
}

using numbers_of_values = std::map<std::string, std::vector<std::size_t>>;

// Under which number of the rank's list what happens to a value. Those that only others name are there without one.
numbers_of_values numbers_of(const std::vector<graph_step>& steps) {
  numbers_of_values found;
  for (std::size_t index = 0; index < steps.size(); ++index) {
    found[steps[index].node].push_back(index + 1);
    for (const auto& each : steps[index].inputs) found[each];
  }
  return found;
}

class dot_writer {
public:
  explicit dot_writer(const graph_schedule& what) : what_(what), ranks_(what.ranks()) {}

  std::string write() {
    out_ << "digraph muster {\n  rankdir=LR;\n  node [shape=box];\n";
    for (const auto rank : ranks_) add_rank(rank);
    for (const auto& step : what_.steps()) add_arrows(step);
    out_ << "}\n";
    return std::move(out_).str();
  }

private:
  void add_rank(int rank) {
    out_ << "  subgraph cluster_" << rank << " {\n    label=\"rank " << rank << "\";\n";
    for (const auto& [name, numbers] : numbers_of(what_.of(rank))) {
      std::string label = name;
      for (const auto& each : numbers) label += (&each == numbers.data() ? "\n" : ", ") + std::to_string(each);
      out_ << "    " << value(rank, name) << " [label=" << detail::quoted(label) << "];\n";
    }
    out_ << "  }\n";
  }

  void add_arrows(const graph_step& step) {
    const auto here = value(step.rank, step.node);
    if (step.kind == graph_step_kind::send) {
      out_ << "  " << here << " -> " << other_end(step);
      out_ << " [style=dashed, label=\"tag " << step.tag << "\"];\n";
    } else if (step.kind == graph_step_kind::receive && !is_known(step.peer)) {
      out_ << "  " << stranger(step.peer) << " -> " << here << " [style=dashed, label=\"tag " << step.tag << "\"];\n";
    } else if (step.kind == graph_step_kind::compute || step.kind == graph_step_kind::update) {
      for (const auto& each : step.inputs) out_ << "  " << value(step.rank, each) << " -> " << here << ";\n";
      if (!step.in_place.empty())
        out_ << "  " << value(step.rank, step.in_place) << " -> " << here << " [label=\"in place\"];\n";
    }
  }

  [[nodiscard]] bool is_known(int rank) const { return std::binary_search(ranks_.begin(), ranks_.end(), rank); }

  [[nodiscard]] std::string other_end(const graph_step& sent) const {
    const auto is_it = [&](const graph_step& each) {
      return each.kind == graph_step_kind::receive && each.rank == sent.peer && each.peer == sent.rank &&
             each.tag == sent.tag;
    };
    const auto found = std::find_if(what_.steps().begin(), what_.steps().end(), is_it);
    return found == what_.steps().end() ? stranger(sent.peer) : value(found->rank, found->node);
  }

  static std::string value(int rank, const std::string& name) {
    return detail::quoted(std::to_string(rank) + '/' + name);
  }
  static std::string stranger(int rank) { return detail::quoted("rank " + std::to_string(rank)); }

  const graph_schedule& what_;
  std::vector<int> ranks_;
  detail::text_writer out_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const graph_step& step) {
  switch (step.kind) {
    case graph_step_kind::send: print_message(out, step, "send ", " to rank "); break;
    case graph_step_kind::receive: print_message(out, step, "receive ", " from rank "); break;
    case graph_step_kind::compute: print_compute(out, step); break;
    case graph_step_kind::wait_sent: print_message(out, step, "wait until sent: ", " to rank "); break;
    case graph_step_kind::wait_received: print_message(out, step, "wait until received: ", " from rank "); break;
    case graph_step_kind::update:
      out << "update \"" << step.node << '"';
      print_inputs(out, step, " from ");
      break;
  }
  return out;
}

std::vector<graph_step> graph_schedule::of(int rank) const {
  std::vector<graph_step> found;
  std::copy_if(steps_.begin(), steps_.end(), std::back_inserter(found),
               [&](const graph_step& each) { return each.rank == rank; });
  return found;
}

std::vector<int> graph_schedule::ranks() const {
  std::set<int> found;
  for (const auto& each : steps_) found.insert(each.rank);
  return {found.begin(), found.end()};
}

void graph_schedule::print(std::ostream& out) const {
  for (const auto rank : ranks()) {
    out << "rank " << rank << '\n';
    std::size_t number = 0;
    for (const auto& step : of(rank)) out << std::setw(4) << ++number << ' ' << step << '\n';
  }
}

std::string graph_schedule::to_dot() const { return dot_writer(*this).write(); }

}  // namespace muster
