// SPDX-License-Identifier: BSL-1.0
// Everything that can happen between those who wait for an event, those who set and clear it, and a supervisor who
// buries one of them: any may die before any of its operations. The steps on the word are the product's source; how
// set() and wait() put them together is repeated here. Memory is sequentially consistent; the orders of the one word
// are those of a single location, which is coherent anyway.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

#include <muster/queue/event_word.hpp>

namespace muster::event_model_test {
namespace {

constexpr std::size_t most_actors = 4;
constexpr std::uint64_t nothing = ~std::uint64_t{0};

enum class role : std::uint8_t { none, waiter, setter, pulser, undertaker };
enum pc : std::uint8_t { begin, note, look_at_deaths, prepare, fall_asleep, asleep, ring, undo, over, dead, buried };

struct actor {
  role what = role::none;
  std::uint8_t at = begin;
  std::uint8_t may_die = 0;
  std::uint8_t padding[5] = {};
  std::uint64_t since = 0;           // of a waiter: sets at the beginning
  std::uint64_t deaths = 0;          // … and deaths before it looked
  std::uint64_t sleeps_on = 0;       // … and the word's value
  std::uint64_t expected = nothing;  // what a compare-and-swap in progress has read
};

struct world {
  std::uint64_t word = 0;
  std::uint64_t deaths = 0;
  std::array<actor, most_actors> actors{};
};
static_assert(std::has_unique_object_representations_v<world>);

// Runs a template of the product up to its next operation: a load, or a compare-and-swap, is one step. What the load
// saw is kept in the actor, so that the templates can be gone on with from there.
struct word_in {
  world* in;
  actor* who;
  bool* pending;  // true when the operation could not yet be made

  std::uint64_t load(std::memory_order) const {
    if (who->expected == nothing) {
      who->expected = in->word;
      *pending = true;
    }
    return who->expected;
  }
  bool compare_exchange_weak(std::uint64_t& expected, std::uint64_t desired, std::memory_order, std::memory_order) {
    if (*pending) return true;  // out of the template; what it returns is not used
    if (in->word == expected) {
      in->word = desired;
    } else {
      who->expected = in->word;
      *pending = true;
    }
    return true;
  }
};

// The parts of the handshake, to be left out in turn.
struct parts {
  bool wakes_if_awaited = true;
  bool sleeps_on_deaths = true;
  bool counts_sets = true;
};

struct checker : parts {
  explicit checker(const parts& with) : parts(with) {}

  std::unordered_set<std::string> seen;
  std::size_t ends = 0;
  std::string failure;

  static void wake_all(world& in) {
    for (auto& each : in.actors) {
      if (each.what == role::waiter && each.at == asleep) each.at = note + 1;  // looks again
    }
  }

  bool is_over(const actor& who, std::uint64_t found) const {
    return event_protocol::is_set(found) || (counts_sets && event_protocol::sets(found) != who.since);
  }

  // One step of an actor; false when it has none.
  bool step(world& in, actor& who) {
    bool pending = false;
    word_in word{&in, &who, &pending};
    switch (who.at) {
      case begin:
        if (who.what == role::undertaker) return bury(in);
        if (who.what == role::waiter) {
          who.at = note;
          return true;
        }
        return set(who, word, pending);
      case note:
        who.since = event_protocol::sets(in.word);
        who.at = look_at_deaths;
        return true;
      case look_at_deaths:
        who.deaths = in.deaths;
        who.at = prepare;
        return true;
      case prepare: {
        const auto found =
            event_protocol::prepare_sleep(word, [&](std::uint64_t value) { return is_over(who, value); });
        if (pending && !is_over(who, who.expected) && (who.expected & event_protocol::awaited_bit) == 0) return true;
        const auto last = who.expected;
        who.expected = nothing;
        if (is_over(who, last)) {
          who.at = over;
          return true;
        }
        who.sleeps_on = pending ? last : *found;
        who.at = fall_asleep;
        return true;
      }
      case fall_asleep: {  // the kernel looks and queues in one step
        const bool changed = in.word != who.sleeps_on || (sleeps_on_deaths && in.deaths != who.deaths);
        who.at = changed ? look_at_deaths : asleep;
        return true;
      }
      case ring:
        wake_all(in);
        who.at = who.what == role::pulser ? undo : over;
        return true;
      case undo:
        event_protocol::clear(word);
        if (pending && event_protocol::is_set(who.expected)) return true;
        who.expected = nothing;
        who.at = over;
        return true;
      default: return false;
    }
  }

