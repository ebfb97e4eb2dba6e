// SPDX-License-Identifier: BSL-1.0
// What the operations have in common, and those that reduce or broadcast.
#include "collective_calls.hpp"

#include <algorithm>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/detail/stores.hpp>

#include "mapping_scope.hpp"
#include "tensor_list.hpp"

namespace muster::detail {

namespace {

constexpr std::size_t line_bytes = 64;

// Up to so many ranks write into one another's results. Each such block takes a hold, of which a domain has 65536 by
// default; more ranks only read.
constexpr std::size_t most_pushing = 16;
bool pushes(const call_frame& frame) { return frame.size() <= most_pushing; }

void require_same(const char* operation, const tensor& in, const tensor& out) {
  if (in.dtype() == out.dtype() && in.shape() == out.shape()) return;
  throw error(errc::invalid_argument,
              text(operation, ": the input is ", in.dtype(), ' ', in.shape(), " and the output is ", out.dtype(), ' ',
                   out.shape(), "; they must be of the same type and shape"));
}

void describe_reduction(call_frame& frame, const tensor& in, const reduction& with) {
  with.require(in.dtype());
  frame.own.op = with.op();
  frame.own.type = in.dtype();
  frame.own.count = in.size();
  frame.own.fingerprint = fingerprint().add(in.shape()).add(with.fingerprint()).value();
  frame.confirms = with.op() == reduction_op::custom;  // it may throw on one rank, and not on another
}

}  // namespace

collective_calls::collective_calls(rank_end& end) : end_(end), devices_(end) {
  inputs_.reserve(end.size());
  outputs_.reserve(end.size());
  mapped_.reserve(2 * end.size());
  placed_.reserve(2 * end.size());
}

void collective_calls::unmap() noexcept {
  for (; mapped_count_ > 0; --mapped_count_) end_.where()->blocks().unkeep(mapped_[mapped_count_ - 1]);
}

void collective_calls::require_root(std::size_t root) const {
  if (root < end_.size()) return;
  throw error(errc::invalid_argument, text("root ", root, " was given: the group's ranks are 0 to ", end_.size() - 1));
}

// ---- devices

void collective_calls::offer(call_frame& frame, std::initializer_list<const tensor*> tensors) {
  if (devices_.offers(tensors)) frame.own.flags |= call_header::on_device;
}

void collective_calls::offer(call_frame& frame, std::initializer_list<const tensor*> tensors, const reduction& with) {
  if (!devices_.offers(tensors)) return;
  const auto plan =
      plan_reduction(devices_.transport(), with, frame.own.type, end_.size(), end_.memory().shape().is_ordered);
  if (plan.how != reduction_plan::way::none) frame.own.flags |= call_header::on_device;
}

device_calls collective_calls::directly(const call_frame& frame, const call_options& how) {
  return {devices_, end_, name_of(frame.own.kind), how};
}

// By cache lines, so that no two ranks write into the same.
collective_calls::range collective_calls::slice_of(std::size_t rank, std::size_t count, dtype type) const noexcept {
  const auto per_line = line_bytes / dtype_size(type);
  const auto lines = (count + per_line - 1) / per_line;
  const auto first = std::min(count, lines * rank / end_.size() * per_line);
  const auto last = std::min(count, lines * (rank + 1) / end_.size() * per_line);
  return {.first = first, .count = last - first};
}

// What is only read need not be held: should its owner die, the call ends with that (rank_end::confirm). What is
// written is: else somebody else could get the memory meanwhile.
std::byte* collective_calls::map(const tensor_place& where, std::size_t bytes, access how) {
  if (bytes == 0) return nullptr;
  auto& blocks = end_.where()->blocks();
  if (mapped_count_ == mapped_.size()) mapped_.emplace_back();
  auto& block = mapped_[mapped_count_];
  blocks.borrow_into(block, where.name);
  ++mapped_count_;
  if (how == access::write) blocks.keep(block);
  if (where.offset > block.size() || bytes > block.size() - where.offset) {
    throw error(errc::corrupted, text("a tensor of ", bytes, " bytes at ", where.offset, " of a block of ",
                                      block.size(), " was named by another rank, which misbehaves"));
  }
  return block.data() + where.offset;
}

const std::byte* collective_calls::source(const call_frame& frame, std::size_t rank, const tensor& own) {
  const auto& header = frame.headers()[rank];
  if (!header.is_in_place()) return frame.data(rank);
  return rank == frame.rank() ? own.const_data()
                              : map(frame.in_of(rank), header.count * dtype_size(header.type), access::read);
}

void collective_calls::find_inputs(const call_frame& frame, const tensor& own) {
  inputs_.clear();
  for (std::size_t rank = 0; rank < frame.size(); ++rank) inputs_.push_back(source(frame, rank, own));
}

// Where all tensors are of one size.
void collective_calls::require_ranks_apart(const call_frame& frame) {
  const auto all = [&](std::size_t /*rank*/) { return frame.own.count; };
  require_ranks_apart(frame, all, all);
}

// ---- barrier, numbers, bytes

void collective_calls::barrier(const call_options& how) {
  call_frame frame(end_, collective::barrier, 0, how);
  frame.run([] {}, [] {});
}

std::vector<std::array<std::uint64_t, 2>> collective_calls::exchange_numbers(std::array<std::uint64_t, 2> own,
                                                                             const call_options& how) {
  std::vector<std::array<std::uint64_t, 2>> all(end_.size());
  call_frame frame(end_, collective::split, 2, how);
  frame.run(
      [&] {
        frame.set_extra(0, own[0]);
        frame.set_extra(1, own[1]);
      },
      [&] {
        for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank] = {frame.extra(rank, 0), frame.extra(rank, 1)};
      });
  return all;
}

