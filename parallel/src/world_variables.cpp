// SPDX-License-Identifier: BSL-1.0
// What can be done with variables between calls. Their memory is the caller's, so he does it.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/collectives/detail/combine.hpp>
#include <muster/parallel/detail/world_core.hpp>
#include <muster/parallel/world.hpp>

namespace muster {

namespace {

using detail::registered_variable;

template <class... Why>
[[noreturn]] void refuse(const variable& which, const Why&... why) {
  throw error(errc::invalid_argument, text("variable '", which.name(), "': ", why...));
}

reduction_op elementwise(const variable& which, output_op op) {
  switch (op) {
    case output_op::avg:
    case output_op::mean_of_ranks: return reduction_op::avg;
    case output_op::sum: return reduction_op::sum;
    case output_op::prod: return reduction_op::prod;
    case output_op::min: return reduction_op::min;
    case output_op::max: return reduction_op::max;
    default:
      refuse(which, "values of ranks were to be joined by ", output_op_name(op),
             ": avg, sum, prod, min, max are possible");
  }
}

tensor& live_copy(registered_variable& found, std::size_t rank) { return found.what.copies[rank][found.live]; }

struct rank_value {
  std::size_t rank = 0;
  tensor value{};
};

// What a rank is to have instead, if the shape changes; where it stays the memory does. Only what is updated has a
// place for what it is to be.
std::optional<std::array<tensor, 2>> other_copies(const registered_variable& found, const rank_value& what) {
  const auto& copies = found.what.copies[what.rank];
  const auto& live = copies[found.live];
  const auto& shape = what.value.shape();
  if (live.shape() == shape && live.storage() != nullptr) return std::nullopt;
  std::array<tensor, 2> made;
  made[found.live] = tensor::empty(live.dtype(), shape);
  if (found.is_updated) made[1U - found.live] = tensor::empty(live.dtype(), shape);
  return made;
}

// Ranks learn of other memory with the next call, and devices get the value. All memory is there before anything
// changes: in a full arena everything stays as it was.
void assign(registered_variable& found, std::span<const rank_value> values) {
  std::vector<std::optional<std::array<tensor, 2>>> others;
  others.reserve(values.size());
  for (const auto& each : values) others.push_back(other_copies(found, each));
  found.is_fresh_there = false;
  found.is_alike = false;
  for (std::size_t index = 0; index < values.size(); ++index) {
    auto& copies = found.what.copies[values[index].rank];
    if (others[index]) {
      copies = std::move(*others[index]);
      found.changed = 0;
    }
    copies[found.live].copy_from(values[index].value);
  }
}

void assign(registered_variable& found, std::size_t rank, const tensor& value) {
  const rank_value one{.rank = rank, .value = value};
  assign(found, {&one, 1});
}

void assign_to_all(registered_variable& found, const tensor& value) {
  std::vector<rank_value> values;
  values.reserve(found.what.copies.size());
  for (std::size_t rank = 0; rank < found.what.copies.size(); ++rank) values.push_back({.rank = rank, .value = value});
  assign(found, values);
  found.is_alike = true;
}

void deal_out(registered_variable& found, const tensor& rows) {
  const auto ranks = found.what.copies.size();
  std::vector<rank_value> values;
  values.reserve(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto part = part_of({.first = 0, .last = rows.rows()}, rank, ranks);
    values.push_back({.rank = rank, .value = rows.slice(part.first, part.last)});
  }
  assign(found, values);
}

void require_like(const variable& which, const tensor& value, std::size_t dimensions) {
  if (value.dtype() == which.dtype() && value.dimensions() == dimensions) return;
  refuse(which, "a value of ", value.dtype(), " in ", value.dimensions(), " dimensions was given, but it is of ",
         which.dtype(), " in ", dimensions);
}

void require_rank(const variable& which, std::size_t rank, std::size_t ranks) {
  if (rank >= ranks) refuse(which, "rank ", rank, " was named: the ranks are 0 to ", ranks - 1);
}

void require_selectable(const variable& which, const tensor& value, const row_selection& batch) {
  if (batch.is_all()) return;
  if (value.dimensions() == 0) refuse(which, "a batch of a value without dimensions was asked for");
  batch.require_within(value.rows(), text("the value for variable '", which.name(), "'"));
}

// Requires: require_selectable has not thrown.
tensor selected(const tensor& value, const row_selection& batch) {
  if (batch.is_all()) return value;
  if (!batch.is_list()) return value.slice(batch.range(0).first, batch.range(0).last);
  tensor taken;
  detail::take_rows(value, batch.list(), taken);
  return taken;
}

void require_scatterable(const variable& which, const tensor& value, const row_selection& batch) {
  require_selectable(which, value, batch);
  if (value.dimensions() == 0) refuse(which, "a value without dimensions has no rows that could be scattered");
}

void require_same_shapes(const variable& which, registered_variable& found, std::size_t ranks, std::size_t skipped) {
  const auto tail = [&](std::size_t rank) {
    const auto& shape = live_copy(found, rank).shape();
    return skipped == 0 ? shape : shape.without_first();
  };
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    if (tail(rank) == tail(0)) continue;
    refuse(which, "it has shape ", live_copy(found, 0).shape(), " in rank 0 and ", live_copy(found, rank).shape(),
           " in rank ", rank, ": ", skipped == 0 ? "the shapes must be the same" : "they may differ in the rows alone");
  }
}

void require_joinable(const variable& which, registered_variable& found, std::size_t ranks, output_op op) {
  require_same_shapes(which, found, ranks, 0);
  reduction(elementwise(which, op)).require(which.dtype());
}

// Requires: require_joinable has not thrown.
tensor joined(const variable& which, registered_variable& found, std::size_t ranks, output_op op) {
  const reduction how(elementwise(which, op));
  auto made = tensor::empty(which.dtype(), live_copy(found, 0).shape());
  std::vector<const std::byte*> inputs;
  inputs.reserve(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) inputs.push_back(live_copy(found, rank).const_data());
  auto* const out = made.data();
  detail::combine(how, which.dtype(), inputs, {&out, 1}, made.size(), detail::stores::normal);
  return made;
}

void require_gatherable(const variable& which, registered_variable& found, std::size_t ranks) {
  if (live_copy(found, 0).dimensions() == 0)
    refuse(which, "it has no dimensions along which it could be gathered: gather with a new one");
  require_same_shapes(which, found, ranks, 1);
}

// Requires: require_gatherable has not thrown.
tensor concatenated(const variable& which, registered_variable& found, std::size_t ranks) {
  auto shape = live_copy(found, 0).shape();
  shape[0] = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) shape[0] += live_copy(found, rank).rows();
  auto made = tensor::empty(which.dtype(), shape);
  std::size_t at = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto& from = live_copy(found, rank);
    made.slice(at, at + from.rows()).copy_from(from);
    at += from.rows();
  }
  return made;
}

