// SPDX-License-Identifier: BSL-1.0
// The conduct of a call: what the caller does between its arguments and its results.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/parallel/detail/world_core.hpp>

#include "call_guard.hpp"
#include "ended_ranks.hpp"
#include "world_news.hpp"
#include "world_outcome.hpp"

namespace muster::detail {

namespace {

// Without a look at the clock where there is no end.
deadline end_after(std::chrono::nanoseconds most) {
  return most == std::chrono::nanoseconds::max() ? deadline::never() : deadline::after(most);
}

}  // namespace

deadline world_core::call_end() const { return end_after(options_.call_timeout); }

void world_core::call(const preparation& prepare, std::uint32_t function, std::chrono::nanoseconds timeout,
                      const call_listener& happened) {
  made_in_.require_here("a world");
  const call_guard inside(caller_, options_.name);
  const scoped_lock lock(mutex_);
  const presence caller(*this);
  require_open();
  outcome ended{.until = end_after(std::min(timeout, options_.call_timeout))};
  auto& found = functions_.at(function);
  replace_the_dead(found.spec.name, ended.until);
  if (is_resident_) make_room_there(found, ended.until);
  const auto request = with_room(ended.until, prepare, found, variables_);
  tell_news();
  prepare_arguments(found, request);
  ++epoch_;
  progress_.begin(epoch_);
  if (called_) called_->set(found.spec.name);
  arguments_.show(memory_.command().arguments);
  order(world_order::run);
  run_own_share(ended);
  conduct(ended, request);
  if (ended.failed) fail(ended, found);
  commit(found, request);
  happened(times_);
}

// Ranks that were told of a function need not have been able to make it: a call of another one does not say so.
void world_core::distribute() {
  made_in_.require_here("a world");
  const call_guard inside(caller_, options_.name);
  const scoped_lock lock(mutex_);
  require_open();
  registered_function what;
  what.spec.name = "distribute";  // for the text of an error
  outcome ended{.until = call_end(), .what = world_order::learn};
  replace_the_dead(what.spec.name, ended.until);
  if (learned_ == changes_) return;
  tell_news();
  ++epoch_;
  progress_.begin(epoch_);
  order(world_order::learn);
  run_own_share(ended);
  conduct(ended, {});
  if (ended.failed) fail(ended, what);
  learned_ = changes_;
  all_have_been_told();
}

void world_core::order(world_order what) noexcept {
  memory_.command().command.store(command_word{.epoch = epoch_, .what = what}.pack(), std::memory_order_seq_cst);
  for (std::size_t rank = 0; rank < ranks(); ++rank) ring(memory_.line(rank).bell);
}

void world_core::tell_news() {
  offered_ = changes_;
  for (std::size_t rank = 0; rank < ranks(); ++rank) own_rank_ == rank ? tell_own_news() : tell_news(rank);
}

// What is gone went from there at once.
void world_core::tell_own_news() {
  auto& known = told_[*own_rank_];
  if (known == changes_) return;
  for (const auto& [number, each] : variables_) {
    if (each.changed > known) own_->variables()[number] = each.what;
  }
  for (const auto& [number, each] : functions_) {
    if (each.changed > known) own_->learn(number, {.spec = each.spec, .code = each.code});
  }
  known = changes_;
}

namespace {

// A rank holds what it knows, and each hold takes a descriptor: so it knows of others' copies only where it writes into
// them. Of what rules remember there is one for all.
rank_variable as_known_to(std::size_t rank, const registered_variable& which) {
  const auto known = [&](const std::vector<std::array<tensor, 2>>& copies) {
    if (which.is_reduced || copies.size() <= 1) return copies;
    std::vector<std::array<tensor, 2>> own(copies.size());
    own[rank] = copies[rank];
    return own;
  };
  return {.name = which.what.name,
          .is_scattered = which.what.is_scattered,
          .copies = known(which.what.copies),
          .is_state = which.what.is_state,
          .on_device = known(which.what.on_device)};
}

}  // namespace

void world_core::tell_news(std::size_t rank) {
  auto& area = memory_.line(rank).news;
  if (told_[rank] == changes_) {
    if (area.bytes == 0) return;  // it is read with each call
    area.bytes = 0;
    area.block = 0;  // or each call would look for it
    return;
  }
  std::vector<function_news> functions;
  std::vector<variable_news> variables;
  const auto is_new = [known = told_[rank]](std::uint64_t change) { return change > known; };
  for (const auto& [change, number] : gone_functions_) {
    if (is_new(change)) functions.push_back({.number = number, .is_gone = true});
  }
  for (const auto& [change, number] : gone_variables_) {
    if (is_new(change)) variables.push_back({.number = number, .is_gone = true});
  }
  for (const auto& [number, each] : variables_) {
    if (is_new(each.changed)) variables.push_back({.number = number, .what = as_known_to(rank, each)});
  }
  for (const auto& [number, each] : functions_) {
    if (!is_new(each.changed)) continue;
    functions.push_back({.number = number, .spec = each.spec, .factory = each.factory, .sent = each.sent});
  }
  news_[rank].put(area, [&](output_archive& out) { out(functions, variables); });
}

void world_core::prepare_arguments(const registered_function& function, const world_request& request) {
  const world_call_header header{.function = request.function,
                                 .slices = request.slices,
                                 .outputs = request.outputs,
                                 .rows = request.rows,
                                 .step = function.steps + 1};
  const auto write = [&](frame_writer& out) {
    out.write(&header, sizeof header);
    request.call.write_to(out, function.spec);
    request.write_values(out);
  };
  if (function.code->has_archived_values()) {
    arguments_.prepare<output_archive>(memory_.command().arguments, write);
  } else {
    arguments_.prepare<frame_writer>(memory_.command().arguments, write);
  }
}

void world_core::run_own_share(const outcome& ended) {
  if (!own_) return;
  own_->watch([this] { return is_hopeless(); }, ended.until);
  own_->take_part(epoch_, ended.what);
}

// For whoever waits for other ranks: one of them is not going to answer as he hopes. Only what progress_ does not know
// yet counts: once the call is aborted, who has failed already must not end the wait for the rest, nor its deadline.
bool world_core::is_hopeless() {
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto* const process = process_of(rank);
    if (process == nullptr || progress_.is_dead(rank)) continue;
    if (process->is_gone(*domain_)) return true;
    if (!progress_.is_awaited(rank)) continue;
    const auto found = answer_word::unpack(memory_.line(rank).answer.load(std::memory_order_seq_cst));
    if (found.epoch == epoch_ && (found.what == rank_phase::failed || found.what == rank_phase::dropped)) return true;
  }
  return false;
}