  bool set(actor& who, word_in& word, const bool& pending) const {
    const bool awaited = event_protocol::set(word);
    if (pending) return true;
    who.expected = nothing;
    who.at = awaited && wakes_if_awaited ? static_cast<std::uint8_t>(ring)
                                         : static_cast<std::uint8_t>(who.what == role::pulser ? undo : over);
    return true;
  }

  bool bury(world& in) const {
    for (auto& each : in.actors) {
      if (each.at != dead) continue;
      each = {.what = each.what, .at = buried};
      ++in.deaths;
      if (sleeps_on_deaths) wake_all(in);
      return true;
    }
    return false;
  }

  void explore(const world& from) {
    std::vector<world> left{from};
    while (!left.empty() && failure.empty()) {
      const auto now = left.back();
      left.pop_back();
      if (!seen.emplace(reinterpret_cast<const char*>(&now), sizeof now).second) continue;
      bool moved = false;
      for (std::size_t each = 0; each < most_actors; ++each) {
        auto next = now;
        if (step(next, next.actors[each])) {
          left.push_back(next);
          moved = true;
        }
        auto killed = now;
        auto& victim = killed.actors[each];
        if (victim.may_die != 0 && victim.at < over) {
          victim = {.what = victim.what, .at = dead};
          left.push_back(killed);
        }
      }
      if (!moved) check_end(now);
    }
  }

  // Nobody can go on. Whoever sleeps must have a reason: no set took place since he began to wait.
  void check_end(const world& end) {
    ++ends;
    for (const auto& each : end.actors) {
      if (each.what != role::waiter || each.at != asleep) continue;
      if (event_protocol::is_set(end.word) || event_protocol::sets(end.word) != each.since) {
        failure = "a waiter sleeps, although the event was set";
      }
    }
  }
};

world of(const std::vector<std::pair<role, bool>>& actors) {
  world first;
  for (std::size_t each = 0; each < actors.size(); ++each) {
    first.actors[each].what = actors[each].first;
    first.actors[each].may_die = actors[each].second ? 1 : 0;
  }
  return first;
}

const std::vector<std::vector<std::pair<role, bool>>> casts = {
    {{role::waiter, false}, {role::setter, false}},
    {{role::waiter, false}, {role::pulser, false}},
    {{role::waiter, false}, {role::waiter, false}, {role::pulser, false}, {role::pulser, false}},
    {{role::waiter, false}, {role::setter, true}, {role::undertaker, false}},
    {{role::waiter, false}, {role::pulser, true}, {role::pulser, false}, {role::undertaker, false}},
    {{role::waiter, false}, {role::pulser, true}, {role::setter, true}, {role::undertaker, false}},
    {{role::waiter, true}, {role::waiter, false}, {role::pulser, true}, {role::undertaker, false}},
};

TEST(EventModel, NobodySleepsThroughASetWhateverDies) {
  std::size_t states = 0;
  for (const auto& cast : casts) {
    checker all{parts()};
    all.explore(of(cast));
    EXPECT_EQ(all.failure, "");
    EXPECT_GT(all.ends, 0U);
    states += all.seen.size();
  }
  std::printf("%zu states\n", states);
}

std::size_t failures(const parts& with) {
  std::size_t found = 0;
  for (const auto& cast : casts) {
    checker one(with);
    one.explore(of(cast));
    if (!one.failure.empty()) ++found;
  }
  return found;
}

TEST(EventModel, EachPartIsNeeded) {
  EXPECT_GT(failures({.wakes_if_awaited = false}), 0U);
  EXPECT_GT(failures({.sleeps_on_deaths = false}), 0U);
  EXPECT_GT(failures({.counts_sets = false}), 0U);
}

}  // namespace
}  // namespace muster::event_model_test
