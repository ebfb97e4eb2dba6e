// SPDX-License-Identifier: BSL-1.0
#pragma once

// Functions of a world: see world.hpp for how they are made.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/async/future.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/float_state.hpp>
#include <muster/parallel/data.hpp>
#include <muster/parallel/detail/function_access.hpp>
#include <muster/parallel/detail/typed_function.hpp>
#include <muster/parallel/row_selection.hpp>
#include <muster/pool/detail/local_task.hpp>

namespace muster {

/// An input whose rows are dealt out: a tensor, or the value of a data. Memory that ranks cannot reach is copied, once
/// a call: keep large inputs in shared memory, where tensors are by default.
class row_input {
public:
  /// The rows of a tensor, or of the value that `value` has now; throws errc::invalid_argument if it has none.
  ///@{
  row_input(const tensor& value) : value_(value) {}
  row_input(const data& value) : value_(value.value()), is_minibatch_(value.minibatch()) {}
  ///@}

  /// Returns the tensor whose rows are dealt out.
  [[nodiscard]] const tensor& value() const noexcept { return value_; }
  /// Returns whether the input is a data that holds just the selected rows: data_options::minibatch.
  [[nodiscard]] bool is_minibatch() const noexcept { return is_minibatch_; }

private:
  tensor value_;
  bool is_minibatch_ = false;
};

/// Rows of resident data that a call is for: all, the same selection in every rank, or one for each.
class resident_selection {
public:
  /// All rows, in every rank.
  resident_selection() noexcept = default;
  /// The same rows in every rank.
  template <class T>
    requires std::is_convertible_v<const T&, row_selection>
  resident_selection(const T& everywhere) : by_rank_{row_selection(everywhere)} {}
  /// Other rows in each rank, by rank. One selection is for all ranks, none means all rows.
  resident_selection(std::vector<row_selection> by_rank) : by_rank_(std::move(by_rank)) {}

  /// None: all rows. One: everywhere.
  [[nodiscard]] const std::vector<row_selection>& get() const noexcept { return by_rank_; }

private:
  std::vector<row_selection> by_rank_;
};

/// How one call is made.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct run_options {
  /// Which rows of the scattered inputs it is for, before they are dealt out. Inputs that are minibatches hold just
  /// these rows, in this order.
  row_selection batch{};
  /// Which rows of the sliceable variables, in each rank.
  resident_selection batch_s{};
  /// In how many pieces each rank computes its share, one after the other: bounds the memory that a piece takes. What
  /// comes out does not depend on it, but for the rounding of sums and for `none`, which gives one value for each
  /// piece. Pieces without rows are left out: any number from the rows of a share on computes them one by one.
  unsigned num_slices = 1;
  /// How long the call may take, if that is less than world_options::call_timeout; which says what counts.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max();
};

namespace detail {

template <class Layout, std::size_t... Wanted>
class bound_call;

}  // namespace detail

/// A function of a world. Copies of it are the same function, which is there as long as one of them is.
///
/// Calling it deals the rows of its inputs out to the ranks, which run it at once, each on its part; joins their
/// outputs as its tags say; and returns these: nothing, one value, or a tuple. Everything is checked before any rank is
/// told. A call happens as a whole or not at all: when it throws, no variable has changed.
///
/// What the library computes (joined outputs, updates, rules) is the same whatever floating-point state (rounding,
/// flushing, traps: float_state.hpp) the processes have; the callable runs in that of its process, in the program's own
/// share in the caller's, and a call leaves it as it was.
///
/// Throws errc::invalid_argument for what does not fit together, naming input, row and length; rank_error when a rank
/// threw, died or was too late; errc::pool_closed.
/// Unblocked by: the end of all shares; the death of a rank; world_options::call_timeout and run_options::timeout.
/// Thread safety: distinct objects: safe, also copies of one another. Shared objects: safe; one call of a world at a
/// time, others wait.
/// Process safety: for the process that has the world.
/// Visibility: ranks see what was written to inputs before the call, and the caller sees what ranks wrote, after it.
/// Cost: about two cache lines to and fro for each rank while all are awake; inputs in shared memory are not copied,
/// but for rows that are selected by a list, which each rank copies together for itself.
template <class Layout>
class parallel_function {
public:
  /// Of all its outputs: nothing, one value, or a tuple.
  using result = typename Layout::template result<>;

  /// Calls it with its inputs: a tensor or data for each of rows(), then a value for each of whole(). What it does and
  /// throws is said above.
  template <class... Given>
  result operator()(const Given&... given) const {
    return with({})(given...);
  }
  /// The same with options: `f.with({.batch = 100, .num_slices = 4})(x, y)`.
  [[nodiscard]] detail::bound_call<Layout> with(run_options options) const {
    return detail::bound_call<Layout>(core_, std::move(options));
  }
  /// The same with some of the outputs, in this order, which may have repeats: `f.only<2, 0>()(x, y)`. A repeat has
  /// elements of its own. The others are not joined and not sent. Updates always happen.
  template <std::size_t... Wanted>
  [[nodiscard]] detail::bound_call<Layout, Wanted...> only() const {
    static_assert(((Wanted < Layout::output_count) && ...), "muster: the function has no output with that index");
    return detail::bound_call<Layout, Wanted...>(core_, {});
  }
  /// The same in the background: a call after those that were made before it. Inputs are taken as the function takes
  /// them before this returns; of a tensor or a data the rows' memory is read when the call is made.
  /// Not to be waited for in the program's own share of a call: it is made when that call is over, so that
  /// `f.async(x).get()` waits for itself there.
  template <class... Given>
  [[nodiscard]] future<result> async(const Given&... given) const {
    return with({}).async(given...);
  }