tensor stacked(const variable& which, registered_variable& found, std::size_t ranks) {
  require_same_shapes(which, found, ranks, 0);
  tensor_shape shape{ranks};
  for (const auto size : live_copy(found, 0).shape()) shape.push_back(size);
  auto made = tensor::empty(which.dtype(), shape);
  for (std::size_t rank = 0; rank < ranks; ++rank) made.row(rank).copy_from(live_copy(found, rank));
  return made;
}

void require_of(const std::shared_ptr<detail::world_core>& core, const variable& which) {
  if (which.handle().world != core) refuse(which, "it is of another world");
}

using detail::world_core;

void require_nothing(std::size_t /*index*/, const registered_variable& /*found*/) {}

// With what all ranks have, or that rank.
template <class What>
void with(const std::shared_ptr<world_core>& core, const variable& which, const What& what,
          std::optional<std::size_t> rank = std::nullopt) {
  require_of(core, which);
  const auto number = which.handle().number;
  core->with_each_variable({&number, 1}, rank, require_nothing,
                           [&](std::size_t /*index*/, registered_variable& found) { what(found); });
}

// All of them are checked before the first one changes.
void change(const std::shared_ptr<world_core>& core, std::span<const variable> which,
            const world_core::variable_use& check, const world_core::variable_use& what) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(which.size());
  for (const auto& each : which) {
    require_of(core, each);
    numbers.push_back(each.handle().number);
  }
  core->with_each_variable(numbers, std::nullopt, check, what);
}

