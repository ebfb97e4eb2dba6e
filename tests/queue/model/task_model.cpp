// SPDX-License-Identifier: BSL-1.0
#include "task_model.hpp"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "task_step.hpp"

namespace muster::model {

namespace {

// ---- what must hold

std::string text_of(wrong what) {
  switch (what) {
    case wrong::none: return {};
    case wrong::foreign_reply: return "a task got another's reply";
    case wrong::slot_changed_hands: return "a slot changed hands behind its record";
    case wrong::settled_twice: return "a task ended twice";
    case wrong::value_of_nothing: return "a value of a task that nobody ran";
    case wrong::run_after_its_end: return "a task was run that had ended";
    case wrong::run_too_often: return "a task was run more often than it may be";
    case wrong::paid_without_having_begun: return "a task paid that nobody had begun";
    case wrong::lost_a_reply: return "a reply was thrown away";
    case wrong::paid_for_anothers_timeout: return "a task paid for another's timeout";
    case wrong::timed_out_as_another: return "a task ended with the timeout of another";
    case wrong::timed_out_before_it_began: return "a task timed out that nobody had begun";
  }
  return "an unknown violation";
}

std::string check_end(const state& now, const scenario& what) {
  for (std::size_t client = 0; client < what.clients; ++client) {
    const auto& record = now.parent.all[client];
    if (now.each[client].locals.pc != client_finished) return "a client waits for ever";
    if (record.how == outcome::none) return "a task never ends";
    const bool has_sink = client == 0 ? what.first_has_sink : what.second_has_sink;
    if (record.told != (has_sink ? 1 : 0)) return "a sink was not told once";
  }
  for (const auto each : now.parent.in_slot) {
    if (each != nobody) return "a slot is never free again";
  }
  for (std::size_t worker = 0; worker < what.workers; ++worker) {
    const bool sleeps = now.each[first_worker + worker].asleep_on == at::parked + worker;
    if (now.each[first_worker + worker].locals.pc == await_death) return "a worker waits for a death that nobody sends";
    if (sleeps && (now.memory[at::sleeping] >> worker & 1U) == 0) return "a worker sleeps that nobody will wake";
  }
  return {};
}

// Else a ticket that is too old could lead to a task after all, see docs/design/model.md.
bool has_passed_queued_task(const state& now) {
  const auto head = now.memory[at::lane_head];
  for (auto ticket = std::max<std::uint64_t>(now.parent.lane_tail, entries) - entries; ticket < head; ++ticket) {
    const auto entry = now.memory[at::lane_entries + ticket % entries];
    const slot_word found(now.memory[at::slot + (entry & 0xffffU)]);
    if (found.state() == slot_state::queued && found.short_generation() == (entry >> 16U & 0xffffffffU)) return true;
  }
  return false;
}

std::string check(const state& now, bool is_end, const scenario& what) {
  for (const auto& each : now.parent.all) {
    if (each.found != wrong::none) return text_of(each.found);
  }
  if (has_passed_queued_task(now)) return "the lane's head has passed a task that is queued";
  return is_end ? check_end(now, what) : std::string();
}

// ---- what can happen next

void die(state& of, std::size_t worker) {
  const bool was_killed = (of.memory[at::killed] >> worker & 1U) != 0;
  if (!was_killed) --of.crashes_left;
  ++of.deaths[worker];
  of.died_by_kill[worker] = was_killed ? 1 : 0;
  of.each[first_worker + worker] = {};
  of.each[first_worker + worker].gone = 1;
  of.memory[at::dead] |= std::uint64_t{1} << worker;
}

class successors_of {
public:
  successors_of(const state& from, const scenario& what, std::vector<state>& next)
      : from_(from), what_(what), next_(next) {}

  // In a reduced scenario one process is enough whose next operation commutes with whatever others do before it.
  bool add_all() {
    for (std::size_t who = 0; who < processes; ++who) {
      if (stands_still(who)) continue;
      const auto first = next_.size();
      if (!add_steps(who) || !what_.reduced || !commutes(from_, who, uses_, what_)) continue;
      next_.erase(next_.begin(), next_.begin() + static_cast<std::ptrdiff_t>(first));
      if (who >= first_worker && uses_.writes != 0) add_death(who - first_worker);
      return true;
    }
    bool goes_on = !next_.empty();
    for (std::size_t worker = 0; worker < what_.workers; ++worker) {
      if (add_death(worker) && (from_.memory[at::killed] >> worker & 1U) != 0) goes_on = true;
    }
    return goes_on;
  }

private:
  [[nodiscard]] bool stands_still(std::size_t who) const {
    const auto& process = from_.each[who];
    const bool finished = who < supervisor && process.locals.pc == client_finished;
    return process.gone != 0 || process.asleep_on != nobody || finished;
  }
  bool add_steps(std::size_t who) {
    bool any = false;
    for (std::size_t choice = 0; choice < step::choices(from_, who); ++choice) {
      step taken(next_.emplace_back(from_), who, what_);
      if (taken.take(choice)) {
        any = true;
        uses_ = taken.uses();
      } else {
        next_.pop_back();
      }
    }
    return any;
  }
  bool add_death(std::size_t worker) {
    if (!may_die(from_, worker, what_)) return false;
    die(next_.emplace_back(from_), worker);
    return true;
  }

  const state& from_;
  const scenario& what_;
  std::vector<state>& next_;
  access uses_;
};

state first_state(const scenario& what) {
  state first;
  first.crashes_left = what.crashes;
  first.timeouts_left = what.timeouts;
  first.memory[at::armed] = 1;
  for (std::size_t client = 0; client < tasks; ++client) {
    if (client >= what.clients) first.each[client].locals.pc = client_finished;
  }
  for (std::size_t worker = 0; worker < most_model_workers; ++worker) {
    first.each[first_worker + worker].gone = worker < what.workers ? 0 : 1;
  }
  return first;
}

}  // namespace

verdict explore_tasks(const scenario& what, std::size_t most_states) {
  std::unordered_set<std::uint64_t> ends;
  const auto successors = [&](const state& from, std::vector<state>& next) {
    return successors_of(from, what, next).add_all();
  };
  auto found = explore(first_state(what), most_states, name_of, successors, [&](const state& now, bool is_end) {
    if (is_end) ends.insert(name_of(now).low);
    return check(now, is_end, what);
  });
  found.ends = ends.size();
  for (const auto each : ends) found.ends_digest += each;
  return found;
}

}  // namespace muster::model
