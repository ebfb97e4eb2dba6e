// SPDX-License-Identifier: BSL-1.0
#pragma once

// Programs for several ranks in which the library decides when to send, to receive and to wait.
//
// Users say what is computed from what, and what is sent; the order follows (docs/design/graph.md):
//
//     muster::graph g;
//     auto here = g.on(0), there = g.on(1);
//     auto x = here.input("x", {dtype::f32, {n}});
//     here.send(x, {.to = 1, .tag = 1});
//     auto y = here.compute("y", {dtype::f32, {n}}, {x}, [](const tensor& y, const tensor& x) { … });
//     there.compute("z", {dtype::f32, {n}}, {there.recv("x", {.from = 0, .tag = 1})}, [](…) { … });
//     g.schedule().print(std::cout);
//     auto mine = g.plan(rank);
//     mine.set("x", elements);
//     mine.run(link);
//
// After sends and receives of M. Rocklin's MPI-enabled Theano (2012), which ordered the nodes of one rank.

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <muster/collectives/detail/graph_call.hpp>
#include <muster/collectives/detail/graph_nodes.hpp>
#include <muster/collectives/graph_form.hpp>
#include <muster/collectives/graph_plan.hpp>
#include <muster/collectives/graph_schedule.hpp>

namespace muster {

/// Names a value of a rank, which may be defined later. Plain text names one of the rank where it is used.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class graph_value {
public:
  /// Names the value `name` of rank `rank`; without a rank, of the rank where it is used.
  ///@{
  graph_value(std::string name) : name_(std::move(name)) {}
  graph_value(const char* name) : name_(name) {}
  graph_value(std::string name, int rank) : name_(std::move(name)), rank_(rank) {}
  ///@}

  /// Returns the name, which is unique in its rank.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// -1: that of whoever uses it.
  [[nodiscard]] int rank() const noexcept { return rank_; }

private:
  std::string name_;
  int rank_ = -1;
};

class graph_rank;

/// What all ranks compute and send.
///
/// Every program that takes part makes the same graph and runs its own rank's plan: then both ends of every message are
/// checked against each other, and no rank waits for one that waits for it. A program may also define its own rank
/// alone; what the others have is not checked then, and nothing keeps ranks from waiting for each other in a circle but
/// that all take waits that are equal otherwise by their tags.
///
/// Tags are numbers from 0 on, one message each from a rank to another; lower ones go first.
///
/// Thread safety: distinct objects: safe. Shared objects: safe while nobody adds nodes.
/// Lifetime: a value. Copies of functions are in the graph and in each plan of their rank.
class graph {
public:
  /// The end of a message that is sent. No other message between these two ranks has the tag.
  struct destination {
    int to = 0;   ///< the rank that receives
    int tag = 0;  ///< from 0 on
  };
  /// The end of a message that is received. No other message between these two ranks has the tag.
  struct origin {
    int from = 0;  ///< the rank that sends
    int tag = 0;   ///< from 0 on
  };

  /// Where nodes of that rank are added. Throws errc::invalid_argument for a negative number.
  /// Lifetime: borrows the graph.
  [[nodiscard]] graph_rank on(int rank);

  /// The steps of all ranks. The same for the same nodes, in whatever order they were added.
  /// Throws errc::invalid_argument, naming ranks and nodes, for: a name that nothing has; a message of which a rank
  /// that has any nodes lacks the other end, or has another dtype or shape; a receive that nothing says the form of;
  /// two that compute in place of one value; steps that need each other in a circle, on one rank or across several.
  /// Cost: at worst starts · steps²; it is done once.
  [[nodiscard]] graph_schedule schedule() const;

  /// What that rank does, with the memory it needs. Throws as schedule does, and errc::out_of_memory; a rank without
  /// nodes has a plan without steps.
  [[nodiscard]] graph_plan plan(int rank) const;

  /// Those that have nodes, ascending.
  [[nodiscard]] std::vector<int> ranks() const;

private:
  friend class graph_rank;

  detail::graph_nodes nodes_;
};

/// One rank of a graph. All members but [] throw errc::invalid_argument for an empty name, a name that the rank has
/// already, and a value of another rank.
///
/// Thread safety: as the graph's.
/// Lifetime: borrows the graph.
class graph_rank {
public:
  /// The value of that name, which may not be there yet.
  [[nodiscard]] graph_value operator[](std::string name) const { return {std::move(name), rank_}; }