void require_as_many(std::span<const variable> which, std::span<const tensor> values) {
  if (which.size() == values.size()) return;
  throw error(errc::invalid_argument,
              text(which.size(), " variables were given ", values.size(), " values: each needs one"));
}

detail::rank_variable empty_copies(std::string name, bool is_scattered, std::size_t ranks, dtype type) {
  detail::rank_variable made{.name = std::move(name), .is_scattered = is_scattered, .copies = {}};
  made.copies.resize(ranks);
  for (auto& each : made.copies) each[0] = tensor::empty(type, {0});
  return made;
}

}  // namespace

variable world::replicate(std::string name, const tensor& value) {
  detail::rank_variable made;
  core_->with_variables([&](auto& /*others*/) {  // where memory is short ranks let go of what these were
    auto all = empty_copies(name, false, ranks(), value.dtype());
    const auto here = value.to(device::cpu());
    for (auto& each : all.copies) each[0] = here.clone();
    made = std::move(all);
  });
  const auto number = core_->add(std::move(made));
  return variable(
      std::make_shared<const detail::variable_handle>(core_, number, std::move(name), value.dtype(), false));
}

variable world::scattered(std::string name, const tensor& value, const row_selection& batch) {
  const auto number = core_->add(empty_copies(name, true, ranks(), value.dtype()));
  variable made(std::make_shared<const detail::variable_handle>(core_, number, std::move(name), value.dtype(), true));
  require_scatterable(made, value, batch);
  const auto rows = selected(value, batch);
  with(core_, made, [&](registered_variable& found) { deal_out(found, rows); });
  return made;
}

void world::require_distinct(std::span<const variable> which) {
  for (std::size_t index = 1; index < which.size(); ++index) {
    const auto before = which.first(index);
    const auto first = std::ranges::find(before, which[index]);
    if (first != before.end())
      refuse(which[index], "it was given twice, as number ", first - before.begin(), " and ", index);
  }
}

void world::broadcast(std::span<const variable> which) {
  require_distinct(which);
  change(core_, which, require_nothing, [this](std::size_t /*index*/, registered_variable& found) {
    assign_to_all(found, live_copy(found, master_rank()).clone());
  });
}

void world::broadcast(std::span<const variable> which, std::span<const tensor> values) {
  require_distinct(which);
  require_as_many(which, values);
  const auto check = [&](std::size_t index, registered_variable& found) {
    require_like(which[index], values[index], live_copy(found, 0).dimensions());
  };
  change(core_, which, check,
         [&](std::size_t index, registered_variable& found) { assign_to_all(found, values[index]); });
}

void world::scatter(std::span<const variable> which, std::span<const tensor> values, const row_selection& batch) {
  require_distinct(which);
  require_as_many(which, values);
  const auto check = [&](std::size_t index, registered_variable& found) {
    require_scatterable(which[index], values[index], batch);
    require_like(which[index], values[index], live_copy(found, 0).dimensions());
  };
  change(core_, which, check,
         [&](std::size_t index, registered_variable& found) { deal_out(found, selected(values[index], batch)); });
}

void world::broadcast(const variable& which) { broadcast(std::span(&which, 1)); }

void world::broadcast(const variable& which, const tensor& value) {
  broadcast(std::span(&which, 1), std::span(&value, 1));
}

void world::scatter(const variable& which, const tensor& value, const row_selection& batch) {
  scatter(std::span(&which, 1), std::span(&value, 1), batch);
}

