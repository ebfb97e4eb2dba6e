// SPDX-License-Identifier: BSL-1.0
// Variables on the ranks' devices: how they come there, and back to the host. Each rank allocates its own copies, and
// the caller holds references to all, so that none goes with its rank; which are live, and whether they are newer than
// the host's, he alone knows, as docs/design/parallel.md says of the copies on the host.
#include <algorithm>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/detail/device_block.hpp>
#include <muster/parallel/detail/world_core.hpp>

#include "call_guard.hpp"
#include "world_news.hpp"
#include "world_outcome.hpp"

namespace muster::detail {

named_copy registered_variable::named() const noexcept {
  const auto bit = [](bool is_set, unsigned place) { return static_cast<unsigned>(is_set) << place; };
  return {static_cast<std::uint8_t>(live | bit(live_there != 0, 1) | bit(is_resident, 2) | bit(!is_fresh_there, 3) |
                                    bit(is_alike, 4))};
}

void registered_variable::change_there(bool to_alike) {
  live_there ^= 1U;
  is_alike = to_alike;
  is_stale_here.assign(what.copies.size(), true);
}

bool world_core::are_all_on_devices() const {
  if (devices_.empty()) return false;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (device_of(rank).is_cpu()) return false;
  }
  return true;
}

bool world_core::has_room_there(const registered_variable& which, std::size_t copies) const {
  const auto& there = which.what.on_device;
  if (there.size() != ranks()) return false;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto& here = which.what.copies[which.what.is_state ? 0 : rank][which.live];
    auto shape = here.shape();
    if (which.what.is_state) shape = {elements_of(here.size(), rank, ranks()).size()};
    for (std::size_t index = 0; index < 2; ++index) {
      const auto& each = there[rank][index];
      const bool is_needed = copies == 2 || index == which.live_there;
      if (!is_needed) continue;
      if (each.dtype() != here.dtype() || each.shape() != shape) return false;
      if (each.size() != 0 && (each.storage() == nullptr || each.storage()->on_device() == nullptr)) return false;
    }
  }
  return true;
}

namespace {

// Also when the rank that has made it has died: else who takes its place could not go on with it.
bool is_lasting(const tensor& made) {
  if (made.size() == 0) return true;
  const auto* const where = made.storage()->on_device();
  return where != nullptr && where->outlives_its_process();
}

}  // namespace

// For good, before anything has been updated there: with the world's first variables.
void world_core::leave_devices() {
  is_resident_ = false;
  for (auto& [known_as, each] : variables_) {
    each.what.on_device.clear();
    each.changed = ++changes_;
    const bool is_updated = std::ranges::any_of(functions_, [number = known_as](const auto& function) {
      return std::ranges::any_of(function.second.spec.updates, [number](const update_spec& update) {
        return update.variable == number || std::ranges::count(update.states, number) != 0;
      });
    });
    if (is_updated) make_room_here(each);
    each.is_resident = false;
  }
}

// What is updated has a place for what it is to be.
void world_core::make_room_there(const registered_function& function, deadline until) {
  const auto order = live_order(function.spec);
  std::vector<residence_job> jobs;
  for (const auto number : order) {
    auto& each = variables_.at(number);
    const bool is_updated = std::ranges::any_of(function.spec.updates, [number](const update_spec& update) {
      return update.variable == number || std::ranges::count(update.states, number) != 0;
    });
    const bool is_known =
        std::ranges::any_of(jobs, [number](const residence_job& job) { return job.variable == number; });
    const std::uint32_t copies = is_updated ? 2 : 1;
    if (is_known || has_room_there(each, copies)) continue;
    bring(number, {});  // no-op for what was updated there: that has room for two
    each.what.on_device.clear();
    each.live_there = 0;
    each.is_fresh_there = false;
    each.changed = ++changes_;
    jobs.push_back({.variable = number, .copies = copies, .live = each.named()});
  }
  if (jobs.empty()) return;
  outcome ended;
  tend(jobs, function.spec.name, until, ended);
  for (const auto& of_rank : ended.made) {
    for (const auto& pair : of_rank) {
      if (!std::ranges::all_of(pair, is_lasting)) return leave_devices();
    }
  }
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    auto& each = variables_.at(jobs[index].variable);
    for (auto& of_rank : ended.made) each.what.on_device.push_back(std::move(of_rank.at(index)));
    each.changed = ++changes_;
  }
}

// Who has what all others have too, if there is such a rank: one of which the host has it already, if possible.
std::optional<std::size_t> world_core::source_of(const registered_variable& which, std::size_t otherwise) const {
  if (!which.is_alike || which.what.is_state) return std::nullopt;
  for (std::size_t rank = 0; rank < which.what.copies.size(); ++rank) {
    if (!which.is_stale(rank)) return rank;
  }
  return own_rank_.value_or(otherwise);
}

