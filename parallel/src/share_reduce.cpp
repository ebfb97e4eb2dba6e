// SPDX-License-Identifier: BSL-1.0
// Updates whose values are joined over all ranks. Each rank joins a part of the elements, applies the rule to it, and
// writes what comes of it into every rank's replica: so each element is computed once, and is the same everywhere.
#include <muster/base/detail/float_state.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/detail/device_block.hpp>
#include <muster/device/detail/stores.hpp>
#include <muster/parallel/detail/rule_kernels.hpp>
#include <muster/parallel/detail/share_run.hpp>

#include "share_device.hpp"

namespace muster::detail {

namespace {

// Of the whole.
void make_shares(std::vector<double>& weights) {
  double total = 0;
  for (const auto each : weights) total += each;
  for (auto& each : weights) each /= total;
}

template <class Byte>
void advance(std::vector<Byte*>& arrays, std::size_t bytes) {
  for (auto& each : arrays) each += bytes;
}

}  // namespace

reduction_op reduction_of(output_op op) {
  switch (op) {
    case output_op::avg:
    case output_op::mean_of_ranks: return reduction_op::avg;
    case output_op::prod: return reduction_op::prod;
    case output_op::min: return reduction_op::min;
    case output_op::max: return reduction_op::max;
    default: return reduction_op::sum;
  }
}

joined_contributions join(std::span<const std::vector<contribution>> offered, std::size_t which, output_op op) {
  joined_contributions made;
  for (const auto& of_rank : offered) {
    const auto& each = of_rank[which];
    if (!each.some) continue;
    made.values.push_back(&each.value);
    made.weights.push_back(op == output_op::avg ? each.weight : 1.0);
  }
  const bool is_average = op == output_op::avg || op == output_op::mean_of_ranks;
  if (is_average) in_fixed_float_state([&made] { make_shares(made.weights); });
  return made;
}

void contribution::write_to(frame_writer& out) const {
  out.write(&weight, sizeof weight);
  out.write(&some, sizeof some);
  if (some) value.write_to(out);
}

contribution contribution::read_from(frame_reader& in) {
  contribution read;
  in.read(&read.weight, sizeof read.weight);
  read.some = *in.take(1) != std::byte{0};
  if (read.some) read.value = tensor::read_from(in);
  return read;
}

void share_run::update_together() {
  std::vector<contribution> own;
  for (std::size_t index = 0; index < updates_.size(); ++index) {
    if (spec().updates[index].kind != update_kind::reduced_into) continue;
    const auto& found = updates_[index];
    auto& offered = own.emplace_back();
    if (found.is_empty()) continue;
    offered = {.some = true, .weight = found.weight(), .value = value_for(index, own_copies(index).live).contiguous()};
  }
  finish_computing();
  const auto all = around_.others.exchange(std::move(own));
  watch_.lap(times_.wait);
  require_fitting(all);
  std::size_t which = 0;
  for (std::size_t index = 0; index < updates_.size(); ++index) {
    if (spec().updates[index].kind != update_kind::reduced_into) continue;
    const bool is_there = around_.call.live.at(place_of(index)).is_there();
    is_there ? reduce_there(index, which++, all) : reduce(index, which++, all);
  }
  watch_.lap(times_.reduce);
}

// What is offered is there: else the devices of others would wait for this one, and nobody could end that wait when it
// breaks, or does not come to an end. A process that waits for ranks can be told.
void share_run::finish_computing() {
  if (around_.device.is_cpu() || around_.ranks == 1) return;
  kind_of(around_.device).synchronize();
  watch_.lap(times_.compute);
}

// What a rank has offered that died meanwhile may be anything: its memory is others' by now. That the call does not
// count is found out later, so that what is read here must not lead out of the memory.
void share_run::require_fitting(std::span<const std::vector<contribution>> offered) const {
  std::size_t which = 0;
  for (std::size_t index = 0; index < updates_.size(); ++index) {
    if (spec().updates[index].kind != update_kind::reduced_into) continue;
    const auto own = own_copies(index).live;
    for (std::size_t rank = 0; rank < offered.size(); ++rank) {
      const bool is_there = which < offered[rank].size();
      const auto* const found = is_there && offered[rank][which].some ? &offered[rank][which].value : nullptr;
      const bool is_like_own =
          found == nullptr || (found->dtype() == own.dtype() && found->shape() == own.shape() &&
                               found->is_contiguous() && found->device().is_cpu() == own.device().is_cpu());
      if (is_there && is_like_own) continue;
      throw error(errc::corrupted,
                  text("what rank ", rank, " offered for ", value_name(spec(), value_name::kind::update, index),
                       " is not there any more: it has died, or somebody has overwritten it"));
    }
    ++which;
  }
}

// Nobody had rows. What rules remember is on the host once for all ranks, and becomes the other copy too: rank 0 writes
// it; on devices each rank has its part.
void share_run::leave_as_it_is(std::size_t update) {
  const auto copies = own_copies(update);
  copies.next.copy_from(copies.live);
  const auto& states = spec().updates[update].states;
  for (std::size_t index = 0; index < states.size(); ++index) {
    const auto& state = around_.variables.at(states[index]);
    const auto live = around_.call.live.at(place_of(update) + 1 + index);
    if (live.is_there()) {
      const auto& own = state.on_device.at(around_.rank);
      own[1U - live.there()].copy_from(own[live.there()]);
    } else if (around_.rank == 0) {
      state.copies[0][1U - live.here()].copy_from(state.copies[0][live.here()]);
    }
  }
}

// All replicas are as the master's was: that is what the rule begins with.
void share_run::reduce(std::size_t update, std::size_t which, std::span<const std::vector<contribution>> offered) {
  const auto& how = spec().updates[update];
  const auto& copies = around_.variables.at(how.variable).copies;
  const auto place = place_of(update);
  const auto live = around_.call.live.at(place).here();
  const auto& old_value = copies[around_.master][live];
  const auto joined = join(offered, which, how.op);
  if (joined.values.empty()) return leave_as_it_is(update);

  const auto [first, last] = elements_of(old_value.size(), around_.rank, around_.ranks);
  const auto offset = first * dtype_size(old_value.dtype());
  std::vector<const std::byte*> gradients;
  gradients.reserve(joined.values.size());
  for (const auto* const each : joined.values) gradients.push_back(each->const_data());
  advance(gradients, offset);
  std::vector<std::byte*> new_values;
  new_values.reserve(copies.size());
  for (const auto& each : copies) new_values.push_back(each[1U - live].data());
  advance(new_values, offset);
  std::vector<const std::byte*> old_states;
  std::vector<std::byte*> new_states;
  for (std::size_t index = 0; index < how.states.size(); ++index) {
    const auto& state = around_.variables.at(how.states[index]).copies[0];
    const auto live_state = around_.call.live.at(place + 1 + index).here();
    const auto state_offset = first * dtype_size(state[0].dtype());
    old_states.push_back(state[live_state].const_data() + state_offset);
    new_states.push_back(state[1U - live_state].data() + state_offset);
  }
  apply(how.rule, {.type = old_value.dtype(),
                   .op = reduction_of(how.op),
                   .gradients = gradients,
                   .weights = joined.weights,
                   .value = old_value.const_data() + offset,
                   .new_values = new_values,
                   .old_states = old_states,
                   .new_states = new_states,
                   .step = around_.header.step,
                   .count = last - first,
                   .how_to_store = stores_for(old_value.nbytes())});
}

}  // namespace muster::detail