tensor world::gather(const variable& which, unsigned new_dimensions) const {
  if (new_dimensions > 1)
    refuse(which, "it was to be gathered with ", new_dimensions, " new dimensions: 0 or 1 are possible");
  tensor made;
  with(core_, which, [&](registered_variable& found) {
    if (new_dimensions == 0) require_gatherable(which, found, ranks());
    made = new_dimensions == 0 ? concatenated(which, found, ranks()) : stacked(which, found, ranks());
  });
  return made;
}

tensor world::reduce(const variable& which, output_op op) const {
  tensor made;
  with(core_, which, [&](registered_variable& found) {
    require_joinable(which, found, ranks(), op);
    made = joined(which, found, ranks(), op);
  });
  return made;
}

void world::all_gather(std::span<const variable> which) {
  require_distinct(which);
  const auto check = [&](std::size_t index, registered_variable& found) {
    require_gatherable(which[index], found, ranks());
  };
  change(core_, which, check, [&](std::size_t index, registered_variable& found) {
    assign_to_all(found, concatenated(which[index], found, ranks()));
  });
}

void world::reduce_in_place(std::span<const variable> which, output_op op) {
  require_distinct(which);
  const auto check = [&](std::size_t index, registered_variable& found) {
    require_joinable(which[index], found, ranks(), op);
  };
  change(core_, which, check, [&](std::size_t index, registered_variable& found) {
    assign(found, master_rank(), joined(which[index], found, ranks(), op));
  });
}

void world::all_reduce(std::span<const variable> which, output_op op) {
  require_distinct(which);
  const auto check = [&](std::size_t index, registered_variable& found) {
    require_joinable(which[index], found, ranks(), op);
  };
  change(core_, which, check, [&](std::size_t index, registered_variable& found) {
    assign_to_all(found, joined(which[index], found, ranks(), op));
  });
}

void world::set_value(std::size_t rank, std::span<const variable> which, std::span<const tensor> values,
                      const row_selection& batch) {
  require_distinct(which);
  require_as_many(which, values);
  for (const auto& each : which) require_rank(each, rank, ranks());
  const auto check = [&](std::size_t index, registered_variable& found) {
    require_selectable(which[index], values[index], batch);
    require_like(which[index], values[index], live_copy(found, rank).dimensions());
  };
  change(core_, which, check,
         [&](std::size_t index, registered_variable& found) { assign(found, rank, selected(values[index], batch)); });
}

void world::all_gather(const variable& which) { all_gather(std::span(&which, 1)); }

void world::reduce_in_place(const variable& which, output_op op) { reduce_in_place(std::span(&which, 1), op); }

void world::all_reduce(const variable& which, output_op op) { all_reduce(std::span(&which, 1), op); }

void world::set_value(std::size_t rank, const variable& which, const tensor& value, const row_selection& batch) {
  set_value(rank, std::span(&which, 1), std::span(&value, 1), batch);
}

tensor world::get_value(std::size_t rank, const variable& which) const {
  require_rank(which, rank, ranks());
  tensor made;
  with(core_, which, [&](registered_variable& found) { made = live_copy(found, rank).clone(); }, rank);
  return made;
}

std::vector<tensor_shape> world::get_shapes(const variable& which) const {
  std::vector<tensor_shape> shapes;
  require_of(core_, which);
  core_->with_variables([&](auto& variables) {
    auto& found = variables.at(which.handle().number);
    for (std::size_t rank = 0; rank < ranks(); ++rank) shapes.push_back(live_copy(found, rank).shape());
  });
  return shapes;
}

std::vector<std::size_t> world::get_lengths(const variable& which) const {
  std::vector<std::size_t> lengths;
  for (const auto& shape : get_shapes(which)) {
    if (shape.empty()) refuse(which, "it has no dimensions, so no length");
    lengths.push_back(shape[0]);
  }
  return lengths;
}

}  // namespace muster