void collective_calls::refuse(const std::exception_ptr& failure, const call_options& how) {
  call_frame frame(end_, collective::refused, 0, how);
  frame.run([&] { std::rethrow_exception(failure); }, [] {});
}

std::vector<std::byte> collective_calls::broadcast_bytes(std::span<const std::byte> bytes, std::size_t root,
                                                         const call_options& how) {
  const mapping_scope scope(*this);
  call_frame frame(end_, collective::broadcast_bytes, 0, how);
  frame.counts_differ = true;
  tensor sent;
  std::vector<std::byte> received;
  frame.run(
      [&] {
        require_root(root);
        frame.own.root = static_cast<std::uint32_t>(root);
        if (end_.rank() != root) return;
        frame.own.count = bytes.size();
        if (frame.fits(bytes.size())) {
          std::copy(bytes.begin(), bytes.end(), frame.own_data());
        } else {
          sent = shared_in(*end_.where(), dtype::u8, {bytes.size()});
          std::copy(bytes.begin(), bytes.end(), sent.data());
          frame.set_places(&sent, nullptr);
        }
      },
      [&] {
        const auto count = frame.headers()[root].count;
        if (!frame.headers()[root].is_in_place() && !frame.fits(count)) frame.refuse("an object does not fit");
        const auto* const from = source(frame, root, sent);
        received.assign(from, from + count);
      });
  return received;
}

// ---- reductions

void collective_calls::combine_range(const call_frame& frame, const reduction& with, const range& of) {
  const auto type = frame.own.type;
  const auto skip = of.first * dtype_size(type);
  for (auto& each : inputs_) each += skip;
  for (auto& each : outputs_) each += skip;
  join_inputs(type, with, of.count, frame.own.count * dtype_size(type) * outputs_.size());
}

void collective_calls::join_inputs(dtype type, const reduction& with, std::size_t count, std::size_t result_bytes) {
  combine(with, type, inputs_, outputs_, count, stores_for(result_bytes));
  const auto bytes = count * dtype_size(type);
  end_.count_bytes(inputs_.size() * bytes, outputs_.size() * bytes);
}

