// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/function_core.hpp>

#include <algorithm>
#include <functional>
#include <iomanip>
#include <ostream>
#include <set>
#include <utility>

#include <muster/base/clock.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/parallel/detail/tensor_accumulator.hpp>
#include <muster/parallel/detail/value_name.hpp>

namespace muster {

namespace detail {

namespace {

[[noreturn]] void refuse(const function_spec& spec, const std::string& why) {
  throw error(errc::invalid_argument, text("function '", spec.name, "' cannot be made: ", why));
}

reduction_op op_for_rule(output_op op) {
  switch (op) {
    case output_op::prod: return reduction_op::prod;
    case output_op::min: return reduction_op::min;
    case output_op::max: return reduction_op::max;
    case output_op::sum:
    case output_op::count_true: return reduction_op::sum;
    default: return reduction_op::avg;
  }
}

void require_whole_op(const function_spec& spec, std::size_t index, const variable& which) {
  const auto op = spec.updates[index].op;
  const auto made = result_type(op, which.dtype(), value_name(spec, value_name::kind::update, index));
  if (made == which.dtype()) return;
  refuse(spec,
         text("update ", index, " of variable '", which.name(), "', which is ", which.dtype(), ", is to be joined by ",
              output_op_name(op), ", but ", op == output_op::count_true ? "what that gives" : "an average of integers",
              " is ", made, ": give sum, prod, min or max, or make the variable one of ", made));
}

void require_update(const function_spec& spec, std::size_t index, const variable& which) {
  const auto& update = spec.updates[index];
  if (update.op == output_op::gather || update.op == output_op::none) {
    refuse(spec,
           text("update ", index, " of variable '", which.name(), "' is to be joined by ", output_op_name(update.op),
                ", which makes no single value: avg, sum, prod, min, max are possible"));
  }
  if (update.kind != update_kind::reduced_into) return require_whole_op(spec, index, which);
  if (update.op == output_op::count_true) require_whole_op(spec, index, which);
  if (which.is_scattered()) {
    refuse(spec, text("variable '", which.name(),
                      "' is scattered, so that its parts in the ranks differ, but what is reduced is the same in all "
                      "ranks: replicate it, or use assign or increment"));
  }
  update.rule.require(which.dtype(), op_for_rule(update.op));
}

void require_possible(const function_spec& spec, const std::vector<variable>& updated) {
  constexpr std::size_t most_outputs = 64;
  if (spec.outputs.size() > most_outputs)
    refuse(spec, text("it has ", spec.outputs.size(), " outputs; at most ", most_outputs, " are possible"));
  std::set<std::uint32_t> seen;
  for (std::size_t index = 0; index < spec.updates.size(); ++index) {
    require_update(spec, index, updated[index]);
    if (!seen.insert(spec.updates[index].variable).second) {
      refuse(spec, text("variable '", updated[index].name(), "' is updated twice: join the two in the function"));
    }
  }
}

// Only what is updated has a place for what it is to be.
void make_room(const function_spec& spec, std::map<std::uint32_t, registered_variable>& variables) {
  for (const auto& update : spec.updates) {
    auto& found = variables.at(update.variable);
    const bool is_reduced = update.kind == update_kind::reduced_into;
    if (is_reduced && !std::exchange(found.is_reduced, true)) found.changed = 0;  // ranks are told of others' copies
    if (found.is_resident) continue;  // it is made on the devices, with the first call
    for (auto& copies : found.what.copies) {
      const auto& live = copies[found.live];
      auto& next = copies[1 - found.live];
      const bool is_there = next.dtype() == live.dtype() && next.shape() == live.shape() &&
                            (next.storage() != nullptr || live.size() == 0);
      if (is_there) continue;
      next = tensor::empty(live.dtype(), live.shape());
      found.changed = 0;
    }
    found.is_updated = true;
  }
}

// What the rule of an update remembers: zeros at first, once for all ranks.
std::vector<rank_variable> states_of(const update_spec& update, const registered_variable& variable) {
  const auto& value = variable.what.copies[0][variable.live];
  const auto type = update_rule::state_type(value.dtype());
  std::vector<rank_variable> made;
  made.reserve(update.rule.state_count());
  for (std::size_t index = 0; index < update.rule.state_count(); ++index) {
    made.push_back({.name = text(update.rule.name(), " of ", variable.what.name),
                    .copies = {{tensor::zeros(type, value.shape()),
                                variable.is_resident ? tensor() : tensor::empty(type, value.shape())}},
                    .is_state = true});
  }
  return made;
}

void remove_states(world_core& world, const function_spec& spec) noexcept {
  for (const auto& update : spec.updates) {
    for (const auto state : update.states) world.remove_variable(state);
  }
}

void add_states(world_core& world, function_spec& spec) {
  std::vector<std::vector<rank_variable>> made;
  world.with_variables([&](auto& variables) {
    made.clear();
    make_room(spec, variables);
    for (const auto& update : spec.updates) made.push_back(states_of(update, variables.at(update.variable)));
  });
  for (std::size_t index = 0; index < made.size(); ++index) {
    for (auto& each : made[index]) spec.updates[index].states.push_back(world.add(std::move(each)));
  }
}

function_spec entered(const std::shared_ptr<world_core>& world, function_spec spec, const std::vector<variable>& used) {
  for (const auto& each : used) {
    if (each.handle().world != world) {
      refuse(spec, text("variable '", each.name(), "' is of another world"));
    }
  }
  const std::vector<variable> updated(used.end() - static_cast<std::ptrdiff_t>(spec.updates.size()), used.end());
  require_possible(spec, updated);
  add_states(*world, spec);
  return spec;
}

}  // namespace

function_core::function_core(std::shared_ptr<world_core> world, registered_function what, std::vector<variable> used)
    : world_(std::move(world)), used_(std::move(used)), spec_(entered(world_, std::move(what.spec), used_)) {
  what.spec = spec_;
  try {
    profile_.ranks.resize(world_->ranks());
    number_ = world_->add(std::move(what));
  } catch (...) {
    remove_states(*world_, spec_);
    throw;
  }
}

function_core::~function_core() {
  world_->remove_function(number_);
  remove_states(*world_, spec_);
}

std::vector<output_op> function_core::output_modes() const {
  std::vector<output_op> modes;
  modes.reserve(spec_.outputs.size());
  for (const auto& each : spec_.outputs) modes.push_back(each.op);
  return modes;
}

std::vector<output_op> function_core::update_modes() const {
  std::vector<output_op> modes;
  modes.reserve(spec_.updates.size());
  for (const auto& each : spec_.updates) modes.push_back(each.op);
  return modes;
}

void function_core::run(run_request& request) {
  world_->require_here();  // a forked child neither counts nor traces what it is refused
  traced_call seen{.function = spec_.name, .begin = clock::now(), .ranks = {}};
  try {
    call(request, seen);
  } catch (...) {
    seen.total = clock::now() - seen.begin;
    seen.failed = true;
    count_failure();
    trace(seen);
    throw;
  }
  if (!seen.ranks.empty()) trace(seen);
}

void function_core::call(run_request& request, traced_call& seen) {
  std::uint64_t of_rows = 0;
  std::uint64_t of_values = 0;
  const auto prepare = [&](const registered_function&, const auto& variables) {
    auto made = checked_request(spec_, request, variables, *world_->where(), world_->ranks());
    made.function = number_;
    of_rows = made.rows * made.row_bytes;
    made.write_values = [&](frame_writer& out) {
      const auto before = out.written();
      request.write_values(out);
      of_values = out.written() - before;
    };
    return made;
  };
  const auto happened = [&](const std::vector<rank_times>& times) {
    seen.total = clock::now() - seen.begin;
    seen.input_bytes = of_rows + of_values;
    count(times, seen);
    if (world_->trace().is_on()) keep(times, seen);
  };
  // By reference: a std::function of more than two words is an allocation.
  world_->call(std::ref(prepare), number_, request.options.timeout, std::ref(happened));
}

// A call has happened by now, or has not: whatever becomes of its figures does not change that.
void function_core::keep(const std::vector<rank_times>& times, traced_call& seen) noexcept {
  try {
    seen.ranks = times;
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): without memory the trace lacks it
  }
}

// Without the world's lock: whoever reads the file, which may be a pipe, may ask the world for something first.
void function_core::trace(const traced_call& seen) noexcept {
  try {
    world_->trace().add(seen);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the same
  }
}

void function_core::run_here(run_request& request) {
  constexpr std::size_t only_rank = 1;
  world_->run_here(
      [&](const registered_function&, const auto& variables) {
        auto made = checked_request(spec_, request, variables, *world_->where(), only_rank);
        made.function = number_;
        return made;
      },
      number_);
}

void function_core::count_failure() noexcept {
  const scoped_lock lock(mutex_);
  ++profile_.failed;
}

// Requires: times of all ranks.
void function_core::count(const std::vector<rank_times>& times, const traced_call& seen) noexcept {
  const scoped_lock lock(mutex_);
  ++profile_.calls;
  profile_.total += seen.total;
  profile_.input_bytes += seen.input_bytes;
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    const auto& more = times[rank];
    auto& sum = profile_.ranks[rank];
    const auto add = [](std::chrono::nanoseconds& to, float time) { to += nanoseconds_of(time); };
    add(sum.scatter, more.scatter);
    add(sum.compute, more.compute);
    add(sum.accumulate, more.accumulate);
    add(sum.wait, more.wait);
    add(sum.reduce, more.reduce);
  }
}

