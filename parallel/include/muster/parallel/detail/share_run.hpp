// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/float_state.hpp>
#include <muster/parallel/detail/function_spec.hpp>
#include <muster/parallel/detail/inputs_ahead.hpp>
#include <muster/parallel/detail/share_inputs.hpp>
#include <muster/parallel/detail/tensor_accumulator.hpp>
#include <muster/parallel/detail/world_call_header.hpp>
#include <muster/parallel/rank_context.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster::detail {

/// What a rank offers the others of one reduced update: the value that its rows gave.
struct contribution {
  bool some = false;  ///< it had rows
  double weight = 0;
  tensor value{};

  void write_to(frame_writer& out) const;
  [[nodiscard]] static contribution read_from(frame_reader& in);
};

/// How ranks read one another's contributions.
///
/// Thread safety: as the implementation.
class contribution_exchange {
public:
  /// Offers one's own and waits until all ranks have offered theirs: by rank, then by update.
  /// Throws call_dropped when the call is aborted meanwhile.
  [[nodiscard]] virtual std::vector<std::vector<contribution>> exchange(std::vector<contribution> own) = 0;
  /// The share has failed now: others may fail because of it, and are to be told from it by the order.
  virtual void note_failure() noexcept {}

protected:
  ~contribution_exchange() = default;
};

/// The call that a rank is at has been aborted.
struct call_dropped {};

/// Divides the time of a call among what it was spent on: one reading of the clock for each part.
class stopwatch {
public:
  /// Begins where no time counts.
  void begin() noexcept { last_ = clock::now(); }
  /// What has passed since the last reading goes to `sum`.
  void lap(float& sum) noexcept {
    const auto now = clock::now();
    const auto passed = now - std::exchange(last_, now);
    in_fixed_float_state([&] { sum += std::chrono::duration<float, std::nano>(passed).count(); });
  }

private:
  clock::time_point last_{};
};

/// One rank's part in one call: what the typed code of a function needs of it.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: borrows everything.
class share_run {
public:
  struct surroundings {
    const function_spec& spec;
    const world_call_header& header;
    const sent_call& call;
    std::size_t rank;
    std::size_t ranks;
    std::size_t master;  ///< whose replica updates that are reduced begin with
    variable_table& variables;
    contribution_exchange& others;
    std::vector<tensor>& buffers;
    muster::device device = muster::device::cpu();  ///< where the function's tensors are to lie
  };

  explicit share_run(const surroundings& around);

  [[nodiscard]] const function_spec& spec() const noexcept { return around_.spec; }
  [[nodiscard]] bool wants(std::size_t output) const noexcept { return (around_.header.outputs >> output & 1U) != 0; }

  /// Calls `one` for each slice that has rows, with what the function gets, how many rows that is, and whether it is
  /// the last one.
  template <class One>
  void each_slice(const One& one) {
    for (std::size_t index = 0; index < inputs_.slices(); ++index) {
      const auto rows = inputs_.rows_of(index);
      if (rows.empty() && spec().has_rows()) continue;
      const auto context = context_of(index, rows);
      const auto given = take(index, rows);
      if (!given.empty()) watch_.lap(times_.scatter);
      one(context, given, spec().has_rows() ? static_cast<double>(rows.size()) : 1.0, rows.last == inputs_.size());
    }
  }

  /// Moves what all ranks get to where the function's tensors are to lie, if it is a tensor.
  template <class... Wholes>
  void place(std::tuple<Wholes...>& values) const {
    const auto place_all = [where = around_.device](auto&... each) { (place_one(each, where), ...); };
    std::apply(place_all, values);
  }

  /// Of one slice. Requires: index < spec().updates.size().
  void add_update(std::size_t index, const tensor& value, double weight);
  /// What was added may change from now on. For who goes on to add.
  void make_updates_own();
  /// Writes what the variables are to be. Throws errc::invalid_argument for values that do not fit them.
  void finish_updates();

  /// The device has done what the call has asked of it.
  void note_settled() noexcept { watch_.lap(times_.reduce); }
  /// What keeps the memory mapped in which other ranks offered what this one has read.
  [[nodiscard]] std::vector<std::shared_ptr<const void>> take_mappings() noexcept { return std::move(mappings_); }

  [[nodiscard]] const rank_times& times() const noexcept { return times_; }
  /// The function has thrown.
  void note_failure() noexcept { around_.others.note_failure(); }
  /// The function has returned; what follows is not its time.
  void note_computed() noexcept { watch_.lap(times_.compute); }
  /// Its values have been taken in.
  void note_accumulated() noexcept { watch_.lap(times_.accumulate); }

private:
  template <class Value>
  static void place_one([[maybe_unused]] Value& value, [[maybe_unused]] muster::device where) {
    if constexpr (std::is_same_v<Value, tensor>) value = value.to(where);
  }
  void send_variables();
  [[nodiscard]] rank_context context_of(std::size_t slice, row_range rows) const;
  [[nodiscard]] std::vector<tensor> take(std::size_t slice, row_range rows);

  struct updated {
    tensor live;
    tensor next;
  };
  [[nodiscard]] std::size_t place_of(std::size_t update) const noexcept;
  [[nodiscard]] updated own_copies(std::size_t update) const;
  [[nodiscard]] tensor value_for(std::size_t update, const tensor& variable) const;
  void update_here(std::size_t update);
  void update_together();
  void finish_computing();
  void require_fitting(std::span<const std::vector<contribution>> offered) const;
  void leave_as_it_is(std::size_t update);
  void reduce(std::size_t update, std::size_t which, std::span<const std::vector<contribution>> offered);
  void reduce_there(std::size_t update, std::size_t which, std::span<const std::vector<contribution>> offered);

  const surroundings around_;
  share_inputs inputs_;
  inputs_ahead ahead_;
  std::vector<tensor_accumulator> updates_;
  std::vector<std::shared_ptr<const void>> mappings_;
  rank_times times_;
  stopwatch watch_;
};

/// What a rank's outputs are, kept until the call is over.
class rank_outputs {
public:
  rank_outputs() = default;
  rank_outputs(const rank_outputs&) = delete;
  rank_outputs& operator=(const rank_outputs&) = delete;
  virtual ~rank_outputs() = default;

  /// May be called several times.
  virtual void write_to(frame_writer& out) = 0;
};

/// A function of a world as a rank runs it.
///
/// Thread safety: one call at a time.
class rank_function {
public:
  rank_function() = default;
  rank_function(const rank_function&) = delete;
  rank_function& operator=(const rank_function&) = delete;
  virtual ~rank_function() = default;

  /// Reads the values that all ranks get from `values` and runs the rank's share. Returns its outputs; null for a
  /// function that has none. Throws what the function throws.
  [[nodiscard]] virtual std::unique_ptr<rank_outputs> run(share_run& share, frame_reader& values) = 0;
  /// Whether its values, or outputs, are encoded by archives: then `values` is an input_archive, and what outputs are
  /// written to an output_archive. Making one costs as much as a short call.
  [[nodiscard]] virtual bool has_archived_values() const noexcept = 0;
  [[nodiscard]] virtual bool has_archived_outputs() const noexcept = 0;
};

/// Makes one of what was sent of it.
using rank_function_factory = std::unique_ptr<rank_function>(input_archive& sent, token_decoder& decoder);

}  // namespace muster::detail
