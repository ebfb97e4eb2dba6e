// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the arguments and results of a function of a world are: what world::function is given besides the callable.
//
//     auto step = world.function(loss_and_gradient,
//         rows("images", "labels"), whole("rate"), replicas(weights),
//         outputs(avg("loss"), max("worst")),
//         updates(reduced_into(weights, avg, sgd{.rate = 0.1})));
//
// The callable takes, in this order: a `const rank_context&` if it wants one; the rows of each input; the whole inputs;
// the variables of replicas() and sliceable(), in the order in which they are given. It returns the outputs and then
// the values of the updates: nothing, one value, or a tuple. Number and kind of them are part of the types, so that
// what does not fit does not compile.
//
// Cost: large arrays that a callable needs on the way are best tensors too. Their memory stays warm for the next call,
// where the heap gives it back to the system, and has it faulted in again, page by page.
//
// Thread safety: values; distinct objects: safe. Shared objects: safe while nobody assigns.

#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <muster/device/dtype.hpp>
#include <muster/parallel/detail/function_spec.hpp>
#include <muster/parallel/output_op.hpp>
#include <muster/parallel/rules.hpp>
#include <muster/parallel/variable.hpp>

namespace muster {

namespace detail {

struct input_tag {
  std::string name;
  input_form form = {};
};
template <class T>
concept input_name = std::convertible_to<T, std::string> || std::same_as<T, input_tag>;
template <std::size_t N>
struct rows_tag {
  std::array<input_tag, N> inputs;
};
template <std::size_t N>
struct whole_tag {
  std::array<std::string, N> names;
};
template <std::size_t N, bool Sliceable>
struct variables_tag {
  std::array<variable, N> which;
};
template <output_op Op>
struct output_tag {
  std::string name;
};
template <output_op... Ops>
struct outputs_tag {
  std::array<std::string, sizeof...(Ops)> names;
};
struct update_tag {
  variable which;
  update_kind kind = update_kind::assign;
  output_op op = output_op::avg;
  update_rule rule{};
};
template <std::size_t N>
struct updates_tag {
  std::array<update_tag, N> each;
};
struct name_tag {
  std::string name;
};

/// An output_op as an object: `avg` says the op, `avg("loss")` is an output.
template <output_op Op>
struct output_kind {
  [[nodiscard]] output_tag<Op> operator()(std::string name = {}) const { return {std::move(name)}; }
  constexpr operator output_op() const noexcept { return Op; }
};

}  // namespace detail

/// A part of muster by itself, because GCC's -Wshadow takes an enumerator `none` or `sum` of any enumeration in muster
/// for one that hides what stands beside the enumeration.
inline namespace output_kinds {

/// How an output, or an update's value, comes of those of all slices and ranks: see output_op.
///@{
inline constexpr detail::output_kind<output_op::avg> avg{};
inline constexpr detail::output_kind<output_op::sum> sum{};
inline constexpr detail::output_kind<output_op::prod> prod{};
inline constexpr detail::output_kind<output_op::min> min{};
inline constexpr detail::output_kind<output_op::max> max{};
inline constexpr detail::output_kind<output_op::gather> gather{};
inline constexpr detail::output_kind<output_op::none> none{};
inline constexpr detail::output_kind<output_op::mean_of_ranks> mean_of_ranks{};
inline constexpr detail::output_kind<output_op::count_true> count_true{};
///@}

}  // namespace output_kinds

/// An input of rows whose elements are T, and which has so many dimensions, if that is said: `rows(typed<float>("x",
/// 2))`. Others are refused before any rank is told of the call.
template <tensor_element T>
[[nodiscard]] detail::input_tag typed(std::string name, std::optional<std::size_t> dimensions = {}) {
  detail::input_tag made{.name = std::move(name), .form = {}};
  made.form = {.type = dtype_of<T>, .dimensions = dimensions};
  return made;
}

/// Inputs whose rows are dealt out to the ranks: tensors, of which each rank gets its part. Their names, or what
/// typed() gives, are for messages.
template <detail::input_name... Names>
[[nodiscard]] detail::rows_tag<sizeof...(Names)> rows(Names... names) {
  [[maybe_unused]] const auto input_of = []<class Name>(Name name) -> detail::input_tag {
    if constexpr (std::same_as<Name, detail::input_tag>) {
      return name;
    } else {
      return {.name = std::string(std::move(name))};
    }
  };
  return {{input_of(std::move(names))...}};
}

/// Inputs that every rank gets as they are: anything that can be an argument of a task.
template <std::convertible_to<std::string>... Names>
[[nodiscard]] detail::whole_tag<sizeof...(Names)> whole(Names... names) {
  return {{std::string(std::move(names))...}};
}

/// Variables that the function reads: each rank its own replica or share, whole. Not to be written to: that is what
/// updates are for.
template <std::same_as<variable>... Variables>
[[nodiscard]] detail::variables_tag<sizeof...(Variables), false> replicas(const Variables&... which) {
  return {{which...}};
}

/// Variables whose rows are data: they are dealt out to the slices of a call, and batch_s selects among them.
template <std::same_as<variable>... Variables>
[[nodiscard]] detail::variables_tag<sizeof...(Variables), true> sliceable(const Variables&... which) {
  return {{which...}};
}

/// What the caller gets. A tensor that the callable returns, here or as an update's value, is its own again when it is
/// called for the next slice, and when the call is over: it may keep one, and write each slice's value into it.
template <output_op... Ops>
[[nodiscard]] detail::outputs_tag<Ops...> outputs(detail::output_tag<Ops>... each) {
  return {{std::move(each.name)...}};
}

/// What becomes of variables. All updates of a call, in all ranks, happen or none.
template <std::same_as<detail::update_tag>... Updates>
[[nodiscard]] detail::updates_tag<sizeof...(Updates)> updates(Updates... each) {
  return {{std::move(each)...}};
}

/// The variable becomes the value, in each rank its own, joined over the rank's slices by `op`; a variable of integers
/// needs another one than avg, which is a number with a fraction. Where a rank has no rows it stays as it is.
[[nodiscard]] inline detail::update_tag assign(variable which, output_op op = output_op::avg) {
  return {std::move(which), detail::update_kind::assign, op, {}};
}
/// The value is added to the variable, in each rank its own; the old value counts once, however many slices there are.
[[nodiscard]] inline detail::update_tag increment(variable which, output_op op = output_op::sum) {
  return {std::move(which), detail::update_kind::increment, op, {}};
}
/// The value, a gradient, is joined over slices and ranks by `op`, and the rule makes of it and of the variable what
/// the variable is to be: the same bits in every rank. Where replicas differ, because one was set or updated by itself,
/// the rule begins with the master's (world_options::master_rank). What a rank offers the others is of the variable's
/// dtype: where it has several slices, their sum or mean is rounded to that first.
[[nodiscard]] inline detail::update_tag reduced_into(variable which, output_op op = output_op::avg,
                                                     const update_rule& rule = {}) {
  return {std::move(which), detail::update_kind::reduced_into, op, rule};
}

/// What messages and traces call the function.
[[nodiscard]] inline detail::name_tag named(std::string name) { return {std::move(name)}; }

}  // namespace muster