void world_core::conduct(outcome& ended, const world_request& request) {
  for (;;) {
    look_at_ranks();
    switch (progress_.decide()) {
      case call_progress::next::wait: await_answers(ended); break;
      case call_progress::next::abort:
        if (!ended.late) ended.late = progress_.late();  // the caller's own share may have waited for it
        if (is_nobody_to_blame()) note_lateness(ended);
        order(world_order::abort);
        ended.aborted = true;
        ended.until = deadline::after(options_.grace);
        break;
      case call_progress::next::settled: ended.failed = true; return;
      case call_progress::next::commit:
        read_replies(ended, request);
        if (has_somebody_died()) look_at_ranks();  // while his outputs were read
        if (progress_.decide() == call_progress::next::commit) return;
        order(world_order::abort);
        ended.aborted = true;
        break;
    }
  }
}

// No rank has failed or died yet: the call is given up because its time is over.
bool world_core::is_nobody_to_blame() const noexcept {
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (progress_.is_dead(rank) || progress_.has_failed(rank)) return false;
  }
  return true;
}

// Now: a rank that has seen the order to leave the call may fail because of it.
void world_core::note_lateness(outcome& ended) const noexcept {
  ended.late_as = memory_.count_failure();
  ended.ended = ended_ranks(*domain_, memory_);
}

void world_core::look_at_ranks() noexcept {
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    progress_.answered(rank, answer_word::unpack(memory_.line(rank).answer.load(std::memory_order_seq_cst)));
    const auto* const process = process_of(rank);
    if (process != nullptr && !progress_.is_dead(rank) && process->is_gone(*domain_)) progress_.died(rank);
  }
}

