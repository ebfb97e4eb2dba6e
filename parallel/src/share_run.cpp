// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/share_run.hpp>

#include <algorithm>
#include <array>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/collectives/detail/combine.hpp>
#include <muster/device/arithmetic.hpp>

#include "share_device.hpp"

namespace muster::detail {

share_run::share_run(const surroundings& around)
    : around_(around),
      inputs_(around.spec, around.call, around.header, around.rank, around.ranks, around.variables),
      ahead_(inputs_, around.device) {
  for (std::size_t index = 0; index < spec().updates.size(); ++index) {
    updates_.emplace_back(spec().updates[index].op, value_name(spec(), value_name::kind::update, index));
  }
  watch_.begin();
  if (!around.device.is_cpu()) send_variables();
}

// Live copies on devices are written here, before anybody reads them: they do not count until the call does.
void share_run::send_variables() {
  const auto order = live_order(spec());
  for (std::size_t place = 0; place < order.size(); ++place) {
    const auto live = around_.call.live.at(place);
    const bool was_sent = std::find(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(place), order[place]) !=
                          order.begin() + static_cast<std::ptrdiff_t>(place);
    if (!live.is_there() || !live.is_to_go() || was_sent) continue;
    const auto& variable = around_.variables.at(order[place]);
    variable.on_device.at(around_.rank)[live.there()].copy_from(
        value_here(variable, live, around_.rank, around_.ranks));
  }
}

rank_context share_run::context_of(std::size_t slice, row_range rows) const {
  const auto first = inputs_.first_row();
  return {.rank = around_.rank,
          .ranks = around_.ranks,
          .slice = slice,
          .slices = inputs_.slices(),
          .rows = {.first = first + rows.first, .last = first + rows.last},
          .device = around_.device,
          .function = spec().name};
}

// The next slice's inputs may lie where those of the slice before lay, which the function has had.
std::vector<tensor> share_run::take(std::size_t slice, row_range rows) {
  auto taken = inputs_.take(rows, around_.buffers);
  if (around_.device.is_cpu()) return taken;
  ahead_.take_into(taken);
  for (auto& each : taken) each = each.to(around_.device);
  ahead_.begin_after(slice);
  return taken;
}

void share_run::add_update(std::size_t index, const tensor& value, double weight) {
  updates_[index].add(value, weight);
}

void share_run::make_updates_own() {
  for (auto& each : updates_) each.make_own();
}

void share_run::finish_updates() {
  for (std::size_t index = 0; index < updates_.size(); ++index) {
    if (spec().updates[index].kind != update_kind::reduced_into) update_here(index);
  }
  if (!updates_.empty()) watch_.lap(times_.accumulate);
  if (spec().is_reduced()) update_together();
}

std::size_t share_run::place_of(std::size_t update) const noexcept {
  auto place = spec().variables.size();
  for (std::size_t before = 0; before < update; ++before) place += 1 + spec().updates[before].states.size();
  return place;
}

share_run::updated share_run::own_copies(std::size_t update) const {
  const auto& variable = around_.variables.at(spec().updates[update].variable);
  const auto live = around_.call.live.at(place_of(update));
  const auto& copies = (live.is_there() ? variable.on_device : variable.copies).at(around_.rank);
  const auto which = live.is_there() ? live.there() : live.here();
  return {.live = copies[which], .next = copies[1U - which]};
}

tensor share_run::value_for(std::size_t update, const tensor& variable) const {
  auto value = updates_[update].value().to(variable.device());
  if (value.dtype() == variable.dtype() && value.shape() == variable.shape()) return value;
  throw error(
      errc::invalid_argument,
      text(value_name(spec(), value_name::kind::update, update), " is ", value.dtype(), " of shape ", value.shape(),
           ", but variable '", around_.variables.at(spec().updates[update].variable).name, "' is ", variable.dtype(),
           " of shape ", variable.shape(), " in rank ", around_.rank, ": give it a value like itself"));
}

void share_run::update_here(std::size_t update) {
  const auto copies = own_copies(update);
  if (updates_[update].is_empty()) return copies.next.copy_from(copies.live);
  const auto value = value_for(update, copies.live);
  if (spec().updates[update].kind == update_kind::assign) return copies.next.copy_from(value);
  if (!value.device().is_cpu()) {
    copies.next.copy_from(copies.live);
    return accumulate(copies.next, value);
  }
  const auto addend = value.contiguous();
  const std::array<const std::byte*, 2> inputs = {copies.live.const_data(), addend.const_data()};
  const std::array<std::byte*, 1> outputs = {copies.next.data()};
  combine(reduction_op::sum, value.dtype(), inputs, outputs, value.size(), stores::normal);
}

}  // namespace muster::detail
