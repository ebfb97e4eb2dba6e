// SPDX-License-Identifier: BSL-1.0
#pragma once

// Functions that run on many processes at once, each on its part of the rows, and variables that these processes keep.
//
//     std::tuple<float, tensor> loss_and_gradient(tensor images, tensor labels, tensor weights);
//
//     muster::world world({.ranks = 4});
//     auto weights = world.replicate("weights", tensor::zeros<float>({64, 10}));
//     auto step = world.function(loss_and_gradient, rows("images", "labels"), replicas(weights), outputs(avg("loss")),
//                                updates(reduced_into(weights, avg, sgd{.rate = 0.5, .momentum = 0.9})));
//     for (const auto& batch : batches) float loss = step.with({.batch = batch})(images, labels);
//
// What it does for C++ is what Synkhronos did for Theano; docs/coming-from-synkhronos.md has a line for each of its
// names, and docs/design/parallel.md says how it works.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/types.h>

#include <muster/device/tensor.hpp>
#include <muster/parallel/data.hpp>
#include <muster/parallel/function.hpp>
#include <muster/parallel/rank_error.hpp>
#include <muster/parallel/row_selection.hpp>
#include <muster/parallel/tags.hpp>
#include <muster/parallel/variable.hpp>
#include <muster/parallel/world_options.hpp>
#include <muster/process/init.hpp>

namespace muster {

/// A number of ranks: worker processes and, unless it is told otherwise, the program itself. See above.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, except the destructor; one call at a time, others wait.
/// Process safety: belongs to the process that made it; in a forked child calls throw errc::forked, and the destructor
/// does nothing.
/// Lifetime: functions and variables may outlive it; calling one of those is an error then, and dropping one is none,
/// in a forked child neither. One that a function of its own destroys, in the program's share of a call, is closed when
/// that call is over, by a thread that is made for it.
class world {
public:
  /// Starts the ranks' processes, and waits until they are there.
  /// Throws errc::invalid_argument for options out of their range and in a worker, and what muster::pool throws.
  explicit world(const world_options& options = {});
  world(const world&) = delete;
  world& operator=(const world&) = delete;
  /// As close(), but that a trace which cannot be completed is logged.
  ~world();

  [[nodiscard]] std::size_t ranks() const noexcept;        ///< how many compute
  [[nodiscard]] std::size_t master_rank() const noexcept;  ///< world_options::master_rank

  // ---- functions

  /// A function of `callable`: a function pointer, a captureless lambda, a functor with a serialize function, or one of
  /// these with muster::bind_front; what the tags say is described in tags.hpp. No registration: ranks learn of it
  /// with the next call of any function. At any time, as many as wanted. One that cannot be made anew there fails in
  /// its own calls, and in distribute().
  /// Throws errc::invalid_argument for updates that cannot be, errc::pool_closed. What does not fit the callable does
  /// not compile.
  template <class Callable, class... Tags>
  [[nodiscard]] auto function(Callable callable, const Tags&... tags);

  /// Tells the ranks of all functions and variables that they do not know yet, which otherwise the next call does. Any
  /// number of times; nothing changes by it. Throws rank_error while there is a function that some rank cannot make,
  /// whatever was called before.
  void distribute();

  // ---- variables. Errors: errc::invalid_argument, naming variable, rank and what would fit; errc::pool_closed. All
  // are for every rank, the program's own included, and for shares of any, also different, lengths. In a world on
  // devices what calls have changed comes to the host first, once, for which the ranks are asked: errors are those of a
  // call too. So it is where shared memory is short while ranks still have variables that are gone, or were of another
  // shape: they let go of those then, or with the next call.

  /// A variable that every rank has a replica of, which begins as a copy of `value`, wherever that lies.
  [[nodiscard]] variable replicate(std::string name, const tensor& value);
  /// A variable whose rows are dealt out: rank r gets the r-th part of the selected rows (row_range.hpp).
  [[nodiscard]] variable scattered(std::string name, const tensor& value, const row_selection& batch = {});

  /// All replicas become the master's, or a copy of `value`, whose shape may be another than before.
  ///@{
  void broadcast(const variable& which);
  void broadcast(const variable& which, const tensor& value);
  ///@}
  /// The rows of `value` are dealt out, as when a scattered variable is made; the lengths may be others than before.
  void scatter(const variable& which, const tensor& value, const row_selection& batch = {});
  /// What all ranks have, one after the other: along a new first dimension (new_dimensions = 1), which takes equal
  /// shapes, or along the one there is (0), which takes equal shapes but for the rows. The variable stays as it is.
  [[nodiscard]] tensor gather(const variable& which, unsigned new_dimensions = 1) const;
  /// Every rank gets what gather(which, 0) gives.
  void all_gather(const variable& which);
  /// The values of all ranks joined by avg, sum, prod, min or max. avg is that of the ranks' values, however many rows
  /// they have; of integers it is truncated, since the dtype stays.
  [[nodiscard]] tensor reduce(const variable& which, output_op op = avg) const;
  /// The same into the master's own. Other ranks keep theirs.
  void reduce_in_place(const variable& which, output_op op = avg);
  /// The same into every rank's.
  void all_reduce(const variable& which, output_op op = avg);

