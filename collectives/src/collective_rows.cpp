// SPDX-License-Identifier: BSL-1.0
// The operations that move rows from rank to rank as they are, and reduce_scatter. How many rows each rank gives or
// takes is learned from what all have written into their slots, so ranks need not know one another's.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/overlap.hpp>

#include "collective_calls.hpp"
#include "mapping_scope.hpp"
#include "overlap_check.hpp"

namespace muster::detail {

namespace {

// One number is a row of its own.
std::size_t rows_of(const tensor& what) { return what.dimensions() == 0 ? 1 : what.shape()[0]; }

std::size_t row_elements(const tensor& what) {
  const auto& shape = what.shape();
  return std::accumulate(shape.begin() + (shape.empty() ? 0 : 1), shape.end(), std::size_t{1}, std::multiplies<>());
}

std::uint64_t fingerprint_of_rows(const tensor& what) {
  const auto dimensions = std::max<std::size_t>(what.dimensions(), 1);
  fingerprint made;
  made.add(dimensions);
  for (std::size_t each = 1; each < what.dimensions(); ++each) made.add(what.shape()[each]);
  return made.value();
}

void require_same_rows(const char* operation, const tensor& in, const tensor& out) {
  if (in.dtype() == out.dtype() && fingerprint_of_rows(in) == fingerprint_of_rows(out)) return;
  throw error(errc::invalid_argument,
              text(operation, ": the input is ", in.dtype(), ' ', in.shape(), " and the output is ", out.dtype(), ' ',
                   out.shape(), "; they must be of the same type, and of the same shape but for the number of rows"));
}

// Where the rank's own rows lie.
tensor make_rows(const tensor& like, std::size_t rows) {
  tensor_shape shape({rows});
  for (std::size_t each = 1; each < like.dimensions(); ++each) shape.push_back(like.shape()[each]);
  return tensor::empty(like.dtype(), shape, like.device());
}

// Of "whatever comes out".
constexpr std::uint64_t any_rows = 0;
std::uint64_t expectation(const tensor* out) { return out == nullptr ? any_rows : rows_of(*out) + 1; }

std::uint64_t sum_of_extra(const call_frame& frame, std::size_t index) {
  std::uint64_t sum = 0;
  for (std::size_t rank = 0; rank < frame.size(); ++rank) sum += frame.extra(rank, index);
  return sum;
}

// Of a rank.
auto count_in(const call_frame& frame) {
  return [&frame](std::size_t rank) { return frame.headers()[rank].count; };
}

// Of all ranks.
auto all_counts_in(const call_frame& frame) {
  std::uint64_t sum = 0;
  for (const auto& each : frame.headers()) sum += each.count;
  return [sum](std::size_t /*rank*/) { return sum; };
}

auto extra_in(const call_frame& frame, std::size_t index) {
  return [&frame, index](std::size_t rank) { return frame.extra(rank, index); };
}

std::vector<std::size_t> counts_of(const call_frame& frame) {
  std::vector<std::size_t> counts;
  for (const auto& each : frame.headers()) counts.push_back(each.count);
  return counts;
}

// An extra of each rank, in elements.
std::vector<std::size_t> extras_of(const call_frame& frame, std::size_t index, std::size_t each_is) {
  std::vector<std::size_t> extras;
  extras.reserve(frame.size());
  for (std::size_t rank = 0; rank < frame.size(); ++rank) extras.push_back(frame.extra(rank, index) * each_is);
  return extras;
}

// Where the others would look for it.
const tensor* seen_by_others(const tensor* out, const domain& where) {
  return out != nullptr && is_reachable(*out, where) ? out : nullptr;
}

void describe_rows(call_frame& frame, const tensor& what) {
  frame.own.type = what.dtype();
  frame.own.count = what.size();
  frame.own.fingerprint = fingerprint_of_rows(what);
}

}  // namespace

// ---- gather, all_gather

// Everything into `to`, in the order of ranks.
void collective_calls::collect(const call_frame& frame, const tensor& in, std::byte* to) {
  const auto each = dtype_size(in.dtype());
  std::size_t total = 0;
  for (const auto& header : frame.headers()) total += header.count * each;
  for (std::size_t rank = 0; rank < frame.size(); ++rank) {
    const auto bytes = frame.headers()[rank].count * each;
    if (bytes == 0) continue;
    const auto* const from = source(frame, rank, in);
    copy_bytes(to, from, bytes, total);
    to += bytes;
  }
}

tensor collective_calls::gather_rows(collective kind, const tensor& in, const tensor* out, std::size_t root,
                                     const call_options& how) {
  const mapping_scope scope(*this);
  call_frame frame(end_, kind, 3, how);
  frame.counts_differ = true;
  const bool to_all = kind == collective::all_gather;
  local_input from(in);
  const tensor* there = &in;
  tensor result;
  std::optional<local_output> to;
  const auto make_result = [&] {
    require_own_rows(frame, 2, count_in(frame));
    const auto rows = sum_of_extra(frame, 0);
    for (std::size_t rank = 0; rank < frame.size(); ++rank) {
      const auto expected = frame.extra(rank, 1);
      if (expected == any_rows || expected == rows + 1) continue;
      frame.refuse(text("the ranks give ", rows, " rows, and rank ", rank, " has room for ", expected - 1));
    }
    if (to_all || end_.rank() == root) result = out != nullptr ? *out : make_rows(in, rows);
  };
  frame.run_anywhere(
      devices_,
      [&] {
        if (!to_all) require_root(root);
        if (!to_all) frame.own.root = static_cast<std::uint32_t>(root);
        if (out != nullptr) require_same_rows(name_of(kind), in, *out);
        describe_rows(frame, in);
        frame.set_extra(0, rows_of(in));
        frame.set_extra(1, expectation(out));
        frame.set_extra(2, out != nullptr ? place_of_rows(name_of(kind), in, *out, *out) : apart);
        offer(frame, {&in, out});
      },
      [&] {
        if (frame.fits(in.nbytes())) return from.copy_to(frame.own_data());
        there = &from.reachable(*end_.where());
        frame.set_places(there, seen_by_others(out, *end_.where()));
      },
      [&] {
        make_result();
        auto by = directly(frame, how);
        to_all ? by.all_gather(in, result, counts_of(frame)) : by.gather(in, result, counts_of(frame), root);
      },
      [&] {
        make_result();
        require_ranks_apart(frame, count_in(frame), all_counts_in(frame));
        if (!to_all && end_.rank() != root) return;
        collect(frame, *there, to.emplace(result).contiguous());
      });
  if (to) to->finish();  // the others may have read what it overwrites
  return result;
}

tensor collective_calls::gather(const tensor& in, const tensor* out, std::size_t root, const call_options& how) {
  return gather_rows(collective::gather, in, end_.rank() == root ? out : nullptr, root, how);
}

tensor collective_calls::all_gather(const tensor& in, const tensor* out, const call_options& how) {
  return gather_rows(collective::all_gather, in, out, 0, how);
}

// ---- scatter

// Some of the root's elements.
void collective_calls::take_share(const call_frame& frame, const tensor* in, std::size_t root, const range& of,
                                  dtype type, local_output& to) {
  if (of.count == 0) return;
  const auto each = dtype_size(type);
  const bool is_in_place = frame.headers()[root].is_in_place();
  const auto last = (of.first + of.count) * each;
  const auto* from = frame.data(root);
  if (is_in_place) from = frame.rank() == root ? in->const_data() : map(frame.in_of(root), last, access::read);
  copy_bytes(to.contiguous(), from + of.first * each, of.count * each, of.count * each);
}

void collective_calls::scatter(const tensor* in, const tensor& out, std::size_t root, const call_options& how) {
  const mapping_scope scope(*this);
  call_frame frame(end_, collective::scatter, 3, how);
  frame.counts_differ = true;
  const bool is_root = end_.rank() == root;
  local_input from(is_root && in != nullptr ? *in : out);
  local_output to(out);
  const tensor* there = in;
  const auto require_rows = [&] {
    require_own_rows(frame, 2, count_in(frame));
    const auto rows = sum_of_extra(frame, 0);
    const auto given = frame.extra(root, 1);
    if (rows != given) frame.refuse(text("the root gives ", given, " rows, and the ranks have room for ", rows));
  };
  frame.run_anywhere(
      devices_,
      [&] {
        require_root(root);
        if (is_root && in == nullptr) throw error(errc::invalid_argument, "scatter: the root has nothing to scatter");
        frame.own.root = static_cast<std::uint32_t>(root);
        describe_rows(frame, out);
        frame.set_extra(0, rows_of(out));
        frame.set_extra(1, is_root ? rows_of(*in) : 0);
        if (is_root) require_same_rows("scatter", *in, out);
        require_output("scatter", out);
        frame.set_extra(2, is_root ? place_of_rows("scatter", out, *in, out) : apart);
        offer(frame, {&out, is_root ? in : nullptr});
      },
      [&] {
        if (frame.fits(is_root ? in->nbytes() : out.nbytes())) {
          if (is_root) from.copy_to(frame.own_data());
          return;
        }
        if (is_root) there = &from.reachable(*end_.where());  // what the others take of it is as long
        frame.set_places(is_root ? there : nullptr, seen_by_others(&out, *end_.where()));
      },
      [&] {
        require_rows();
        directly(frame, how).scatter(is_root ? *in : out, out, counts_of(frame), root);
      },
      [&] {
        require_rows();
        require_ranks_apart(frame, all_counts_in(frame), count_in(frame));
        std::size_t first = 0;
        for (std::size_t rank = 0; rank < end_.rank(); ++rank) first += frame.headers()[rank].count;
        take_share(frame, there, root, {.first = first, .count = out.size()}, out.dtype(), to);
      });
  to.finish();
}

// Nobody but the root knows beforehand what comes: type and shape go along.
tensor collective_calls::scatter(const tensor* in, std::size_t root, const call_options& how) {
  const mapping_scope scope(*this);
  constexpr std::size_t dimensions_at = 2;
  call_frame frame(end_, collective::scatter, dimensions_at + tensor::max_dimensions, how);
  frame.counts_differ = true;
  const bool is_root = end_.rank() == root;
  const tensor nothing;
  local_input from(is_root && in != nullptr ? *in : nothing);
  const tensor* there = in;
  tensor share;
  frame.run(
      [&] {
        require_root(root);
        frame.own.root = static_cast<std::uint32_t>(root);
        frame.own.fingerprint = 1;  // in contrast to the other form
        if (!is_root) return;
        if (in == nullptr) throw error(errc::invalid_argument, "scatter: the root has nothing to scatter");
        const auto shape = in->dimensions() == 0 ? tensor_shape({1}) : in->shape();
        frame.own.count = in->nbytes();
        frame.set_extra(0, static_cast<std::uint64_t>(in->dtype()));
        frame.set_extra(1, shape.size());
        for (std::size_t each = 0; each < shape.size(); ++each) frame.set_extra(dimensions_at + each, shape[each]);
        if (frame.fits(in->nbytes())) return from.copy_to(frame.own_data());
        there = &from.reachable(*end_.where());
        frame.set_places(there, nullptr);
      },
      [&] {
        const auto type = frame.extra(root, 0);
        const auto dimensions = frame.extra(root, 1);
        if (type >= dtype_count || dimensions == 0 || dimensions > tensor::max_dimensions) {
          frame.refuse("the root's tensor is of no type or shape that there is");
        }
        tensor_shape shape;
        for (std::size_t each = 0; each < dimensions; ++each) shape.push_back(frame.extra(root, dimensions_at + each));
        const auto rows = shape[0];
        const auto first = rows * end_.rank() / end_.size();
        shape[0] = rows * (end_.rank() + 1) / end_.size() - first;
        share = tensor::empty(static_cast<dtype>(type), shape);
        local_output to(share);
        take_share(frame, there, root, {.first = first * row_elements(share), .count = share.size()}, share.dtype(),
                   to);
      });
  return share;
}

// ---- reduce_scatter

void collective_calls::reduce_scatter(const tensor& in, const tensor& out, const reduction& with,
                                      const call_options& how) {
  const mapping_scope scope(*this);
  call_frame frame(end_, collective::reduce_scatter, 2, how);
  local_input from(in);
  local_output to(out);
  const tensor* there = &in;
  const auto require_rows = [&] {
    require_own_rows(frame, 1, extra_in(frame, 0));
    const auto wanted = sum_of_extra(frame, 0);
    if (wanted == in.size()) return;
    frame.refuse(text("the ranks want ", wanted, " elements of a result of ", in.size()));
  };
  frame.run_anywhere(
      devices_,
      [&] {
        require_same_rows("reduce_scatter", in, out);
        with.require(in.dtype());
        describe_rows(frame, in);
        frame.own.op = with.op();
        frame.own.fingerprint = fingerprint().add(in.shape()).add(with.fingerprint()).value();
        frame.confirms = with.op() == reduction_op::custom;
        frame.set_extra(0, out.size());
        frame.set_extra(1, place_of_rows("reduce_scatter", out, in, out));
        offer(frame, {&in, &out}, with);
      },
      [&] {
        if (frame.fits(in.nbytes())) return from.copy_to(frame.own_data());
        there = &from.reachable(*end_.where());
        frame.set_places(there, seen_by_others(&out, *end_.where()));
      },
      [&] {
        require_rows();
        directly(frame, how).reduce_scatter(in, out, extras_of(frame, 0, 1), with);
      },
      [&] {
        require_rows();
        require_ranks_apart(frame, count_in(frame), extra_in(frame, 0));
        std::size_t first = 0;
        for (std::size_t rank = 0; rank < end_.rank(); ++rank) first += frame.extra(rank, 0);
        find_inputs(frame, *there);
        for (auto& each : inputs_) each += first * dtype_size(in.dtype());
        outputs_.assign(1, to.contiguous());
        join_inputs(in.dtype(), with, out.size(), out.nbytes());
      });
  to.finish();
}

// ---- all_to_all

namespace {

// Whether what comes takes the place of what is sent, from the first row on. Throws errc::invalid_argument, with both
// ranges, where they overlap otherwise.
bool is_replaced(const tensor& in, const tensor& out) {
  require_output("all_to_all", out);
  if (overlap_of(in, out) == overlap::none) return false;
  const bool is_longer = rows_of(in) > rows_of(out);
  if (first_row_in(is_longer ? in : out, is_longer ? out : in) != 0) require_apart("all_to_all", in, out);
  return true;
}

void require_split(const tensor& in, std::span<const std::size_t> rows, std::size_t ranks) {
  const auto add = [](std::size_t sum, std::size_t each) { return each > SIZE_MAX - sum ? SIZE_MAX : sum + each; };
  const auto sum = std::accumulate(rows.begin(), rows.end(), std::size_t{0}, add);
  if (rows.size() == ranks && sum == rows_of(in)) return;
  throw error(errc::invalid_argument,
              text("all_to_all: ", rows.size(), " numbers of rows were given, ", sum, " in all, for a group of ", ranks,
                   " ranks and a tensor of ", rows_of(in), " rows"));
}

}  // namespace

tensor collective_calls::all_to_all(const tensor& in, std::span<const std::size_t> rows, const tensor* out,
                                    const call_options& how) {
  const mapping_scope scope(*this);
  const auto ranks = end_.size();
  call_frame frame(end_, collective::all_to_all, ranks + 1, how);
  frame.counts_differ = true;
  bool is_in_place = false;
  local_input from(in);
  const tensor* there = &in;
  tensor result;
  std::optional<local_output> to;
  const auto make_result = [&] {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto expected = frame.extra(rank, ranks);
      const auto coming = sum_of_extra(frame, rank);
      if (expected == any_rows || expected == coming + 1) continue;
      frame.refuse(text("rank ", rank, " is sent ", coming, " rows, and has room for ", expected - 1));
    }
    result = out != nullptr ? *out : make_rows(in, sum_of_extra(frame, end_.rank()));
  };
  frame.run_anywhere(
      devices_,
      [&] {
        require_split(in, rows, ranks);
        if (out != nullptr) require_same_rows("all_to_all", in, *out);
        is_in_place = out != nullptr && is_replaced(in, *out);
        describe_rows(frame, in);
        for (std::size_t rank = 0; rank < ranks; ++rank) frame.set_extra(rank, rows[rank]);
        frame.set_extra(ranks, expectation(out));
        offer(frame, {&in, out});
      },
      [&] {
        if (frame.fits(in.nbytes())) return from.copy_to(frame.own_data());
        // The others read it while what they send is written.
        there = is_in_place ? &from.copied(*end_.where()) : &from.reachable(*end_.where());
        frame.set_places(there, seen_by_others(out, *end_.where()));
      },
      [&] {
        make_result();
        std::vector<std::size_t> outgoing;
        for (const auto each : rows) outgoing.push_back(each * row_elements(in));
        directly(frame, how).all_to_all(in, result, outgoing, extras_of(frame, end_.rank(), row_elements(in)));
      },
      [&] {
        make_result();
        const auto written = [&](std::size_t rank) { return sum_of_extra(frame, rank) * row_elements(in); };
        require_ranks_apart(frame, count_in(frame), written);
        auto* at = to.emplace(result).contiguous();
        const auto row_bytes = row_elements(in) * dtype_size(in.dtype());
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          std::size_t first = 0;
          for (std::size_t before = 0; before < end_.rank(); ++before) first += frame.extra(rank, before);
          const auto bytes = frame.extra(rank, end_.rank()) * row_bytes;
          if (bytes == 0) continue;
          copy_bytes(at, source(frame, rank, *there) + first * row_bytes, bytes, result.nbytes());
          at += bytes;
        }
      });
  if (to) to->finish();
  return result;
}

// A remainder is refused with the others, so that they do not wait.
void collective_calls::all_to_all(const tensor& in, const tensor& out, const call_options& how) {
  equal_rows_.assign(end_.size(), rows_of(in) / end_.size());
  static_cast<void>(all_to_all(in, equal_rows_, &out, how));
}

}  // namespace muster::detail
