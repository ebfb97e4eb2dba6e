// SPDX-License-Identifier: BSL-1.0
#pragma once

// What one rank does, with the memory it needs for that.

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/collectives/detail/graph_nodes.hpp>
#include <muster/collectives/graph_link.hpp>
#include <muster/collectives/graph_schedule.hpp>

namespace muster {

/// When a step began and ended.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct graph_step_time {
  clock::time_point begin;            ///< in the last run
  clock::time_point end;              ///< in the last run
  std::chrono::nanoseconds total{0};  ///< in all runs that have ended
};

/// One rank's steps of a graph, and its values: made by graph::plan, run any number of times.
///
/// Every value but the inputs has memory of its own, allocated when the plan is made; a state's content stays there
/// from run to run. A run computes the same bits as any other run with the same inputs and states.
///
/// Thread safety: distinct objects: safe, also of one graph. Shared objects: unsafe.
/// Lifetime: has what it needs of the graph, which may go. If it goes itself in the middle of a run, the link still has
/// the tensors of what is under way.
/// Cost: a run allocates nothing unless functions or the link do, and copies nothing but what the link does.
class graph_plan {
public:
  /// Takes over the plan and the memory of its values. The other plan may then only be assigned to or destroyed.
  graph_plan(graph_plan&&) noexcept = default;
  graph_plan& operator=(graph_plan&&) noexcept = default;
  graph_plan(const graph_plan&) = delete;  // would share the memory
  graph_plan& operator=(const graph_plan&) = delete;
  ~graph_plan() = default;

  /// Returns the rank whose steps these are.
  [[nodiscard]] int rank() const noexcept { return rank_; }
  /// Returns the steps, in the order in which a run takes them.
  [[nodiscard]] const std::vector<graph_step>& steps() const noexcept { return steps_; }

  /// Gives an input, whose elements are then read in place by every run; or copies into a state. What a run writes, as
  /// value() returns it, is copied for an input too.
  /// Throws errc::invalid_argument for another name, dtype or shape, and for elements that are not contiguous.
  void set(std::string_view name, const tensor& content);

  /// A value after a run; of an updated state and of what it was updated from, the state's next content. It is written
  /// again by the next run. Throws errc::invalid_argument for a name that this rank does not have.
  [[nodiscard]] tensor value(std::string_view name) const;

  /// Takes all steps, in order; those that are left, of a run that advance began.
  /// Unblocked by: the other ranks' messages, their aborts or deaths, the deadline, which is that of the whole run.
  /// Throws what the link throws; errc::timed_out, with the message that did not come; what a function threw, nested in
  /// a muster::error of its code, or of errc::remote_exception, that names rank and node. Then the link is told
  /// to abort, the values are undefined, and the plan does not run any more (errc::cancelled).
  /// Throws errc::invalid_argument, and nothing has happened, when an input has not been given.
  void run(graph_link& link, deadline until = deadline::never());

  /// Takes steps until one would have to wait: returns false, and the next call tries it again. Returns true when the
  /// run has ended; the next call begins another. For who has several ranks in one thread. Throws as run does.
  [[nodiscard]] bool advance(graph_link& link);

  // ---- what it took; one entry for each step

  /// Returns when each step began and ended, in the order of steps().
  [[nodiscard]] std::span<const graph_step_time> times() const noexcept { return times_; }
  /// How many runs have ended.
  [[nodiscard]] std::size_t runs() const noexcept { return runs_; }
  /// Exposed communication: how long the last run stood in waits.
  [[nodiscard]] std::chrono::nanoseconds exposed() const noexcept;
  /// All runs together.
  [[nodiscard]] std::chrono::nanoseconds total_exposed() const noexcept;

private:
  friend class graph;
  friend class local_graph;

  // A step with its places in memory.
  struct bound_step {
    detail::graph_call call;
    std::size_t buffer = 0;
    std::vector<std::size_t> inputs;
    std::vector<tensor> arguments;  // room for handles, so that a call allocates nothing
    std::size_t start = 0;          // of a wait: the step that started
    graph_link::ticket ticket = 0;  // of a start
    bool exchanges = false;         // of an update: nobody else needs the memory
  };

  // An input or a state.
  struct settable {
    graph_form form;
    bool copied = false;
  };

  graph_plan(int rank, const detail::graph_rank_nodes& nodes, std::vector<graph_step> steps);

  void place(const detail::graph_rank_nodes& nodes);
  std::size_t place(const detail::graph_rank_nodes& nodes, const std::string& name);
  void bind(const detail::graph_rank_nodes& nodes, std::size_t step);
  void bind_update(const detail::graph_rank_nodes& nodes, std::size_t step);
  [[nodiscard]] std::size_t start_of(std::size_t wait) const;
  [[nodiscard]] std::size_t buffer_of(std::string_view name) const;
  [[nodiscard]] bool writes_into(const tensor& content) const;

  void require_ready() const;
  bool go_on(graph_link& link, const deadline* until);
  bool take(std::size_t step, graph_link& link, const deadline* until);
  bool wait(std::size_t step, graph_link& link, const deadline* until);
  void compute(std::size_t step);
  void check_output(std::size_t step, const tensor& output) const;
  void update(std::size_t step);
  void finish_run();

  int rank_;
  std::vector<graph_step> steps_;
  std::vector<bound_step> bound_;
  std::vector<graph_step_time> times_;
  std::map<std::string, std::size_t, std::less<>> places_;  // of values in buffers_
  std::map<std::string, settable, std::less<>> settable_;
  std::vector<tensor> buffers_;
  std::vector<std::size_t> shown_;      // where a buffer's content is after a run
  std::vector<std::string> not_given_;  // inputs
  std::size_t next_ = 0;
  bool begun_ = false;  // the next step has been tried
  std::size_t runs_ = 0;
  std::string failure_;
};

}  // namespace muster