void world_core::bring(std::uint32_t number, std::optional<std::size_t> rank) {
  auto& found = variables_.at(number);
  auto& copies = found.what.copies;
  const auto first = rank.value_or(0);
  const auto last = rank ? *rank + 1 : copies.size();
  bool is_stale = false;
  for (auto each = first; each < last; ++each) is_stale |= found.is_stale(each);
  if (!is_stale) return;
  const auto source = source_of(found, first);
  const auto whose = source ? source : rank;
  if (!source || found.is_stale(*source)) {
    outcome ended;
    const auto asked = whose ? static_cast<std::uint32_t>(*whose) : residence_job::all_ranks;
    tend({{.variable = number, .rank = asked, .live = found.named()}}, text("get_value of ", found.what.name),
         call_end(), ended);
    if (whose) {
      found.is_stale_here[*whose] = false;
    } else {
      found.is_stale_here.clear();
    }
  }
  for (auto each = first; source && each < last; ++each) {
    if (!found.is_stale(each)) continue;
    copies[each][found.live].copy_from(copies[*source][found.live]);
    found.is_stale_here[each] = false;
  }
}

void world_core::bring_all(const function_spec& spec) {
  if (!is_resident_) return;
  for (const auto number : live_order(spec)) bring(number, {});
}

// Who dies meanwhile has lost nothing: another one takes his place, and it is asked for once more.
void world_core::tend(const std::vector<residence_job>& jobs, const std::string& why, deadline until, outcome& ended) {
  constexpr unsigned most_tries = 3;
  for (unsigned tries = 1;; ++tries) {
    replace_the_dead(why, until);
    tell_news();
    arguments_.put(memory_.command().arguments, [&](output_archive& out) { out(jobs); });
    ended = {.until = until, .what = world_order::tend};
    ended.made.resize(ranks());
    ++epoch_;
    progress_.begin(epoch_);
    order(world_order::tend);
    run_own_share(ended);
    conduct(ended, {});
    if (!ended.failed) return;
    const bool is_by_death = has_lost_ranks();
    registered_function what;
    what.spec.name = why;
    if (!is_by_death || tries == most_tries) fail(ended, what);
  }
}

bool world_core::has_news() const {
  return std::ranges::any_of(told_, [now = changes_](std::uint64_t known) { return known != now; });
}

// Also where there is a function that some rank cannot make.
void world_core::spread_news(deadline until) {
  outcome ended;
  tend({}, "telling the news", until, ended);
  all_have_been_told();
}

bool world_core::has_lost_ranks() const noexcept {
  bool is_any = false;
  for (std::size_t rank = 0; rank < ranks(); ++rank) is_any |= progress_.is_dead(rank) && !progress_.is_doomed(rank);
  return is_any;
}

void world_core::read_made(std::size_t rank, outcome& ended) {
  const frame_view frame(domain_->blocks(), memory_.line(rank).reply);
  keeping_source kept(domain_->blocks());
  input_archive in(frame.bytes(), &kept);
  in(ended.made[rank]);
}

// Without rows each rank leaves its replica as it is.
void world_core::commit_there(const registered_function& function, bool is_for_nothing) {
  for (const auto number : live_order(function.spec)) variables_.at(number).is_fresh_there = true;
  for (const auto& update : function.spec.updates) {
    auto& found = variables_.at(update.variable);
    const bool stays_alike = is_for_nothing ? found.is_alike : update.kind == update_kind::reduced_into;
    found.change_there(stays_alike || ranks() == 1);
    for (const auto state : update.states) variables_.at(state).change_there(true);
  }
}

void world_core::with_each_variable(std::span<const std::uint32_t> numbers, std::optional<std::size_t> rank,
                                    const variable_use& check, const variable_use& what) {
  made_in_.require_here("a world");
  const call_guard inside(caller_, options_.name);
  const scoped_lock lock(mutex_);
  require_open();
  for (std::size_t index = 0; index < numbers.size(); ++index) check(index, variables_.at(numbers[index]));
  if (is_resident_) {
    const presence caller(*this);
    for (const auto number : numbers) bring(number, rank);
  }
  try {
    // Each by itself: what has been done with one must not be done again where there is no room for the next.
    for (std::size_t index = 0; index < numbers.size(); ++index) {
      const auto with_one = [&what, index](registered_variable& found) { what(index, found); };
      with_room(call_end(), with_one, variables_.at(numbers[index]));
    }
  } catch (...) {
    note_changes();  // some may have other memory already
    throw;
  }
  note_changes();
}

}  // namespace muster::detail
