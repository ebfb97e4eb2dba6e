// SPDX-License-Identifier: BSL-1.0
#pragma once

// Functions of a world of several forms, all of which give the sums of the columns of what they are given, joined in
// every way that there is; and what one process makes of the same rows.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/device/tensor_compare.hpp>
#include <muster/parallel/world.hpp>

namespace muster::world_random_test {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

/// Numbers are joined in these: integers wrap around.
template <class T>
using wide = std::conditional_t<std::is_integral_v<T>,
                                std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>, double>;
/// What every row has: one number in each of its places, however many dimensions it has.
template <class T>
using columns = std::vector<wide<T>>;

template <class T>
T narrow(wide<T> value) {
  if constexpr (is_half<T>) {
    return T(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else {
    return static_cast<T>(value);
  }
}

/// How far sums and means may be from exact ones, as a part of what was summed up: they are kept in double, and rounded
/// once.
template <class T>
inline constexpr double tolerance = is_half<T> ? (std::is_same_v<T, f16> ? 0.01 : 0.08) : 1e-6;
/// The same of what is rounded more often: variables, since what ranks offer is of their dtype, in which the rule
/// computes; products five times of that.
template <class T>
inline constexpr double update_tolerance = is_half<T> ? tolerance<T> : 2e-6;

template <class T>
tensor as_tensor(const columns<T>& values, const tensor_shape& shape) {
  auto made = tensor::empty<T>(shape);
  std::ranges::transform(values, made.template span<T>().begin(), narrow<T>);
  return made;
}

inline tensor_shape with_one_row(const tensor_shape& of) {
  tensor_shape made{1};
  for (const auto size : of) made.push_back(size);
  return made;
}

/// What a function is given: some inputs with rows, what all ranks get, and the rank's own replica of a variable.
struct form {
  std::size_t inputs = 0;
  bool has_whole = false;
  bool reads = false;

  [[nodiscard]] constexpr std::size_t arguments() const {
    return inputs + static_cast<std::size_t>(has_whole) + static_cast<std::size_t>(reads);
  }
};
inline std::ostream& operator<<(std::ostream& out, const form& what) {
  return out << what.inputs << " inputs" << (what.has_whole ? ", a whole one" : "")
             << (what.reads ? ", a replica" : "");
}

inline constexpr std::array forms = {form{2, false, false}, form{0, false, true}, form{0, true, true},
                                     form{1, true, false},  form{1, false, true}, form{2, true, true},
                                     form{3, false, false}, form{3, true, true}};

/// What is made of a variable's value, so that it does not grow from call to call.
template <class T>
wide<T> bounded(wide<T> value) {
  if constexpr (std::is_integral_v<T>) {
    return value % 8;
  } else {
    return value / (1 + std::abs(value));
  }
}

/// The sums of the columns of all that a function of that form is given.
template <class T>
columns<T> sums_of(const form& what, std::span<const tensor> given) {
  columns<T> sums(what.inputs > 0 ? given[0].size() / given[0].rows() : given[0].size());
  for (std::size_t index = 0; index < given.size(); ++index) {
    const bool is_replica = what.reads && index + 1 == given.size();
    const auto whole = given[index].contiguous();
    const auto values = whole.span<T>();
    for (std::size_t at = 0; at < values.size(); ++at) {
      const auto value = static_cast<wide<T>>(values[at]);
      sums[at % sums.size()] += is_replica ? bounded<T>(value) : value;
    }
  }
  for (auto& each : sums) each = static_cast<wide<T>>(narrow<T>(each));
  return sums;
}

using everything_of =
    std::tuple<tensor, tensor, tensor, tensor, tensor, int, int, tensor, tensor, tensor, tensor, tensor, tensor>;

template <class T>
everything_of everything(const form& what, std::span<const tensor> given) {
  const auto inner = what.inputs > 0 ? given[0].shape().without_first() : given[0].shape();
  const auto sums = as_tensor<T>(sums_of<T>(what, given), inner);
  const auto rows = what.inputs > 0 ? given[0] : sums.reshape(with_one_row(inner));
  const auto count = static_cast<int>(rows.rows());
  return {sums, sums, sums, sums, rows, count, count, sums, sums, sums, sums, sums, sums};
}

template <std::size_t>
using each_tensor = const tensor&;
/// What a function of that form calls, by what its numbers are.
template <class T, form Form, class Arguments = std::make_index_sequence<Form.arguments()>>
struct callable_of;
template <class T, form Form, std::size_t... Index>
struct callable_of<T, Form, std::index_sequence<Index...>> {
  static everything_of call(each_tensor<Index>... given) {
    const std::array<tensor, sizeof...(Index)> all = {given...};
    return everything<T>(Form, all);
  }
  using pointer = decltype(&call);
};

/// What one slice of one rank gives.
template <class T>
struct piece {
  std::size_t rank = 0;
  std::size_t rows = 0;
  columns<T> sums{};
};

template <class T>
wide<T> joined(output_op op, wide<T> a, wide<T> b) {
  if (op == output_op::min) return std::min(a, b);
  if (op == output_op::max) return std::max(a, b);
  if constexpr (std::is_integral_v<T>) {
    const auto left = static_cast<std::uint64_t>(a);
    const auto right = static_cast<std::uint64_t>(b);
    return static_cast<wide<T>>(op == output_op::prod ? left * right : left + right);
  } else {
    return op == output_op::prod ? a * b : a + b;
  }
}
template <class T>
columns<T> join(output_op op, const std::vector<piece<T>>& pieces) {
  auto made = pieces.front().sums;
  for (std::size_t index = 1; index < pieces.size(); ++index) {
    for (std::size_t column = 0; column < made.size(); ++column) {
      made[column] = joined<T>(op, made[column], pieces[index].sums[column]);
    }
  }
  return made;
}
template <class T>
std::vector<double> average(const std::vector<piece<T>>& pieces) {
  std::vector<double> made(pieces.front().sums.size());
  double rows = 0;
  for (const auto& each : pieces) {
    for (std::size_t column = 0; column < made.size(); ++column) {
      made[column] += static_cast<double>(each.rows) * static_cast<double>(each.sums[column]);
    }
    rows += static_cast<double>(each.rows);
  }
  for (auto& each : made) each /= rows;
  return made;
}
template <class T>
std::vector<double> mean_of_averages(const std::vector<piece<T>>& pieces) {
  std::vector<double> made(pieces.front().sums.size());
  double ranks = 0;
  for (std::size_t first = 0, last = 0; first < pieces.size(); first = last) {
    const auto is_of_rank = [&](const piece<T>& each) { return each.rank == pieces[first].rank; };
    while (last < pieces.size() && is_of_rank(pieces[last])) ++last;
    const auto begin = pieces.begin() + static_cast<std::ptrdiff_t>(first);
    const auto own = average<T>({begin, begin + static_cast<std::ptrdiff_t>(last - first)});
    for (std::size_t column = 0; column < made.size(); ++column) made[column] += own[column];
    ++ranks;
  }
  for (auto& each : made) each /= ranks;
  return made;
}
template <class T>
columns<T> join_or_average(output_op op, const std::vector<piece<T>>& pieces) {
  if constexpr (!std::is_integral_v<T>) {
    if (op == output_op::avg) return average<T>(pieces);
  }
  return join<T>(op, pieces);
}

// Bools have no average.
template <bool HasAverages>
auto first_output() {
  if constexpr (HasAverages) {
    return avg("first");
  } else {
    return max("first");
  }
}
template <bool HasAverages>
auto mean_output() {
  if constexpr (HasAverages) {
    return mean_of_ranks("mean");
  } else {
    return min("mean");
  }
}
template <std::size_t Count>
auto inputs_with_rows() {
  if constexpr (Count == 0) return rows();
  if constexpr (Count == 1) return rows("x");
  if constexpr (Count == 2) return rows("x", "y");
  if constexpr (Count == 3) return rows("x", "y", "z");
}
template <bool HasWhole>
auto whole_inputs() {
  if constexpr (HasWhole) {
    return whole("all");
  } else {
    return whole();
  }
}
template <bool Reads>
auto replicas_of([[maybe_unused]] const variable& which) {
  if constexpr (Reads) {
    return replicas(which);
  } else {
    return replicas();
  }
}

struct use_of_variables {
  std::array<variable, 3> changed;  ///< the first is read
  std::array<output_op, 3> ops;
  update_rule rule;
};

template <bool HasAverages, form Form, class Callable>
auto make_function(world& w, const use_of_variables& how, Callable what) {
  return w.function(what, inputs_with_rows<Form.inputs>(), whole_inputs<Form.has_whole>(),
                    replicas_of<Form.reads>(how.changed[0]),
                    outputs(first_output<HasAverages>(), sum("sum"), min("min"), max("max"), gather("rows"),
                            sum("count"), none("counts"), prod("product"), mean_output<HasAverages>(), none("each")),
                    updates(assign(how.changed[0], how.ops[0]), increment(how.changed[1], how.ops[1]),
                            reduced_into(how.changed[2], how.ops[2], how.rule)));
}

/// What a call is given.
struct call_inputs {
  run_options options{};
  std::vector<row_input> rows{};
  tensor whole{};
};

/// Those outputs that were asked for.
struct call_outputs {
  std::optional<tensor> first{};
  std::optional<tensor> sums{};
  std::optional<tensor> least{};
  std::optional<tensor> most{};
  std::optional<tensor> gathered{};
  std::optional<int> count{};
  std::optional<std::vector<int>> counts{};
  std::optional<tensor> product{};
  std::optional<tensor> mean{};
  std::optional<std::vector<tensor>> each{};
};

enum class asked : std::uint8_t { all, rows_and_sums, counts_and_first, each_and_means, what_nothing_has };
inline constexpr std::size_t asked_of_some = 4;

/// A function of whatever form.
class callee {
public:
  callee() = default;
  callee(const callee&) = delete;
  callee& operator=(const callee&) = delete;
  virtual ~callee() = default;
  [[nodiscard]] virtual call_outputs call(asked what, const call_inputs& given) = 0;
};

// One for all types of numbers: each takes the compiler a second.
template <bool HasAverages, form Form>
class callee_of final : public callee {
public:
  using callable = typename callable_of<float, Form>::pointer;  // of the others it is the same

  callee_of(world& w, const use_of_variables& how, callable what)
      : f_(make_function<HasAverages, Form>(w, how, what)) {}

  call_outputs call(asked what, const call_inputs& given) override {
    const auto& options = given.options;
    call_outputs found;
    switch (what) {
      case asked::all:
        std::tie(found.first, found.sums, found.least, found.most, found.gathered, found.count, found.counts,
                 found.product, found.mean, found.each) = invoke(f_.with(options), given);
        break;
      case asked::rows_and_sums: {
        tensor again;
        std::tie(found.gathered, found.sums, again) = invoke(f_.template only<4, 1, 1>().with(options), given);
        EXPECT_TRUE(equal(again, *found.sums));
        break;
      }
      case asked::counts_and_first:
        std::tie(found.counts, found.first) = invoke(f_.template only<6, 0>().with(options), given);
        break;
      case asked::each_and_means:
        std::tie(found.each, found.product, found.mean) = invoke(f_.template only<9, 7, 8>().with(options), given);
        break;
      case asked::what_nothing_has:
        std::tie(found.count, found.counts, found.each) = invoke(f_.template only<5, 6, 9>().with(options), given);
        break;
    }
    return found;
  }

private:
  using function_type = decltype(make_function<HasAverages, Form>(
      std::declval<world&>(), std::declval<const use_of_variables&>(), std::declval<callable>()));

  template <class Call>
  static auto invoke(const Call& call, const call_inputs& given) {
    return [&]<std::size_t... Row>(std::index_sequence<Row...> /*inputs*/) {
      if constexpr (Form.has_whole) {
        return call(given.rows[Row]..., given.whole);
      } else {
        return call(given.rows[Row]...);
      }
    }(std::make_index_sequence<Form.inputs>());
  }

  function_type f_;
};

template <class T>
std::unique_ptr<callee> make_callee(std::size_t which, world& w, const use_of_variables& how) {
  std::unique_ptr<callee> made;
  const auto make = [&]<std::size_t Index>(std::integral_constant<std::size_t, Index> /*form*/) {
    constexpr auto form = forms[Index];
    made = std::make_unique<callee_of<!std::is_same_v<T, bool>, form>>(w, how, &callable_of<T, form>::call);
  };
  [&]<std::size_t... Index>(std::index_sequence<Index...> /*forms*/) {
    ((which == Index ? make(std::integral_constant<std::size_t, Index>()) : void()), ...);
  }(std::make_index_sequence<forms.size()>());
  return made;
}

}  // namespace muster::world_random_test