bool world_core::has_somebody_died() noexcept {
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto* const process = process_of(rank);
    if (process != nullptr && !progress_.is_dead(rank) && process->is_gone(*domain_)) return true;
  }
  return false;
}

// All of them, or one that it has failed: then others may wait for that one, until they are told.
bool world_core::have_answered() const noexcept {
  bool is_any_left = false;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (!progress_.is_awaited(rank)) continue;
    const auto found = answer_word::unpack(memory_.line(rank).answer.load(std::memory_order_seq_cst));
    const bool has_answered = found.epoch == epoch_ && is_quiet(found.what) && !progress_.is_doomed(rank);
    if (has_answered && found.what == rank_phase::failed) return true;
    is_any_left |= !has_answered;
  }
  return !is_any_left;
}

// Of the ranks that are to answer.
prospect world_core::ask_awaited() const noexcept {
  auto most = prospect::usual;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (!progress_.is_awaited(rank)) continue;
    const auto of_rank = prospect_of(memory_.line(rank).place);
    if (of_rank <= most) continue;
    const auto found = answer_word::unpack(memory_.line(rank).answer.load(std::memory_order_relaxed));
    if (found.epoch != epoch_ || !is_quiet(found.what)) most = of_rank;
  }
  return most;
}

// Until all have answered, one has failed, or died. Those who are too late are given up; and killed, if they do not
// come back then.
void world_core::await_answers(outcome& ended) {
  // Only what progress_ does not know yet ends a wait: what it knows would end each at once, and no time would pass.
  const auto done = [&] { return have_answered() || has_somebody_died(); };
  if (sleeper_.wait(memory_.bell(), [&] { return have_answered(); }, done, [&] { return ask_awaited(); }, ended.until))
    return;
  look_at_ranks();  // who has answered while others did not
  if (!ended.aborted) {
    ended.late = progress_.late();
    if (ended.late) progress_.give_up();
    return;
  }
  ended.until = deadline::never();
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (!progress_.is_awaited(rank) || process_of(rank) == nullptr) continue;
    process_of(rank)->kill();
    progress_.doom(rank);
  }
}

namespace {

// What does not go together is found when it is joined: that of one rank's slices there, of different ranks here.
void read_outputs(std::size_t rank, const world_request& request, frame_reader& in) {
  try {
    request.read_outputs(in);
  } catch (const error& failure) {
    if (failure.code() != errc::invalid_argument) throw;
    throw error(errc::invalid_argument,
                text("what rank ", rank, " gave does not go with what the ranks before it gave: ", failure.what()));
  }
}

}  // namespace

void world_core::read_replies(outcome& ended, const world_request& request) {
  try {
    times_.clear();
    const bool is_archived =
        ended.what == world_order::run && functions_.at(request.function).code->has_archived_outputs();
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      told_[rank] = changes_;
      if (ended.what == world_order::tend) read_made(rank, ended);
      if (ended.what != world_order::run) continue;
      const frame_view frame(domain_->blocks(), memory_.line(rank).reply);
      const auto read = [&](frame_reader& in) {
        in.read(&times_.emplace_back(), sizeof(rank_times));
        read_outputs(rank, request, in);
      };
      if (is_archived) {
        input_archive in(frame.bytes(), &lent_);
        read(in);
      } else {
        frame_reader in(frame.bytes(), &lent_);
        read(in);
      }
    }
    if (ended.what == world_order::run) request.finish_outputs();
    lent_.end();  // values may hold handles: of events, of queues
  } catch (...) {
    lent_.forget();
    ended.refused = std::current_exception();
    progress_.give_up();
  }
}

void world_core::commit(registered_function& function, const world_request& request) {
  if (is_resident_) {
    commit_there(function, request.is_for_nothing);
  } else {
    for (const auto& update : function.spec.updates) {
      variables_.at(update.variable).live ^= 1U;
      for (const auto state : update.states) variables_.at(state).live ^= 1U;
    }
  }
  if (!function.spec.updates.empty() && !request.is_for_nothing) ++function.steps;
  all_have_been_told();
}

// Who takes the place of one never knew of what is gone.
void world_core::all_have_been_told() noexcept {
  gone_functions_.clear();
  gone_variables_.clear();
}

}  // namespace muster::detail
