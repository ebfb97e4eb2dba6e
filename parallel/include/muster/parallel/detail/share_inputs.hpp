// SPDX-License-Identifier: BSL-1.0
#pragma once

// What one rank's share of a call is, and its slices.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <muster/device/tensor.hpp>
#include <muster/parallel/detail/function_spec.hpp>
#include <muster/parallel/detail/rank_variable.hpp>
#include <muster/parallel/detail/world_call_header.hpp>
#include <muster/parallel/row_range.hpp>
#include <muster/serialize/detail/frame_stream.hpp>

namespace muster::detail {

/// Rows that a call is for, as they travel: a range, or a list that lies in a tensor.
struct sent_rows {
  row_range range{};
  bool is_list = false;
  tensor list{};  ///< i64

  [[nodiscard]] std::size_t size() const noexcept { return is_list ? list.size() : range.size(); }

  void write_to(frame_writer& out) const;
  [[nodiscard]] static sent_rows read_from(frame_reader& in);
};

/// An input that is dealt out.
struct sent_input {
  tensor value;
  bool is_by_position = false;  ///< its rows are the positions in the list; of a minibatch
};

/// Everything of a call that is not the function's own values.
struct sent_call {
  sent_rows rows;  ///< of the inputs
  std::vector<sent_input> inputs;
  std::vector<sent_rows> resident;  ///< of sliceable variables: none for all rows, one for all ranks, or by rank
  std::vector<named_copy> live;     ///< by place in live_order()

  /// Only what a function with this spec has: nothing, for one that has neither rows nor variables.
  void write_to(frame_writer& out, const function_spec& spec) const;
  [[nodiscard]] static sent_call read_from(frame_reader& in, const function_spec& spec);
};

/// The variables whose live copies a call names: those it reads, those it updates, what its rules remember.
[[nodiscard]] std::vector<std::uint32_t> live_order(const function_spec& spec);
[[nodiscard]] std::size_t live_count(const function_spec& spec) noexcept;

/// The share of one rank.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: borrows everything.
class share_inputs {
public:
  share_inputs(const function_spec& spec, const sent_call& call, const world_call_header& header, std::size_t rank,
               std::size_t ranks, const variable_table& variables);

  /// How many rows the share has; 1 where the function has no rows.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// As many as the call has, but no more than rows: all have some, unless there are none at all. At least 1.
  [[nodiscard]] std::size_t slices() const noexcept { return slices_; }
  /// Which rows slice `index` has, counted in the share.
  [[nodiscard]] row_range rows_of(std::size_t index) const noexcept;
  /// Of the first of them in the selection of all ranks; of resident rows, in this rank's.
  [[nodiscard]] std::size_t first_row() const noexcept { return share_.first; }
  /// What the function gets for those rows: its inputs, then its variables. `buffers` are for rows that must be copied
  /// together, and are used again.
  [[nodiscard]] std::vector<tensor> take(row_range rows, std::vector<tensor>& buffers) const;
  /// How many inputs there are, which come first in that.
  [[nodiscard]] std::size_t count() const noexcept { return spec_.rows.size(); }
  /// Whether an input's rows must be copied together; otherwise they are a view of it.
  [[nodiscard]] bool is_gathered(std::size_t input) const noexcept {
    return call_.rows.is_list && !call_.inputs[input].is_by_position;
  }
  /// Requires: not is_gathered(input).
  [[nodiscard]] tensor view_of(std::size_t input, row_range rows) const;

private:
  [[nodiscard]] const tensor& value_of(std::size_t use) const;
  [[nodiscard]] tensor take_input(std::size_t index, row_range rows, tensor& buffer) const;
  [[nodiscard]] tensor take_variable(std::size_t index, row_range rows, tensor& buffer) const;

  const function_spec& spec_;
  const sent_call& call_;
  std::size_t rank_;
  const variable_table& variables_;
  row_range share_;
  std::size_t size_ = 1;
  std::size_t slices_ = 1;
};

/// Which elements of a variable, of `size`, a rank joins and updates.
[[nodiscard]] row_range elements_of(std::size_t size, std::size_t rank, std::size_t ranks) noexcept;

/// Copies rows of a tensor together, where they lie, into `buffer`, which is replaced if it does not fit or somebody
/// else has it too.
void take_rows(const tensor& from, std::span<const std::int64_t> rows, tensor& buffer);

}  // namespace muster::detail