void collective_calls::copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, std::size_t result_bytes) {
  if (to == from) return;
  copy(to, from, bytes, stores_for(result_bytes));
  end_.count_bytes(bytes, bytes);
}

// This rank's slice, for everybody who is to have the result; of many ranks, only for itself.
void collective_calls::reduce_slices(const call_frame& frame, const reduction& with, const tensor& in,
                                     const tensor* out) {
  find_inputs(frame, in);
  outputs_.clear();
  for (std::size_t rank = 0; rank < frame.size(); ++rank) {
    const bool is_own = rank == frame.rank();
    const bool has_root = frame.own.root != call_header::no_root;
    if (has_root ? rank != frame.own.root : !is_own && !pushes(frame)) continue;
    outputs_.push_back(is_own ? out->data() : map(frame.out_of(rank), in.nbytes(), access::write));
  }
  combine_range(frame, with, slice_of(frame.rank(), in.size(), in.dtype()));
}

// The others' slices, from where they made them.
void collective_calls::collect_slices(const call_frame& frame, const tensor& out) {
  for (std::size_t step = 1; step < frame.size(); ++step) {
    const auto rank = (frame.rank() + step) % frame.size();  // not all from the same at once
    const auto slice = slice_of(rank, out.size(), out.dtype());
    const auto each = dtype_size(out.dtype());
    const auto* const from = map(frame.out_of(rank), out.nbytes(), access::read);
    if (slice.count > 0) {
      copy_bytes(out.data() + slice.first * each, from + slice.first * each, slice.count * each, out.nbytes());
    }
  }
}

// `describe` may make the tensors.
template <class Describe>
void collective_calls::reduce_to_all(call_frame& frame, const tensor& in, const tensor& out, const reduction& with,
                                     const call_options& how, Describe describe) {
  const mapping_scope scope(*this);
  local_input from(in);
  local_output to(out);
  const tensor* in_there = nullptr;
  const tensor* out_there = nullptr;
  frame.run_anywhere(
      devices_,
      [&] {
        describe();
        offer(frame, {&in, &out}, with);
      },
      [&] {
        if (frame.fits(in.nbytes())) return from.copy_to(frame.own_data());
        in_there = &from.reachable(*end_.where());
        out_there = &to.reachable(*end_.where(), in, *in_there);
        frame.set_places(in_there, out_there);
      },
      [&] { directly(frame, how).all_reduce(in, out, with); },
      [&] {
        if (in_there != nullptr) {
          require_ranks_apart(frame);
          return reduce_slices(frame, with, *in_there, out_there);
        }
        find_inputs(frame, in);
        outputs_.assign(1, to.contiguous());
        combine_range(frame, with, {.first = 0, .count = in.size()});
      },
      [&] {
        if (in_there != nullptr) collect_slices(frame, *out_there);
      },
      !pushes(frame));
  to.finish();
}

void collective_calls::all_reduce(const tensor& in, const tensor& out, const reduction& with, const call_options& how) {
  call_frame frame(end_, collective::all_reduce, 0, how);
  reduce_to_all(frame, in, out, with, how, [&] {
    require_same("all_reduce", in, out);
    require_apart("all_reduce", in, out);
    describe_reduction(frame, in, with);
  });
}

void collective_calls::all_reduce(std::span<const tensor> what, const reduction& with, const call_options& how) {
  call_frame frame(end_, collective::all_reduce_of_several, 0, how);
  frame.several = what;
  tensor row;
  reduce_to_all(frame, row, row, with, how, [&] {
    require_one_type(what);
    const auto repeated = require_distinct("all_reduce", what);
    row = joined_row(what);
    describe_reduction(frame, row, with);
    frame.own.fingerprint = fingerprint().add(fingerprint_of(what)).add(repeated).add(with.fingerprint()).value();
  });
  take_apart(row, what);
}