  /// One rank gets a copy of `value`, or of its selected rows. The shape may be another than before.
  void set_value(std::size_t rank, const variable& which, const tensor& value, const row_selection& batch = {});
  /// A copy, on the host.
  [[nodiscard]] tensor get_value(std::size_t rank, const variable& which) const;
  /// The sizes of the first dimension, by rank.
  [[nodiscard]] std::vector<std::size_t> get_lengths(const variable& which) const;
  [[nodiscard]] std::vector<tensor_shape> get_shapes(const variable& which) const;  ///< by rank

  /// The same calls for several variables, one after the other, while no function is called. Before the first one
  /// changes all are looked at, and brought to the host: errors but for want of memory change nothing. Throws
  /// errc::invalid_argument where one is given twice or is of another world, where there are not as many values as
  /// variables, and where dtype, dimensions, shapes in the ranks, rows or op do not fit one of them. With
  /// errc::out_of_memory those before the one that found none have changed.
  ///@{
  void broadcast(std::span<const variable> which);
  void broadcast(std::span<const variable> which, std::span<const tensor> values);
  void scatter(std::span<const variable> which, std::span<const tensor> values, const row_selection& batch = {});
  void all_gather(std::span<const variable> which);
  void reduce_in_place(std::span<const variable> which, output_op op = avg);
  void all_reduce(std::span<const variable> which, output_op op = avg);
  void set_value(std::size_t rank, std::span<const variable> which, std::span<const tensor> values,
                 const row_selection& batch = {});
  ///@}
  /// These change nothing: calls of other threads may come between one variable and the next.
  ///@{
  [[nodiscard]] std::vector<tensor> gather(std::span<const variable> which, unsigned new_dimensions = 1) const {
    return of_each(which, [&](const auto& each) { return gather(each, new_dimensions); });
  }
  [[nodiscard]] std::vector<tensor> reduce(std::span<const variable> which, output_op op = avg) const {
    return of_each(which, [&](const auto& each) { return reduce(each, op); });
  }
  [[nodiscard]] std::vector<tensor> get_value(std::size_t rank, std::span<const variable> which) const {
    return of_each(which, [&](const auto& each) { return get_value(rank, each); });
  }
  [[nodiscard]] std::vector<std::vector<std::size_t>> get_lengths(std::span<const variable> which) const {
    return of_each(which, [&](const auto& each) { return get_lengths(each); });
  }
  [[nodiscard]] std::vector<std::vector<tensor_shape>> get_shapes(std::span<const variable> which) const {
    return of_each(which, [&](const auto& each) { return get_shapes(each); });
  }
  ///@}

  // ---- seeing it work

  /// From now on until end_trace(), or the world's end, calls are written into `file`, which is made anew, as an array
  /// of trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing open: a row for the caller, with each call
  /// from its beginning to its end, its input_bytes as in call_profile, and whether it failed; and a row for each rank,
  /// with what it was at in the call: scatter, compute, accumulate, wait and reduce, each in sum over the rank's
  /// slices, one after the other. Times are microseconds of CLOCK_MONOTONIC. A trace that was begun before ends first.
  /// Throws muster::error when the file cannot be written, with its name and the cause; there is no trace then.
  /// Cost: of each call some microseconds; nothing while there is no trace.
  void trace_to(const std::string& file);
  /// Ends the trace: its file is complete when this returns. Nothing, if there is none. Throws muster::error, with the
  /// file's name, when not everything could be written.
  void end_trace();

  // ---- the ranks

  /// The ranks' processes leave. What was asked for in the background before ends first. Functions cannot be called any
  /// more. A trace ends, as end_trace ends it.
  /// Unblocked by: the end of calls; the processes' end; world_options::output's return from the last line that they
  /// have written. That sink may use the world meanwhile, which is closed then; also close() it, which does not wait
  /// for another thread that does so.
  void close();
  /// By rank: the process, 0 for the program itself.
  [[nodiscard]] std::vector<pid_t> pids() const;
  /// How many ranks have been replaced, because they died.
  [[nodiscard]] std::uint64_t replaced_ranks() const noexcept;

private:
  template <class One>
  static std::vector<std::invoke_result_t<const One&, const variable&>> of_each(std::span<const variable> which,
                                                                                const One& one) {
    require_distinct(which);
    std::vector<std::invoke_result_t<const One&, const variable&>> made;
    made.reserve(which.size());
    for (const auto& each : which) made.push_back(one(each));
    return made;
  }
  static void require_distinct(std::span<const variable> which);
  [[nodiscard]] std::shared_ptr<detail::function_core> enter(detail::registered_function what,
                                                             std::vector<variable> used) const;
  [[nodiscard]] token_encoder& tokens() const noexcept;