  /// What the program gives before a run, by graph_plan::set or here; it is read where it lies and never written.
  ///@{
  graph_value input(std::string name, const graph_form& form);
  graph_value input(std::string name, const tensor& content);
  ///@}

  /// What stays on its rank from run to run: zeros at first, or a copy of `initial`, or what graph_plan::set gives.
  ///@{
  graph_value state(std::string name, const graph_form& form);
  graph_value state(std::string name, const tensor& initial);
  ///@}

  /// What the state is from the next run on. Costs nothing unless the value is an input or state, or updates several
  /// states: then a copy. Throws errc::invalid_argument for a state that is updated already.
  void update(const graph_value& state, const graph_value& from);

  /// A value that a function computes from others. It is called once per run, either as
  /// `function(const tensor& output, const tensor& input…)`, and writes all of the output's elements, which lie in the
  /// same memory in every run; or as `function(const tensor& input…)`, and returns a contiguous tensor of that
  /// form, which shares no memory with another value: nor with what it returned before, once that has updated a state.
  /// Requires: the function is copyable, and writes no input's elements.
  ///@{
  template <std::size_t N, class F>
  graph_value compute(std::string name, const graph_form& form, const graph_value (&inputs)[N], F function) {
    return add_compute(std::move(name), form, {inputs, inputs + N},
                       detail::graph_call_of(std::move(function), std::make_index_sequence<N>()));
  }
  template <class F>
  graph_value compute(std::string name, const graph_form& form, F function) {
    return add_compute(std::move(name), form, {},
                       detail::graph_call_of(std::move(function), std::make_index_sequence<0>()));
  }
  ///@}
  /// As many inputs as there are when the program runs: `function(const tensor& output, std::span<const tensor>
  /// inputs)`.
  template <std::same_as<std::vector<graph_value>> Inputs, class F>
  graph_value compute(std::string name, const graph_form& form, const Inputs& inputs, F function) {
    return add_compute(std::move(name), form, inputs, detail::graph_call_of_row(std::move(function)));
  }

  /// As compute, but the output is the target's memory, with its elements in it. Everybody else who takes the target
  /// does so before, and what is sent of it has been sent. The target is no input and no state, and is the target of
  /// one node only.
  ///@{
  template <std::size_t N, class F>
  graph_value compute_in_place(std::string name, const graph_value& target, const graph_value (&inputs)[N],
                               F function) {
    return add_compute_in_place(std::move(name), target, {inputs, inputs + N},
                                detail::graph_call_of(std::move(function), std::make_index_sequence<N>()));
  }
  template <class F>
  graph_value compute_in_place(std::string name, const graph_value& target, F function) {
    return add_compute_in_place(std::move(name), target, {},
                                detail::graph_call_of(std::move(function), std::make_index_sequence<0>()));
  }
  ///@}

  /// Sends a value as soon as it is there. Throws errc::invalid_argument for a tag that another message to that rank
  /// has, a negative number, and a send to the rank itself.
  void send(const graph_value& what, const graph::destination& where);

  /// What another rank sends; its form need not be said when that rank is in the graph too. Throws as send does.
  ///@{
  graph_value recv(std::string name, const graph_form& form, const graph::origin& where);
  graph_value recv(std::string name, const graph::origin& where);
  ///@}

private:
  friend class graph;

  graph_rank(detail::graph_nodes& nodes, int rank) : nodes_(nodes), rank_(rank) {}

  graph_value add(std::string name, detail::graph_node node);
  graph_value add_compute(std::string name, const graph_form& form, const std::vector<graph_value>& inputs,
                          detail::graph_call call);
  graph_value add_compute_in_place(std::string name, const graph_value& target, const std::vector<graph_value>& inputs,
                                   detail::graph_call call);
  graph_value add_receive(std::string name, std::optional<graph_form> form, const graph::origin& where);
  [[nodiscard]] detail::graph_rank_nodes& mine();
  [[nodiscard]] const std::string& name_of(const graph_value& value) const;
  [[nodiscard]] std::vector<std::string> names_of(const std::vector<graph_value>& values) const;
  void check_message(const std::string& name, const char* direction, int peer, int tag) const;

  detail::graph_nodes& nodes_;
  int rank_;
};

}  // namespace muster