void collective_calls::reduce(const tensor& in, const tensor* out, std::size_t root, const reduction& with,
                              const call_options& how) {
  const mapping_scope scope(*this);
  call_frame frame(end_, collective::reduce, 0, how);
  local_input from(in);
  const bool is_root = end_.rank() == root;
  local_output to(is_root && out != nullptr ? *out : in);
  const tensor* in_there = nullptr;
  const tensor* out_there = nullptr;
  frame.run_anywhere(
      devices_,
      [&] {
        require_root(root);
        if (is_root && out != nullptr) require_same("reduce", in, *out);
        if (is_root) require_apart("reduce", in, out != nullptr ? *out : in);
        describe_reduction(frame, in, with);
        frame.own.root = static_cast<std::uint32_t>(root);
        offer(frame, {&in, is_root ? out : nullptr}, with);
      },
      [&] {
        if (frame.fits(in.nbytes())) return from.copy_to(frame.own_data());
        in_there = &from.reachable(*end_.where());
        if (is_root) out_there = &to.reachable(*end_.where(), in, *in_there);
        frame.set_places(in_there, out_there);
      },
      [&] { directly(frame, how).reduce(in, is_root && out != nullptr ? *out : in, root, with); },
      [&] {
        if (in_there != nullptr) {
          require_ranks_apart(frame);
          return reduce_slices(frame, with, *in_there, out_there);
        }
        if (!is_root) return;
        find_inputs(frame, in);
        outputs_.assign(1, to.contiguous());
        combine_range(frame, with, {.first = 0, .count = in.size()});
      });
  if (is_root) to.finish();
}

// ---- broadcast

// This rank's slice, to everybody: the work is shared, instead of each copying for itself what the root only has. Of
// many ranks each does copy for itself.
void collective_calls::broadcast_slices(const call_frame& frame, const tensor& own) {
  const auto root = std::size_t{frame.own.root};
  const bool is_root = frame.rank() == root;
  const auto slice =
      pushes(frame) ? slice_of(frame.rank(), own.size(), own.dtype()) : range{0, is_root ? 0 : own.size()};
  const auto each = dtype_size(own.dtype());
  const auto skip = slice.first * each;
  const auto* const from = (is_root ? own.const_data() : map(frame.in_of(root), own.nbytes(), access::read)) + skip;
  for (std::size_t rank = 0; rank < frame.size(); ++rank) {
    const bool is_own = rank == frame.rank();
    if (rank == root || (!is_own && !pushes(frame))) continue;
    auto* const to = is_own ? own.data() : map(frame.out_of(rank), own.nbytes(), access::write);
    copy_bytes(to + skip, from, slice.count * each, own.nbytes());
  }
}

void collective_calls::broadcast(const tensor& what, std::size_t root, const call_options& how) {
  const mapping_scope scope(*this);
  call_frame frame(end_, collective::broadcast, 0, how);
  local_input from(what);
  local_output to(what);
  const bool is_root = end_.rank() == root;
  const tensor* there = nullptr;
  frame.run_anywhere(
      devices_,
      [&] {
        require_root(root);
        frame.own.root = static_cast<std::uint32_t>(root);
        frame.own.type = what.dtype();
        frame.own.count = what.size();
        frame.own.fingerprint = fingerprint().add(what.shape()).value();
        if (!is_root) require_output("broadcast", what);
        offer(frame, {&what});
      },
      [&] {
        if (!frame.fits(what.nbytes())) {
          there = is_root ? &from.reachable(*end_.where()) : &to.reachable(*end_.where());
          frame.set_places(is_root ? there : nullptr, is_root ? nullptr : there);
        } else if (is_root) {
          from.copy_to(frame.own_data());
        }
      },
      [&] { directly(frame, how).broadcast(what, root); },
      [&] {
        if (there != nullptr) {
          require_ranks_apart(frame);
          return broadcast_slices(frame, *there);
        }
        if (!is_root) copy_bytes(to.contiguous(), frame.data(root), what.nbytes(), what.nbytes());
      });
  if (!is_root) to.finish();
}

}  // namespace muster::detail