call_profile function_core::profile() const {
  const scoped_lock lock(mutex_);
  return profile_;
}

void run_in_ranks(function_core& which, run_request& request) { which.run(request); }
void run_here(function_core& which, run_request& request) { which.run_here(request); }
const function_spec& spec_of(const function_core& which) noexcept { return which.spec(); }
std::vector<output_op> output_modes_of(const function_core& which) { return which.output_modes(); }
std::vector<output_op> update_modes_of(const function_core& which) { return which.update_modes(); }
call_profile profile_of(const function_core& which) { return which.profile(); }
std::shared_ptr<local_core> conductor_of(function_core& which) { return which.conductor(); }

}  // namespace detail

std::ostream& operator<<(std::ostream& out, const call_profile& what) {
  const auto calls = static_cast<double>(std::max<std::uint64_t>(what.calls, 1));
  const auto in_microseconds = [&](std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::micro>(time).count() / calls;
  };
  const auto old_flags = out.setf(std::ios::fixed, std::ios::floatfield);
  const auto old_precision = out.precision(1);
  out << what.calls << " calls of " << in_microseconds(what.total) << " us, "
      << static_cast<double>(what.input_bytes) / calls << " bytes of inputs each\n"
      << "rank     scatter     compute  accumulate        wait      reduce\n";
  for (std::size_t rank = 0; rank < what.ranks.size(); ++rank) {
    const auto& each = what.ranks[rank];
    out << std::setw(4) << rank;
    for (const auto time : {each.scatter, each.compute, each.accumulate, each.wait, each.reduce}) {
      out << std::setw(12) << in_microseconds(time);
    }
    out << '\n';
  }
  out.flags(old_flags);
  out.precision(old_precision);
  return out;
}

}  // namespace muster
