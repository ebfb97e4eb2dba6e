// SPDX-License-Identifier: BSL-1.0
// Running a function in the caller alone, as if it were the only rank.
#include <utility>

#include <muster/parallel/detail/kept_blocks.hpp>
#include <muster/parallel/detail/world_core.hpp>

#include "call_guard.hpp"

namespace muster::detail {

namespace {

class nobody_else final : public contribution_exchange {
public:
  [[nodiscard]] std::vector<std::vector<contribution>> exchange(std::vector<contribution> own) override {
    std::vector<std::vector<contribution>> all;
    all.push_back(std::move(own));
    return all;
  }
};

// As a call's: what lies in shared memory goes by reference, and outputs are copied when they are finished.
template <class Write>
std::vector<std::byte> encoded(const Write& write, kept_blocks& blocks) {
  output_archive counter(true);
  write(counter);
  std::vector<std::byte> bytes(counter.written());
  output_archive out(bytes, &blocks);
  write(out);
  return bytes;
}

}  // namespace

// What the only rank has of the variables is what the master has of them: with his replicas the next call begins.
std::map<std::uint32_t, registered_variable> world_core::own_variables(const function_spec& spec) const {
  const auto rank = options_.master_rank;
  std::map<std::uint32_t, registered_variable> own;
  for (const auto number : live_order(spec)) {
    auto found = variables_.at(number);
    if (found.what.copies.size() > 1) found.what.copies = {found.what.copies[rank]};
    make_room_here(found);
    own.insert_or_assign(number, std::move(found));
  }
  return own;
}

void world_core::run_here(const preparation& prepare, std::uint32_t function) {
  made_in_.require_here("a world");
  const call_guard inside(caller_, options_.name);
  const scoped_lock lock(mutex_);
  const presence caller(*this);
  require_open();
  auto& found = functions_.at(function);
  bring_all(found.spec);
  const auto own = own_variables(found.spec);
  const auto request = prepare(found, own);
  kept_blocks blocks;
  const auto given = encoded(request.write_values, blocks);
  input_archive values(given, &blocks);
  const world_call_header header{.function = function,
                                 .slices = request.slices,
                                 .outputs = request.outputs,
                                 .rows = request.rows,
                                 .step = found.steps + 1};
  variable_table table;
  for (const auto& [number, each] : own) table.emplace(number, each.what);
  nobody_else others;
  std::vector<tensor> buffers;
  share_run share({.spec = found.spec,
                   .header = header,
                   .call = request.call,
                   .rank = 0,
                   .ranks = 1,
                   .master = 0,
                   .variables = table,
                   .others = others,
                   .buffers = buffers,
                   .device = own_rank_ ? device_of(*own_rank_) : device::cpu()});
  const auto made = found.code->run(share, values);
  const auto write_outputs = [&](frame_writer& out) {
    if (made) made->write_to(out);
  };
  const auto outputs = encoded(write_outputs, blocks);
  input_archive in(outputs, &blocks);
  request.read_outputs(in);
  request.finish_outputs();
  for (const auto& update : found.spec.updates) {
    write_back(own.at(update.variable));
    for (const auto state : update.states) write_back(own.at(state));
    note_written_here(update.variable);
    for (const auto state : update.states) note_written_here(state);
  }
  if (!found.spec.updates.empty() && !request.is_for_nothing) ++found.steps;
}

// Here it is computed with what is on the host, where there is no second copy of what else is on devices.
void world_core::make_room_here(registered_variable& which) {
  if (!std::exchange(which.is_resident, false)) return;
  for (auto& copies : which.what.copies) {
    const auto& live = copies[which.live];
    copies[1U - which.live] = tensor::empty(live.dtype(), live.shape());
  }
  which.is_updated = true;
}

void world_core::note_written_here(std::uint32_t number) {
  auto& found = variables_.at(number);
  found.is_fresh_there = false;
  found.is_alike = found.is_alike && (ranks() == 1 || found.what.is_state);
}

// The copies of other ranks stay as they are, so none changes places.
void world_core::write_back(const registered_variable& which) {
  for (const auto& copies : which.what.copies) copies[which.live].copy_from(copies[1U - which.live]);
}

}  // namespace muster::detail
