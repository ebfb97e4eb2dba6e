// SPDX-License-Identifier: BSL-1.0
#include "device_calls.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace muster::detail {

namespace {

using kind = device_step::kind;

tensor row_of(const tensor& what) { return what.contiguous().reshape({what.size()}); }

/// Where a result goes: there, or into a row that is copied there at the end.
class row_out {
public:
  explicit row_out(const tensor& what)
      : what_(what),
        row_(what.is_contiguous() ? what.reshape({what.size()})
                                  : tensor::empty(what.dtype(), {what.size()}, what.device())) {}

  [[nodiscard]] const tensor& row() const noexcept { return row_; }
  void finish() const {
    if (!what_.is_contiguous()) what_.copy_from(row_.reshape(what_.shape()));
  }

private:
  const tensor& what_;
  tensor row_;
};

// Of a row. Without elements there may be no address.
std::uintptr_t address_of(const tensor& row) { return row.size() == 0 ? 0 : row.device_address(); }

device_step message(kind which, const tensor& row, std::size_t rank) {
  const auto at = address_of(row);
  const bool sends = which == kind::send;
  return {.what = which, .from = sends ? at : 0, .to = sends ? 0 : at, .count = row.nbytes(), .rank = rank};
}

// In an empty row there is nothing to send, and its counterpart is empty too.
void add(std::vector<device_step>& steps, kind which, const tensor& row, std::size_t rank) {
  if (row.size() > 0) steps.push_back(message(which, row, rank));
}

void copy_own(const tensor& to, const tensor& from) {
  if (to.size() > 0 && to.device_address() != from.device_address()) to.copy_from(from);
}

std::vector<tensor> cut(const tensor& row, std::span<const std::size_t> counts) {
  std::vector<tensor> parts;
  std::size_t first = 0;
  for (const auto count : counts) {
    parts.push_back(row.slice(first, first + count));
    first += count;
  }
  return parts;
}

std::vector<std::size_t> equal_parts(std::size_t count, std::size_t ranks) {
  std::vector<std::size_t> parts;
  parts.reserve(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    parts.push_back(count * (rank + 1) / ranks - count * rank / ranks);
  }
  return parts;
}

bool are_equal(std::span<const std::size_t> counts) {
  return std::ranges::all_of(counts, [&](auto each) { return each == counts.front(); });
}

}  // namespace

void device_calls::carry_out(std::span<const device_step> steps, std::vector<tensor> kept) {
  by_.carry_out(operation_, how_, steps, std::move(kept));
}

reduction_plan device_calls::plan_of(const tensor& in, const reduction& with) const {
  return plan_reduction(by_.transport(), with, in.dtype(), size(), end_.memory().shape().is_ordered);
}

// ---- what moves

void device_calls::broadcast(const tensor& what, std::size_t root) {
  if (what.size() == 0) return;
  const auto row = rank() == root ? row_of(what) : tensor();
  const row_out to(what);
  const auto& mine = rank() == root ? row : to.row();
  const std::array steps = {device_step{.what = kind::broadcast,
                                        .from = mine.device_address(),
                                        .to = mine.device_address(),
                                        .count = mine.nbytes(),
                                        .rank = root}};
  carry_out(steps, {mine});
  if (rank() != root) to.finish();
}

void device_calls::all_gather_rows(const tensor& own, const tensor& out, std::span<const std::size_t> counts) {
  if (are_equal(counts)) {
    if (own.size() == 0) return;
    const std::array steps = {device_step{
        .what = kind::all_gather, .from = own.device_address(), .to = out.device_address(), .count = own.nbytes()}};
    return carry_out(steps, {own, out});
  }
  const auto parts = cut(out, counts);
  std::vector<device_step> steps;
  for (std::size_t each = 0; each < size(); ++each) {
    if (each == rank()) continue;
    add(steps, kind::send, own, each);
    add(steps, kind::receive, parts[each], each);
  }
  copy_own(parts[rank()], own);
  carry_out(steps, {own, out});
}

void device_calls::all_gather(const tensor& in, const tensor& out, std::span<const std::size_t> counts) {
  const row_out to(out);
  all_gather_rows(row_of(in), to.row(), counts);
  to.finish();
}

void device_calls::gather_rows(const tensor& own, const tensor& out, std::span<const std::size_t> counts,
                               std::size_t root) {
  std::vector<device_step> steps;
  if (rank() != root) {
    add(steps, kind::send, own, root);
    return carry_out(steps, {own});
  }
  const auto parts = cut(out, counts);
  for (std::size_t each = 0; each < size(); ++each) {
    if (each != root) add(steps, kind::receive, parts[each], each);
  }
  copy_own(parts[root], own);
  carry_out(steps, {out});
}

void device_calls::gather(const tensor& in, const tensor& out, std::span<const std::size_t> counts, std::size_t root) {
  if (rank() != root) return gather_rows(row_of(in), out, counts, root);
  const row_out to(out);
  gather_rows(row_of(in), to.row(), counts, root);
  to.finish();
}

