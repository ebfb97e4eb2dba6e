// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <muster/collectives/detail/combine.hpp>
#include <muster/collectives/detail/rank_end.hpp>
#include <muster/collectives/reduction.hpp>
#include <muster/device/tensor.hpp>

#include "call_frame.hpp"
#include "device_calls.hpp"
#include "device_member.hpp"
#include "local_tensor.hpp"
#include "overlap_check.hpp"

namespace muster::detail {

/// The collective operations of one rank. Where all ranks' tensors lie on devices that have joined one another
/// (device_member.hpp), devices do them directly, which costs one exchange before and one behind (device_calls.hpp).
/// Else they are done on the host.
///
/// With n ranks and S bytes per rank, an operation takes one of two ways; all ranks choose the same, from the sizes:
///   * *inline*, for contributions that fit into the slots: each rank writes its contribution into its slot, all
///     exchange, each computes its own results from the slots. One exchange; (n+1)·S bytes read and 2·S written per
///     rank for all_reduce.
///   * *in place*: ranks exchange where their tensors lie, read and write them there, and exchange again. Work is cut
///     into n parts so that each byte is written by one rank: all_reduce, reduce and broadcast by slices of the result
///     (rank r does the r-th slice, for everybody), the others by whose result it is. Two exchanges; per rank, for
///     all_reduce and broadcast, S bytes read and S written at most. Of more than 16 ranks none writes into another's
///     tensor: each makes its slice, all exchange, and each copies the others' slices: three exchanges, and as much
///     again read. Tensors that do not lie in the domain, or are not contiguous, are copied into it and back.
///
/// Elements are combined in the order of ranks by whoever computes them, so all ranks get the same bits in every run.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: borrows the rank's end.
class collective_calls {
public:
  explicit collective_calls(rank_end& end);

  void barrier(const call_options& how);
  void broadcast(const tensor& what, std::size_t root, const call_options& how);
  void reduce(const tensor& in, const tensor* out, std::size_t root, const reduction& with, const call_options& how);
  void all_reduce(const tensor& in, const tensor& out, const reduction& with, const call_options& how);
  /// In place, by a copy of all of them in one row.
  void all_reduce(std::span<const tensor> what, const reduction& with, const call_options& how);
  /// `out`: nullptr where it is to be made. Returns the result at the root, an empty tensor elsewhere.
  tensor gather(const tensor& in, const tensor* out, std::size_t root, const call_options& how);
  tensor all_gather(const tensor& in, const tensor* out, const call_options& how);
  /// `in`: at the root.
  void scatter(const tensor* in, const tensor& out, std::size_t root, const call_options& how);
  tensor scatter(const tensor* in, std::size_t root, const call_options& how);
  void reduce_scatter(const tensor& in, const tensor& out, const reduction& with, const call_options& how);
  /// Row counts for each rank.
  tensor all_to_all(const tensor& in, std::span<const std::size_t> rows, const tensor* out, const call_options& how);
  /// As many for each.
  void all_to_all(const tensor& in, const tensor& out, const call_options& how);
  /// The root's bytes, on all ranks.
  std::vector<std::byte> broadcast_bytes(std::span<const std::byte> bytes, std::size_t root, const call_options& how);
  /// Instead of any call, of which this rank knows beforehand that it cannot make it: the others refuse theirs. Throws
  /// `failure`.
  void refuse(const std::exception_ptr& failure, const call_options& how);
  /// What this rank has of a transport between devices.
  [[nodiscard]] device_member& devices() noexcept { return devices_; }
  /// Two numbers of every rank.
  std::vector<std::array<std::uint64_t, 2>> exchange_numbers(std::array<std::uint64_t, 2> own, const call_options& how);

private:
  // Some of a contribution's elements.
  struct range {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  // Blocks of others are mapped for one call.
  class mapping_scope;

  void require_root(std::size_t root) const;
  [[nodiscard]] range slice_of(std::size_t rank, std::size_t count, dtype type) const noexcept;
  enum class access : std::uint8_t { read, write };
  [[nodiscard]] std::byte* map(const tensor_place& where, std::size_t bytes, access how);
  void unmap() noexcept;
  [[nodiscard]] const std::byte* source(const call_frame& frame, std::size_t rank, const tensor& own);
  // Refuses the call where what one rank writes lies where another reads or writes. `read`, `written`: of a rank's
  // tensors in place, how many elements.
  template <class Read, class Written>
  void require_ranks_apart(const call_frame& frame, Read read, Written written);
  void require_ranks_apart(const call_frame& frame);
  void find_inputs(const call_frame& frame, const tensor& own);
  void join_inputs(dtype type, const reduction& with, std::size_t count, std::size_t result_bytes);
  void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, std::size_t result_bytes);
  void combine_range(const call_frame& frame, const reduction& with, const range& of);
  template <class Describe>
  void reduce_to_all(call_frame& frame, const tensor& in, const tensor& out, const reduction& with,
                     const call_options& how, Describe describe);
  void reduce_slices(const call_frame& frame, const reduction& with, const tensor& in, const tensor* out);
  void collect_slices(const call_frame& frame, const tensor& out);
  void broadcast_slices(const call_frame& frame, const tensor& own);
  void offer(call_frame& frame, std::initializer_list<const tensor*> tensors);
  void offer(call_frame& frame, std::initializer_list<const tensor*> tensors, const reduction& with);
  [[nodiscard]] device_calls directly(const call_frame& frame, const call_options& how);
  tensor gather_rows(collective kind, const tensor& in, const tensor* out, std::size_t root, const call_options& how);
  void collect(const call_frame& frame, const tensor& in, std::byte* to);
  void take_share(const call_frame& frame, const tensor* in, std::size_t root, const range& of, dtype type,
                  local_output& to);

  rank_end& end_;
  device_member devices_;
  // Of the present call, kept to be used again.
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  std::vector<std::size_t> equal_rows_;
  std::vector<placed_bytes> placed_;
  std::vector<shared_block> mapped_;  // the first `mapped_count_` of them; the others are handles to borrow into
  std::size_t mapped_count_ = 0;
};

template <class Read, class Written>
void collective_calls::require_ranks_apart(const call_frame& frame, Read read, Written written) {
  placed_.clear();
  const auto item = dtype_size(frame.own.type);
  const auto add = [&](const tensor_place& where, std::uint64_t count, std::size_t rank, bool is_written) {
    if (where.name == 0 || count == 0) return;
    placed_.push_back({.block = where.name,
                       .first = where.offset,
                       .last = where.offset + count * item,
                       .rank = rank,
                       .is_written = is_written});
  };
  for (std::size_t rank = 0; rank < frame.size(); ++rank) {
    if (!frame.headers()[rank].is_in_place()) continue;
    add(frame.in_of(rank), read(rank), rank, false);
    add(frame.out_of(rank), written(rank), rank, true);
  }
  require_apart(frame, placed_);
}

}  // namespace muster::detail
