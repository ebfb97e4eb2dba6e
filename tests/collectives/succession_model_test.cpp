// SPDX-License-Identifier: BSL-1.0
// Everything that can happen while up to four ranks make the group of the survivors: any of them may be killed before
// any operation on shared memory, and the host drops what the dead held before it says that they are dead. The words
// are the product's source; the steps of group_shrink.cpp are repeated here, each operation on shared memory a step.
// Memory is sequentially consistent. Sleeping is left out: group_model_test.cpp has it, and everybody here looks again
// after every change. That one has left is like that one is dead and buried.
#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "succession.hpp"

namespace muster::succession_model_test {
namespace {

using detail::succession_word;
using detail::survival_word;
using phase = succession_word::phase;
using state = survival_word::state;

constexpr std::size_t most_ranks = 4;
constexpr std::size_t most_blocks = 32;

enum class mutation : std::uint8_t {
  none,
  wait_for_holds,  // the leader settles what he has offered at once
  compare,         // whoever thinks that he leads claims, whatever others have claimed

  round  // who holds memory of an earlier round is a member
};

struct scenario {
  std::size_t ranks = 3;
  std::uint8_t deaths = 0;
  std::uint8_t impatient = 0;  // so many times a leader does not wait for all whom he has chosen
  bool in_time = true;         // else nobody waits for those who have not come yet
  mutation without = mutation::none;
};

enum class pc : std::uint8_t {
  announce,
  wait,
  load,
  check_leader,
  check_lower,
  claim,
  collect,
  name,
  choose,
  offer,
  await_all,
  settle,
  load_own,
  load_name,

  hold,
  confirm,
  finish,
  finished
};

struct process {
  std::uint64_t seen = 0;
  std::uint32_t mine = 0;
  pc now = pc::announce;
  std::uint8_t index = 0;
  std::uint8_t members = 0;  // a bit for each
  std::uint8_t round = 0;
  std::uint8_t name = 0;
  std::uint8_t block = 0;   // that it holds
  std::uint8_t member = 0;  // of the group, in the end
  std::uint8_t dead = 0;    // 2: what it held is dropped; 3: buried
  std::array<std::uint8_t, 4> padding{};
};

struct world {
  std::uint64_t succession = 0;
  std::array<process, most_ranks> each{};
  std::array<std::uint32_t, most_ranks> survives{};
  std::array<std::uint8_t, most_blocks> holders{};  // a bit for each
  std::uint8_t successor = 0;
  std::uint8_t deaths_left = 0;
  std::uint8_t impatience = 0;
  std::array<std::uint8_t, 5> padding{};
};
static_assert(std::has_unique_object_representations_v<world>);

unsigned bit(std::size_t of) { return 1U << of; }

class stepper {
public:
  stepper(const scenario& what, world& in, std::size_t self) : what_(what), in_(in), self_(self), me_(in.each[self]) {}

  void step() {
    switch (me_.now) {
      case pc::announce: in_.survives[self_] = survival_word{.now = state::waits}.pack(); return go(pc::wait);
      case pc::wait:
        if (!what_.in_time || now().now != phase::none || all_are_there()) go(pc::load);
        return;
      case pc::load:
        me_.seen = in_.succession;
        if (seen().now == phase::settled) return go(pc::finish);
        return go(seen().now == phase::none ? pc::check_lower : pc::check_leader);
      case pc::check_leader: return is_gone(seen().leader) ? go(pc::check_lower) : go_on_following();
      case pc::check_lower: return check_lower();
      case pc::claim: return claim();
      case pc::collect: return collect();
      case pc::name:
        in_.successor = me_.block;
        me_.index = 0;
        return go(pc::choose);
      case pc::choose: return choose();
      case pc::offer:
        in_.succession = succession_word{.now = phase::offered, .round = me_.round, .leader = self_}.pack();
        return go(what_.without == mutation::wait_for_holds ? pc::settle : pc::await_all);
      case pc::await_all:
        if (missing() == 0) go(pc::settle);
        return;
      case pc::settle:
        in_.succession = succession_word{.now = phase::settled, .round = me_.round, .leader = self_}.pack();
        return go(pc::load);
      default: return follow();
    }
  }

  // The leader goes on without those who do not come.
  [[nodiscard]] bool can_lose_patience() const {
    return me_.now == pc::await_all && in_.impatience > 0 && missing() != 0;
  }
  void lose_patience() {
    --in_.impatience;
    me_.members = static_cast<std::uint8_t>(me_.members & ~missing());
    ++me_.round;
    make_block();
  }

private:
  void go(pc where) { me_.now = where; }
  [[nodiscard]] succession_word now() const { return succession_word::unpack(in_.succession); }
  [[nodiscard]] succession_word seen() const { return succession_word::unpack(me_.seen); }
  [[nodiscard]] survival_word survival(std::size_t rank) const { return survival_word::unpack(in_.survives[rank]); }
  [[nodiscard]] bool is_gone(std::size_t rank) const { return in_.each[rank].dead == 3; }
  [[nodiscard]] bool is_there(std::size_t rank) const { return survival(rank).now != state::none && !is_gone(rank); }
  [[nodiscard]] bool all_are_there() const {
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      if (survival(rank).now == state::none && !is_gone(rank)) return false;
    }
    return true;
  }