  /// The same in this thread alone, on all rows, with the master's replicas and shares, which are the caller's if he
  /// computes, and which alone are updated. The next call that reduces an update into such a replica begins with it,
  /// for all ranks. For inputs too small to be dealt out.
  template <class... Given>
  result local(const Given&... given) const {
    return with({}).local(given...);
  }

  /// A data for each of its inputs with rows, which holds a copy of what is given here.
  template <class... Given>
  [[nodiscard]] auto build_inputs(const Given&... given) const {
    return build_inputs(data_options{}, given...);
  }
  /// The same with dtype, minibatch, force_cast and oversize as in `how`, for all of them.
  template <class... Given>
  [[nodiscard]] auto build_inputs(const data_options& how, const Given&... given) const {
    static_assert(sizeof...(Given) == Layout::row_count, "muster: build_inputs takes a value for each of rows()");
    std::size_t index = 0;
    const auto made_of = [&](const tensor& value) {
      auto one = how;
      one.value = value;
      one.name = detail::spec_of(*core_).rows[index++];
      return data(one);
    };
    return std::array<data, sizeof...(Given)>{made_of(given)...};
  }

  /// Returns the name that named() has given it; "function 1" and so on without one.
  [[nodiscard]] const std::string& name() const noexcept { return detail::spec_of(*core_).name; }
  /// By which ops its outputs are joined.
  [[nodiscard]] std::vector<output_op> output_modes() const { return detail::output_modes_of(*core_); }
  /// By which ops its updates' values are.
  [[nodiscard]] std::vector<output_op> update_modes() const { return detail::update_modes_of(*core_); }
  /// Where the time of its calls went.
  [[nodiscard]] call_profile profile() const { return detail::profile_of(*core_); }

  /// For the world.
  explicit parallel_function(std::shared_ptr<detail::function_core> core) noexcept : core_(std::move(core)) {}

private:
  std::shared_ptr<detail::function_core> core_;
};

namespace detail {

/// A function with options, ready to be called.
template <class Layout, std::size_t... Wanted>
class bound_call {
public:
  using result = typename Layout::template result<Wanted...>;

  bound_call(std::shared_ptr<function_core> core, run_options options) noexcept
      : core_(std::move(core)), options_(std::move(options)) {}

  [[nodiscard]] bound_call with(run_options options) const { return bound_call(core_, std::move(options)); }

  template <class... Given>
  result operator()(const Given&... given) const {
    return call(&run_in_ranks, taken(given...));
  }

  template <class... Given>
  result local(const Given&... given) const {
    return call(&detail::run_here, taken(given...));
  }

  template <class... Given>
  [[nodiscard]] future<result> async(const Given&... given) const {
    auto held = std::make_shared<const inputs>(taken(given...));
    auto made = [self = *this, held = std::move(held), state = float_state::of_thread()] {
      return in_float_state(state, [&] { return self.call(&run_in_ranks, *held); });
    };
    return submit_local(conductor_of(*core_), {}, true, std::move(made));
  }

private:
  // As the function takes them: what a data, or an array of characters, holds may change before a call in the
  // background is made; the memory of tensors stays.
  struct inputs {
    std::array<row_input, Layout::row_count> rows;
    typename Layout::wholes wholes;
  };
  template <class... Given>
  static inputs taken(const Given&... given) {
    static_assert(sizeof...(Given) == Layout::row_count + Layout::whole_count,
                  "muster: a function is called with its inputs: those of rows(), then those of whole()");
    return taken_at(std::forward_as_tuple(given...), std::make_index_sequence<Layout::row_count>(),
                    std::make_index_sequence<Layout::whole_count>());
  }
  template <class Given, std::size_t... Row, std::size_t... Whole>
  static inputs taken_at([[maybe_unused]] const Given& given, std::index_sequence<Row...> /*rows*/,
                         std::index_sequence<Whole...> /*wholes*/) {
    return {.rows = {row_input(std::get<Row>(given))...}, .wholes = {std::get<Layout::row_count + Whole>(given)...}};
  }

  result call(void (*how)(function_core&, run_request&), const inputs& given) const {
    auto outputs = Layout::accumulators(spec_of(*core_));
    run_request request{.inputs = {}, .options = {}, .outputs = Layout::template mask<Wanted...>()};
    for (const auto& each : given.rows) request.inputs.push_back({each.value(), each.is_minibatch()});
    request.options = {.batch = &options_.batch,
                       .resident = &options_.batch_s.get(),
                       .slices = options_.num_slices,
                       .timeout = options_.timeout};
    request.write_values = [&given](frame_writer& out) { Layout::write(given.wholes, out); };
    request.read_outputs = [&outputs, mask = request.outputs](frame_reader& in) { Layout::merge(outputs, mask, in); };
    std::optional<typename Layout::template stored<Wanted...>> made;
    request.finish_outputs = [&] { made = Layout::template finish<Wanted...>(outputs); };
    how(*core_, request);
    return Layout::template unpack<Wanted...>(std::move(*made));
  }

  std::shared_ptr<function_core> core_;
  run_options options_;
};

}  // namespace detail

}  // namespace muster
