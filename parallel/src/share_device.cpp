// SPDX-License-Identifier: BSL-1.0
// Updates whose values are joined over all ranks, on devices: as share_reduce.cpp has it, but that the elements which
// other ranks offer, and their replicas, are memory of their devices that is mapped here.
#include "share_device.hpp"

#include <muster/base/assert.hpp>
#include <muster/device/detail/device_block.hpp>

namespace muster::detail {

tensor elements(const tensor& which, row_range part) {
  return which.reshape({which.size()}).slice(part.first, part.last);
}

tensor value_here(const rank_variable& variable, named_copy live, std::size_t rank, std::size_t ranks) {
  if (!variable.is_state) return variable.copies.at(rank)[live.here()];
  const auto& whole = variable.copies.at(0)[live.here()];
  return elements(whole, elements_of(whole.size(), rank, ranks));
}

// All replicas are as the master's was: that is what the rule begins with.
void share_run::reduce_there(std::size_t update, std::size_t which,
                             std::span<const std::vector<contribution>> offered) {
  static_cast<void>(kind_of(around_.device).open(around_.device));  // so that it is known which of them is whose
  const auto& how = spec().updates[update];
  const auto& copies = around_.variables.at(how.variable).on_device;
  const auto place = place_of(update);
  const auto live = around_.call.live.at(place);
  const auto& own = copies.at(around_.rank);
  const auto joined = join(offered, which, how.op);
  if (joined.values.empty()) return leave_as_it_is(update);
  const auto part = elements_of(own[0].size(), around_.rank, around_.ranks);
  if (part.empty()) return;

  device_rule_pass pass{.op = reduction_of(how.op), .weights = joined.weights, .step = around_.header.step};
  for (const auto* const each : joined.values) {
    pass.gradients.push_back(elements(*each, part).to(around_.device));
    mappings_.push_back(each->storage()->on_device()->mapping());
  }
  const auto& old_value = live.is_alike() ? own : copies.at(around_.master);
  pass.value = elements(old_value[live.there()], part).to(around_.device);
  pass.new_value = elements(own[1U - live.there()], part);
  for (std::size_t index = 0; index < how.states.size(); ++index) {
    const auto& state = around_.variables.at(how.states[index]).on_device.at(around_.rank);
    const auto live_state = around_.call.live.at(place + 1 + index).there();
    pass.old_states.push_back(state[live_state]);
    pass.new_states.push_back(state[1U - live_state]);
  }
  apply_there(how.rule, pass);
  for (std::size_t rank = 0; rank < copies.size(); ++rank) {
    if (rank != around_.rank) elements(copies[rank][1U - live.there()], part).copy_from(pass.new_value);
  }
}

}  // namespace muster::detail