  // ---- leading
  void check_lower() {
    if (me_.index == self_) {
      me_.index = 0;
      return go(pc::claim);
    }
    if (!is_there(me_.index)) {
      ++me_.index;
      return;
    }
    me_.index = 0;
    go_on_following();
  }
  void claim() {
    if (in_.succession != me_.seen && what_.without != mutation::compare) return go_on_following();
    me_.round = static_cast<std::uint8_t>(seen().round + 1);
    in_.succession = succession_word{.now = phase::claimed, .round = me_.round, .leader = self_}.pack();
    me_.members = 0;
    go(pc::collect);
  }
  void collect() {
    if (is_there(me_.index)) me_.members = static_cast<std::uint8_t>(me_.members | bit(me_.index));
    if (++me_.index == what_.ranks) make_block();
  }
  void make_block() {
    me_.index = 0;
    take(static_cast<std::uint8_t>(me_.round * most_ranks + self_));
    go(pc::name);
  }
  void choose() {
    if ((me_.members & bit(me_.index)) != 0) {
      std::size_t place = 0;
      for (std::size_t rank = 0; rank < me_.index; ++rank) place += me_.members >> rank & 1U;
      const auto chosen = me_.index == self_ ? state::holds : state::chosen;
      in_.survives[me_.index] = survival_word{.now = chosen, .round = me_.round, .place = place}.pack();
    }
    if (++me_.index < what_.ranks) return;
    me_.index = 0;
    go(pc::offer);
  }
  // Who holds it goes on holding it, and who is gone stays gone: so one look at all is as good as one after the other.
  [[nodiscard]] unsigned missing() const {
    unsigned found = 0;
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      const auto of = survival(rank);
      const bool has_it = of.now == state::holds && of.is_of(me_.round);
      if ((me_.members & bit(rank)) != 0 && !has_it && !is_gone(rank)) found |= bit(rank);
    }
    return found;
  }

  // ---- following
  void go_on_following() { go(seen().now == phase::offered ? pc::load_own : pc::load); }
  void follow() {
    switch (me_.now) {
      case pc::load_own: {
        me_.mine = in_.survives[self_];
        const auto mine = survival_word::unpack(me_.mine);
        return go(mine.now == state::chosen && mine.is_of(seen().round) ? pc::load_name : pc::load);
      }
      case pc::load_name: me_.name = in_.successor; return go(pc::hold);
      case pc::hold:
        if (in_.holders[me_.name] == 0) return go(pc::load);
        take(me_.name);
        return go(pc::confirm);
      case pc::confirm: {
        auto holds = survival_word::unpack(me_.mine);
        holds.now = state::holds;
        if (in_.survives[self_] == me_.mine) in_.survives[self_] = holds.pack();
        return go(pc::load);
      }
      case pc::finish: {
        const auto mine = survival(self_);
        const bool is_it = mine.is_of(seen().round) || what_.without == mutation::round;
        me_.member = mine.now == state::holds && is_it ? 1 : 0;
        return go(pc::finished);
      }
      default: return;
    }
  }
  void take(std::uint8_t block) {
    if (me_.block != 0) in_.holders[me_.block] = static_cast<std::uint8_t>(in_.holders[me_.block] & ~bit(self_));
    me_.block = block;
    in_.holders[block] = static_cast<std::uint8_t>(in_.holders[block] | bit(self_));
  }

  const scenario& what_;
  world& in_;
  const std::size_t self_;
  process& me_;
};

class exploration {
public:
  explicit exploration(const scenario& what) : what_(what) {}