void device_calls::scatter(const tensor& in, const tensor& out, std::span<const std::size_t> counts, std::size_t root) {
  const row_out to(out);
  std::vector<device_step> steps;
  const auto all = rank() == root ? row_of(in) : tensor();
  if (rank() != root) {
    add(steps, kind::receive, to.row(), root);
  } else {
    const auto parts = cut(all, counts);
    for (std::size_t each = 0; each < size(); ++each) {
      if (each != root) add(steps, kind::send, parts[each], each);
    }
    copy_own(to.row(), parts[root]);
  }
  carry_out(steps, {all, to.row()});
  to.finish();
}

void device_calls::all_to_all_rows(const tensor& in, const tensor& out, std::span<const std::size_t> outgoing,
                                   std::span<const std::size_t> incoming) {
  const auto from = cut(in, outgoing);
  const auto to = cut(out, incoming);
  std::vector<device_step> steps;
  for (std::size_t each = 0; each < size(); ++each) {
    if (each == rank()) continue;
    add(steps, kind::send, from[each], each);
    add(steps, kind::receive, to[each], each);
  }
  copy_own(to[rank()], from[rank()]);
  carry_out(steps, {in, out});
}

void device_calls::all_to_all(const tensor& in, const tensor& out, std::span<const std::size_t> outgoing,
                              std::span<const std::size_t> incoming) {
  const row_out to(out);
  const bool is_in_place = in.size() > 0 && in.device_address() == out.device_address();
  all_to_all_rows(row_of(is_in_place ? in.clone() : in), to.row(), outgoing, incoming);
  to.finish();
}

// ---- what is combined

// This rank's part of all ranks' elements, in the order of ranks.
void device_calls::combine_part(const reduction_plan& plan, const tensor& in, const tensor& part,
                                std::span<const std::size_t> counts) {
  const std::vector<std::size_t> incoming(size(), part.size());
  const auto all = tensor::empty(in.dtype(), {size() * part.size()}, in.device());
  all_to_all_rows(in, all, counts, incoming);
  combine_in_order(all.reshape({size(), part.size()}), part, plan.op, plan.divisor);
}

void device_calls::all_reduce(const tensor& in, const tensor& out, const reduction& with) {
  if (in.size() == 0) return;
  const auto plan = plan_of(in, with);
  const auto from = row_of(in);
  const row_out to(out);
  if (plan.how == reduction_plan::way::ordered) {
    const auto counts = equal_parts(in.size(), size());
    const auto part = cut(to.row(), counts)[rank()];
    combine_part(plan, from, part, counts);
    all_gather_rows(part, to.row(), counts);
  } else {
    const std::array steps = {device_step{.what = kind::all_reduce,
                                          .from = from.device_address(),
                                          .to = to.row().device_address(),
                                          .count = in.size() * plan.parts,
                                          .type = plan.type,
                                          .op = plan.native_op}};
    carry_out(steps, {from, to.row()});
    divide(to.row(), plan.divisor);
  }
  to.finish();
}

void device_calls::reduce(const tensor& in, const tensor& out, std::size_t root, const reduction& with) {
  if (in.size() == 0) return;
  const auto plan = plan_of(in, with);
  const auto from = row_of(in);
  const bool is_root = rank() == root;
  const row_out to(is_root ? out : from);
  if (plan.how == reduction_plan::way::ordered) {
    const auto counts = equal_parts(in.size(), size());
    const auto part = tensor::empty(in.dtype(), {counts[rank()]}, in.device());
    combine_part(plan, from, part, counts);
    gather_rows(part, to.row(), counts, root);
  } else {
    const std::array steps = {device_step{.what = kind::reduce,
                                          .from = from.device_address(),
                                          .to = is_root ? to.row().device_address() : 0,
                                          .count = in.size() * plan.parts,
                                          .type = plan.type,
                                          .op = plan.native_op,
                                          .rank = root}};
    carry_out(steps, {from, to.row()});
    if (is_root) divide(to.row(), plan.divisor);
  }
  if (is_root) to.finish();
}

void device_calls::reduce_scatter(const tensor& in, const tensor& out, std::span<const std::size_t> counts,
                                  const reduction& with) {
  if (in.size() == 0) return;
  const auto plan = plan_of(in, with);
  const auto from = row_of(in);
  const row_out to(out);
  if (plan.how == reduction_plan::way::ordered) {
    combine_part(plan, from, to.row(), counts);
    return to.finish();
  }
  std::vector<device_step> steps;
  const device_step all{.what = kind::reduce_scatter,
                        .from = from.device_address(),
                        .to = address_of(to.row()),
                        .count = out.size() * plan.parts,
                        .type = plan.type,
                        .op = plan.native_op};
  if (are_equal(counts)) {
    steps.push_back(all);
  } else {
    const auto parts = cut(from, counts);
    for (std::size_t each = 0; each < size(); ++each) {
      if (counts[each] == 0) continue;
      auto& step = steps.emplace_back(all);
      step.what = kind::reduce;
      step.from = parts[each].device_address();
      step.to = each == rank() ? all.to : 0;
      step.count = counts[each] * plan.parts;
      step.rank = each;
    }
  }
  carry_out(steps, {from, to.row()});
  divide(to.row(), plan.divisor);
  to.finish();
}

}  // namespace muster::detail
