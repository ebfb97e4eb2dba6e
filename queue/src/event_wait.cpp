// SPDX-License-Identifier: BSL-1.0
#include "event_wait.hpp"

#include <algorithm>
#include <optional>

#include <muster/memory/wait/spin_policy.hpp>

#include "event_memory.hpp"

namespace muster::detail {

sleeper event_wait::make_sleeper(const domain& where, place_word& own) {
  return {where, {.spin = spin_policy::of_process().budget}, own};
}

prospect event_wait::ask(const event& what) { return prospect_of(what.shared().setter); }

prospect event_wait::ask(const combined_event& what) {
  auto found = prospect::usual;
  for (const auto& each : what.events_) found = std::max(found, ask(each));
  for (const auto& each : what.parts_) found = std::max(found, ask(each));
  return found;
}

void event_wait::note(const event& what) {
  sets_[noted_++] = event_protocol::sets(what.word().load(std::memory_order_relaxed));
}

// Parts of an all_of count only while they are set.
void event_wait::note(const combined_event& what) {
  if (what.how_ == combined_event::manner::all) return;
  for (const auto& each : what.events_) note(each);
  for (const auto& each : what.parts_) note(each);
}

bool event_wait::look(const event& what, counting how) {
  const std::optional<std::uint64_t> since =
      how == counting::sets ? std::optional(sets_[next_++]) : std::optional<std::uint64_t>();
  const auto is_over = [&](std::uint64_t found) {
    return event_protocol::is_set(found) || (since && event_protocol::sets(found) != *since);
  };
  auto& word = what.word();
  if (words_ == nullptr) return is_over(word.load(std::memory_order_acquire));
  const auto sleep_on = event_protocol::prepare_sleep(word, is_over);
  if (!sleep_on) return true;
  words_->add(word, static_cast<std::uint32_t>(*sleep_on));
  return false;
}

bool event_wait::look(const combined_event& what, counting how) {
  return what.how_ == combined_event::manner::any ? look_at_any(what, how) : look_at_all(what);
}

bool event_wait::look_at_any(const combined_event& what, counting how) {
  const auto before = words_ != nullptr ? words_->size() : 0;
  const auto is_over = [&](const auto& each) { return look(each, how); };
  const bool over = std::any_of(what.events_.begin(), what.events_.end(), is_over) ||
                    std::any_of(what.parts_.begin(), what.parts_.end(), is_over);
  if (over && words_ != nullptr) words_->cut(before);
  return over;
}

bool event_wait::look_at_all(const combined_event& what) {
  const auto is_over = [&](const auto& each) { return look(each, counting::level); };
  return std::all_of(what.events_.begin(), what.events_.end(), is_over) &&
         std::all_of(what.parts_.begin(), what.parts_.end(), is_over);
}

}  // namespace muster::detail
