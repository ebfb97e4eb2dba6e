// SPDX-License-Identifier: BSL-1.0
#include "kv_apply.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/parallel/detail/device_rule_pass.hpp>
#include <muster/parallel/detail/rule_kernels.hpp>

namespace muster::detail {

namespace {

template <class Byte>
std::vector<Byte*> places_of(std::span<const tensor> all) {
  std::vector<Byte*> places;
  for (const auto& each : all) {
    if constexpr (std::is_const_v<Byte>) {
      places.push_back(each.const_data());
    } else {
      places.push_back(each.data());
    }
  }
  return places;
}

bool are_all_sparse(std::span<const kv_gradient> all) {
  return std::all_of(all.begin(), all.end(), [](const auto& each) { return each.is_sparse(); });
}

std::vector<tensor> wholes_of(std::span<const kv_gradient> all, const tensor& like) {
  std::vector<tensor> wholes;
  for (const auto& each : all) wholes.push_back(each.whole(like).to(like.device()));
  return wholes;
}

std::vector<std::int64_t> rows_of(std::span<const kv_gradient> all) {
  std::vector<std::int64_t> rows;
  for (const auto& each : all) {
    const auto some = each.rows().indices.contiguous();
    const auto indices = some.span<const std::int64_t>();
    rows.insert(rows.end(), indices.begin(), indices.end());
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

// In the order in which they are given.
tensor sum_of_rows(std::span<const kv_gradient> all, std::span<const std::int64_t> rows, const tensor& like) {
  const auto sum = tensor::zeros(like.dtype(), like.shape());
  for (const auto& each : all) {
    const auto some = each.rows();
    for (std::size_t row = 0; row < some.count(); ++row) {
      const auto place =
          std::lower_bound(rows.begin(), rows.end(), some.indices.at<const std::int64_t>(row)) - rows.begin();
      accumulate(sum.row(static_cast<std::size_t>(place)), some.rows.row(row));
    }
  }
  return sum;
}

// Only the rows that were pushed change, and what the rule remembers of them.
void apply_to_rows(rule_step of, std::span<const kv_gradient> gradients) {
  const auto rows = rows_of(gradients);
  of.next.copy_from(of.value);
  for (std::size_t each = 0; each < of.after.size(); ++each) of.after[each].copy_from(of.before[each]);
  if (rows.empty()) return;
  const auto value = sparse_rows::pick(of.value, rows);
  const sparse_rows next{.indices = value.indices, .rows = tensor::empty(of.value.dtype(), value.rows.shape())};
  const std::vector<tensor> sum{sum_of_rows(gradients, rows, value.rows)};
  std::vector<tensor> before;
  std::vector<tensor> after;
  for (const auto& each : of.before) {
    before.push_back(sparse_rows::pick(each, rows).rows);
    after.push_back(tensor::empty(each.dtype(), before.back().shape()));
  }
  apply_rule({of.rule, value.rows, next.rows, before, after, of.step}, sum);
  next.copy_into(of.next);
  for (std::size_t each = 0; each < after.size(); ++each) {
    sparse_rows{.indices = value.indices, .rows = after[each]}.copy_into(of.after[each]);
  }
}

std::vector<tensor> flat(std::span<const tensor> all) {
  std::vector<tensor> made;
  for (const auto& each : all) made.push_back(each.reshape({each.size()}));
  return made;
}

void apply_on_device(const rule_step& of, std::span<const tensor> gradients, double factor) {
  if (of.value.size() == 0) return;
  const std::vector<double> weights(gradients.size(), factor);
  apply_there(of.rule, {.gradients = flat(gradients),
                        .weights = weights,
                        .value = of.value.reshape({of.value.size()}),
                        .new_value = of.next.reshape({of.next.size()}),
                        .old_states = flat(of.before),
                        .new_states = flat(of.after),
                        .step = of.step});
}

bool is_same_place(const tensor& a, const tensor& b) {
  if (a.storage() != b.storage() || a.strides() != b.strides()) return false;
  return a.device().is_cpu() ? a.const_data() == b.const_data() : a.device_address() == b.device_address();
}

}  // namespace

void apply_rule(const rule_step& of, std::span<const tensor> gradients, double factor) {
  if (!of.value.device().is_cpu()) return apply_on_device(of, gradients, factor);
  const auto from = places_of<const std::byte>(gradients);
  const std::vector<double> weights(from.size(), factor);
  const auto before = places_of<const std::byte>(of.before);
  const auto after = places_of<std::byte>(of.after);
  auto* const to = of.next.data();
  apply(of.rule, {.type = of.value.dtype(),
                  .op = reduction_op::sum,
                  .gradients = from,
                  .weights = weights,
                  .value = of.value.const_data(),
                  .new_values = std::span(&to, 1),
                  .old_states = before,
                  .new_states = after,
                  .step = of.step,
                  .count = of.value.size()});
}

void apply_to_all(const rule_step& of, std::span<const kv_gradient> gradients) {
  if (are_all_sparse(gradients)) return apply_to_rows(of, gradients);
  const auto wholes = wholes_of(gradients, of.value);
  apply_rule(of, wholes);
}

// It changes the next value where it lies, and may change the sum, which is never a worker's own tensor.
void apply_updater(const kv_updater& by, const store_key& key, std::span<const kv_gradient> gradients,
                   const tensor& value, const tensor& next) {
  const auto wholes = wholes_of(gradients, value);
  auto sum = tensor::empty(value.dtype(), value.shape(), value.device());
  apply_rule({assign_rule(), value, sum, {}, {}}, wholes);
  next.copy_from(value);
  auto stored = next;
  by(key, sum, stored);
  if (stored.dtype() != value.dtype() || stored.shape() != value.shape()) {
    throw error(errc::invalid_argument,
                text("the updater has made dtype ", stored.dtype(), " and shape ", stored.shape(), " of the value ",
                     key, ", which has dtype ", value.dtype(), " and shape ", value.shape()));
  }
  if (!is_same_place(stored, next)) next.copy_from(stored.to(next.device()));
}

}  // namespace muster::detail