  std::shared_ptr<detail::world_core> core_;
};

namespace detail {

/// Takes the tags apart.
template <class... Tags>
struct tag_list {
  static constexpr std::size_t rows = 0;
  static constexpr std::size_t wholes = 0;
  static constexpr std::size_t variables = 0;
  static constexpr std::size_t updates = 0;
  template <class Callable, std::size_t Rows, std::size_t Wholes, std::size_t Variables, std::size_t Updates>
  using layout_of = layout<Callable, Rows, Wholes, Variables, Updates>;
};

template <std::size_t N, class... Rest>
struct tag_list<rows_tag<N>, Rest...> : tag_list<Rest...> {
  static_assert(tag_list<Rest...>::rows == 0, "muster: rows() may be given once");
  static constexpr std::size_t rows = N;
};
template <std::size_t N, class... Rest>
struct tag_list<whole_tag<N>, Rest...> : tag_list<Rest...> {
  static_assert(tag_list<Rest...>::wholes == 0, "muster: whole() may be given once");
  static constexpr std::size_t wholes = N;
};
template <std::size_t N, bool Sliceable, class... Rest>
struct tag_list<variables_tag<N, Sliceable>, Rest...> : tag_list<Rest...> {
  static constexpr std::size_t variables = N + tag_list<Rest...>::variables;
};
template <std::size_t N, class... Rest>
struct tag_list<updates_tag<N>, Rest...> : tag_list<Rest...> {
  static_assert(tag_list<Rest...>::updates == 0, "muster: updates() may be given once");
  static constexpr std::size_t updates = N;
};
template <class... Rest>
struct tag_list<name_tag, Rest...> : tag_list<Rest...> {};
template <output_op... Ops, class... Rest>
struct tag_list<outputs_tag<Ops...>, Rest...> : tag_list<Rest...> {
  template <class Callable, std::size_t Rows, std::size_t Wholes, std::size_t Variables, std::size_t Updates>
  using layout_of = layout<Callable, Rows, Wholes, Variables, Updates, Ops...>;
};

/// What the tags say, as data.
class spec_builder {
public:
  template <std::size_t N>
  void add(const rows_tag<N>& tag) {
    for (const auto& each : tag.inputs) {
      spec.rows.push_back(each.name);
      spec.forms.push_back(each.form);
    }
  }
  template <std::size_t N>
  void add(const whole_tag<N>& tag) {
    spec.wholes.assign(tag.names.begin(), tag.names.end());
  }
  template <std::size_t N, bool Sliceable>
  void add(const variables_tag<N, Sliceable>& tag) {
    for (const auto& each : tag.which) {
      spec.variables.push_back({.variable = each.handle().number, .is_sliceable = Sliceable});
      used.push_back(each);
    }
  }
  template <output_op... Ops>
  void add(const outputs_tag<Ops...>& tag) {
    std::size_t index = 0;
    (spec.outputs.push_back({.name = tag.names[index++], .op = Ops}), ...);
  }
  template <std::size_t N>
  void add(const updates_tag<N>& tag) {
    for (const auto& each : tag.each) updates.push_back(each);
  }
  void add(const name_tag& tag) { spec.name = tag.name; }

  function_spec spec;
  std::vector<variable> used;
  std::vector<update_tag> updates;
};

}  // namespace detail

template <class Callable, class... Tags>
auto world::function(Callable callable, const Tags&... tags) {
  detail::require_sendable<typename detail::callable_parts<Callable>::innermost>();
  using list = detail::tag_list<Tags...>;
  using layout = typename list::template layout_of<Callable, list::rows, list::wholes, list::variables, list::updates>;
  using typed = detail::typed_function<Callable, layout>;
  detail::check_sizes<Callable, layout>();
  detail::spec_builder built;
  (built.add(tags), ...);
  detail::registered_function what{.spec = std::move(built.spec)};
  for (const auto& each : built.updates) {
    what.spec.updates.push_back(
        {.variable = each.which.handle().number, .kind = each.kind, .op = each.op, .rule = each.rule});
    built.used.push_back(each.which);
  }
  what.factory = tokens().encode(&typed::make);
  output_archive counter;
  typed::encode(counter, callable, tokens());
  what.sent.resize(counter.written());
  output_archive out(what.sent);
  typed::encode(out, callable, tokens());
  what.code = std::make_shared<typed>(std::move(callable));
  return parallel_function<layout>(enter(std::move(what), std::move(built.used)));
}

}  // namespace muster