  std::string run() {
    world first;
    first.deaths_left = what_.deaths;
    first.impatience = what_.impatient;
    add(first, nobody);
    while (!open_.empty()) {
      const auto [now, number] = open_.back();
      open_.pop_back();
      if (is_over(now)) {
        ends_.push_back(number);
        if (auto found = judge(now); !found.empty()) return found;
      } else {
        follow(now, number);
      }
    }
    return all_reach_an_end() ? std::string() : "somebody waits for ever";
  }
  [[nodiscard]] std::size_t states() const { return seen_.size(); }

private:
  static constexpr std::uint32_t nobody = UINT32_MAX;
  struct hash_of {
    std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& of) const { return of.first; }
  };

  void add(world& next, std::uint32_t from) {
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) forget(next.each[rank]);
    const auto hash = XXH3_128bits(&next, sizeof next);
    const auto number = static_cast<std::uint32_t>(seen_.size());
    const auto [found, is_new] = seen_.try_emplace({hash.low64, hash.high64}, number);
    if (from != nobody && from != found->second) edges_.emplace_back(found->second, from);
    if (is_new) open_.emplace_back(next, number);
  }
  // What is noted is noted anew when it begins to look again.
  static void forget(process& of) {
    if (of.now != pc::load) return;
    of.seen = 0;
    of.mine = 0;
    of.name = 0;
    of.index = 0;
  }

  bool is_over(const world& now) const {
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      if (now.each[rank].dead != 3 && now.each[rank].now != pc::finished) return false;
    }
    return true;
  }

  void follow(const world& now, std::uint32_t number) {
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      const auto& each = now.each[rank];
      if (each.dead != 0) {
        if (each.dead < 3) bury(now, number, rank);
        continue;
      }
      if (now.deaths_left > 0) kill(now, number, rank);
      if (each.now == pc::finished) continue;
      auto next = now;
      stepper(what_, next, rank).step();
      add(next, number);
      auto other = now;
      stepper leader(what_, other, rank);
      if (!leader.can_lose_patience()) continue;
      leader.lose_patience();
      add(other, number);
    }
  }
  void kill(const world& now, std::uint32_t number, std::size_t rank) {
    auto next = now;
    --next.deaths_left;
    next.each[rank] = {.dead = 1};
    add(next, number);
  }
  void bury(const world& now, std::uint32_t number, std::size_t rank) {
    auto next = now;
    ++next.each[rank].dead;
    for (auto& each : next.holders) each = static_cast<std::uint8_t>(each & ~bit(rank));
    add(next, number);
  }

  // All who are members are members of the same, and have its memory.
  std::string judge(const world& now) const {
    std::uint8_t block = 0;
    std::uint32_t places = 0;
    std::size_t alive = 0;
    std::size_t members = 0;
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      const auto& each = now.each[rank];
      if (each.dead != 0) continue;
      ++alive;
      if (each.member == 0) continue;
      ++members;
      const auto mine = survival_word::unpack(now.survives[rank]);
      if ((places >> mine.place & 1U) != 0) return "two have the same place";
      places |= bit(mine.place);
      if (block == 0) block = each.block;
      if (each.block != block || each.block != now.successor) return "two have different groups";
      if ((now.holders[block] & bit(rank)) == 0) return "one has no memory";
    }
    if (what_.impatient == 0 && what_.in_time && members != alive) return "one was left out";
    return {};
  }

  bool all_reach_an_end() {
    std::vector<std::vector<std::uint32_t>> before(seen_.size());
    for (const auto& [to, from] : edges_) before[to].push_back(from);
    std::vector<bool> reaches(seen_.size());
    auto open = ends_;
    std::size_t count = 0;
    while (!open.empty()) {
      const auto now = open.back();
      open.pop_back();
      if (reaches[now]) continue;
      reaches[now] = true;
      ++count;
      open.insert(open.end(), before[now].begin(), before[now].end());
    }
    return count == seen_.size();
  }

  const scenario what_;
  std::vector<std::pair<world, std::uint32_t>> open_;
  std::unordered_map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t, hash_of> seen_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  std::vector<std::uint32_t> ends_;
};

std::string explore(const scenario& what) {
  exploration all(what);
  auto found = all.run();
  std::printf("%zu ranks, %u deaths, %u times impatient%s: %zu states: %s\n", what.ranks, what.deaths, what.impatient,
              what.in_time ? "" : ", not all in time", all.states(), found.empty() ? "right" : found.c_str());
  std::fflush(stdout);
  return found;
}

TEST(SuccessionModel, AllWhoAreLeftAreInTheSameGroupAndHaveItsMemory) {
  EXPECT_EQ(explore({.ranks = 2, .deaths = 1}), "");
  EXPECT_EQ(explore({.ranks = 3, .deaths = 1}), "");
  EXPECT_EQ(explore({.ranks = 3, .deaths = 2}), "");
}

TEST(SuccessionModel, WhoComesTooLateIsLeftOutAndTheOthersAgree) {
  EXPECT_EQ(explore({.ranks = 2, .deaths = 1, .impatient = 1, .in_time = false}), "");
  EXPECT_EQ(explore({.ranks = 3, .deaths = 0, .impatient = 2, .in_time = false}), "");
  EXPECT_EQ(explore({.ranks = 3, .deaths = 1, .impatient = 1, .in_time = false}), "");
}

TEST(SuccessionModelMutation, WhateverIsLeftOutIsMissed) {
  EXPECT_NE(explore({.ranks = 2, .deaths = 1, .without = mutation::wait_for_holds}), "");
  EXPECT_NE(explore({.ranks = 3, .deaths = 1, .without = mutation::compare}), "");

  EXPECT_NE(explore({.ranks = 3, .deaths = 0, .impatient = 2, .in_time = false, .without = mutation::round}), "");
}

}  // namespace
}  // namespace muster::succession_model_test
