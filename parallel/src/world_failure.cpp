// SPDX-License-Identifier: BSL-1.0
// How a call has failed: which rank came first, and what the caller is told.
#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/parallel/detail/failure_order.hpp>
#include <muster/parallel/detail/world_core.hpp>
#include <muster/parallel/rank_error.hpp>

#include "crossing_errors.hpp"
#include "failure_note.hpp"
#include "world_outcome.hpp"

namespace muster::detail {

namespace {

// Between a death and the end of its task, or a kill and the death, are some steps.
constexpr auto end_patience = std::chrono::seconds(5);

using kind = call_failure::kind;

std::vector<rank_failure> behind_the_first(const std::vector<call_failure>& all) {
  std::vector<rank_failure> others;
  for (auto each = std::next(all.begin()); each != all.end(); ++each) {
    others.push_back({.rank = each->rank, .info = each->why});
  }
  return others;
}

// Without the lines that a dead rank had written: what it came behind is the cause.
std::string short_text(const error_info& why) {
  return why.type_name().empty() ? why.message() : text(why.type_name(), ": ", why.message());
}

// In lines of their own, behind those that the first may have.
std::string text_of(const std::vector<rank_failure>& others) {
  constexpr std::size_t most_named = 3;
  if (others.empty()) return {};
  std::string whole = "\nafter that failed";
  for (std::size_t index = 0; index < std::min(others.size(), most_named); ++index) {
    whole += text("\n  rank ", others[index].rank, ": ", short_text(others[index].info));
  }
  if (others.size() > most_named) whole += text("\n  and ", others.size() - most_named, " more (rank_error::others)");
  return whole;
}

}  // namespace

call_failure world_core::read_failure(std::size_t rank) {
  call_failure found{.rank = rank,
                     .how = kind::threw,
                     .number = memory_.line(rank).failed_as.load(std::memory_order_relaxed),
                     .ended = ~rank_set()};
  try {
    const frame_view frame(domain_->blocks(), memory_.line(rank).reply);
    if (frame.bytes().empty()) {
      found.why = {errc::out_of_memory, "it had no memory to say why"};
      return found;
    }
    input_archive in(frame.bytes());
    failure_note note;
    in(note);
    found.caused_by = failure_note::set_of(note.caused_by);
    found.ended = failure_note::set_of(note.ended);
    found.why = std::move(note.why);
  } catch (const std::exception& failure) {
    found.why = {errc::corrupted, failure.what()};
  }
  return found;
}

// Waits until it is known how its process ended. A rank that was killed because it did not come back is late, where
// that was what came first, and otherwise the last.
call_failure world_core::read_death(std::size_t rank, const outcome& ended) {
  auto& process = *process_of(rank);
  const auto known = [&] { return process.has_ended(); };
  sleeper_.wait(memory_.bell(), known, known, sleeper::of_unknown, deadline::after(end_patience));
  if (!progress_.is_doomed(rank)) {
    const auto number = process.ended_as();
    return {.rank = rank,
            .how = kind::died,
            .number = number != 0 ? number : call_failure::last,
            .why = process.ended().value_or(error_info(errc::worker_died, "its process is gone"))};
  }
  const error_info why(errc::timed_out, "it did not answer in time, and was killed");
  if (ended.late_as == 0) return {.rank = rank, .how = kind::killed, .ended = ~rank_set(), .why = why};
  return {.rank = rank, .how = kind::killed, .number = ended.late_as, .ended = ended.ended, .why = why};
}

std::vector<call_failure> world_core::failures_of(const outcome& ended) {
  std::vector<call_failure> all;
  bool is_lateness_told = ended.late_as == 0;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (progress_.is_dead(rank)) {
      all.push_back(read_death(rank, ended));
      is_lateness_told |= all.back().how == kind::killed;
    } else if (progress_.has_failed(rank)) {
      all.push_back(read_failure(rank));
    }
  }
  // There is none if the others were done just when the caller's own share gave up waiting for them.
  if (!is_lateness_told || all.empty()) {
    all.push_back({.rank = ended.late.value_or(own_rank_.value_or(0)),
                   .how = kind::late,
                   .number = ended.late_as,
                   .ended = ended.ended,
                   .why = {errc::timed_out, "it did not answer in time"}});
  }
  sort_by_cause(all);
  return all;
}

// Outputs are refused when all ranks are done; a rank that died then may be why they do not go together.
void world_core::fail(const outcome& ended, const registered_function& function) {
  const auto all = failures_of(ended);
  for (const auto& each : all) {
    if (each.how == kind::threw && each.why.code() == errc::device_lost) end_rank(each.rank);
  }
  const bool is_from_rank = all.front().how == kind::threw || all.front().how == kind::died;
  if (ended.refused && !is_from_rank) std::rethrow_exception(ended.refused);
  throw_first(all, function);
}

void world_core::throw_first(const std::vector<call_failure>& all, const registered_function& function) {
  const auto& first = all.front();
  const auto others = behind_the_first(all);
  const auto make = [&](const std::string& what) {
    return rank_error(first.why, text("rank ", first.rank, " of world '", options_.name, "' ", what, text_of(others)),
                      first.rank, function.spec.name, others);
  };
  const auto in_function = text(" in function '", function.spec.name, "': ");
  switch (first.how) {
    case kind::threw: break;
    case kind::late:
      throw make(text("was too late", in_function, "the call took longer than it may, and nothing of it has happened"));
    case kind::died:
    case kind::killed:
      throw make(text("(process ", process_of(first.rank)->pid(), ") was lost", in_function, first.why.describe()));
  }
  try {
    if (own_rank_ == first.rank && own_->failure()) std::rethrow_exception(own_->failure());
    first.why.raise();
  } catch (...) {
    std::throw_with_nested(make(text("failed", in_function, first.why.describe())));
  }
}

// Its process can do nothing more on its device; the next call begins with another one.
void world_core::end_rank(std::size_t rank) {
  auto* const process = process_of(rank);
  if (process == nullptr) return;
  process->kill();
  const auto gone = [&] { return process->is_gone(*domain_); };
  sleeper_.wait(memory_.bell(), gone, gone, sleeper::of_unknown, deadline::after(end_patience));
}

}  // namespace muster::detail
