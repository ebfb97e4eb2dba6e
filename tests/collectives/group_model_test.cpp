// SPDX-License-Identifier: BSL-1.0
// Everything that can happen to two or three ranks that make some calls in a row and leave: they sleep and are woken,
// any of them may be killed before any operation on shared memory or abort the group, and the host buries the dead and
// those who have ended. The steps of sleeping and waking are the product's source; how rank_end puts them together, and
// what call_frame does between its two exchanges, is repeated here. Memory is sequentially consistent.
//
// Why this is the same: every operation of rank_end on memory that others see is one step here, in the same order. Left
// out are spinning, which is a look that changes nothing; time, since a wait that is given up is an abort by whoever
// gives it up; messages, the first of which is looked for before a sleep (rank_end::has_first_message); and second
// threads of a rank, for which a bell is rung in any case (rank_end::be_imprecise).
#include <xxhash.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/memory/detail/wait/wait_protocol.hpp>

namespace muster::group_model_test {
namespace {

constexpr std::size_t most_ranks = 3;
constexpr std::size_t most_calls = 4;
constexpr std::uint8_t nobody = 0xff;

// What is left out or done otherwise, to see that it is missed.
enum class mutation : std::uint8_t {
  none,
  notify,                // the wake after publishing
  second_look,           // before sleeping
  deaths,                // as a word to sleep on
  double_buffer,         // one slot of each rank for all calls
  second_exchange,       // of calls that read others' tensors
  burial_order,          // who is dead is said after those who sleep were woken
  alive_after_left,      // whether somebody has left is looked at before whether he is alive
  look_after_departure,  // what came before its sender left
  whom_after_look,       // whom one waits for is said when others may have looked already
  raise,                 // the wake changes no word
  withdraw_compares,     // who wakes clears the bit, whatever has happened since
  break_wakes,
  departure_wakes
};

struct scenario {
  std::size_t ranks = 2;
  std::vector<bool> calls;  // true: of two exchanges
  std::uint8_t deaths = 0;
  bool aborts = false;  // rank 0 may, instead of any call; and stays
  bool leaves = false;  // the same
  bool ends = false;    // who has left ends, and is buried
  mutation without = mutation::none;

  [[nodiscard]] bool is_without(mutation what) const { return without == what; }
};

enum class pc : std::uint8_t {
  enter,  // fills the slot, and publishes the call
  publish_done,
  // notify(), raise_all()
  look_at_bell,
  look_at_whom,
  raise,
  wake,
  withdraw,
  // wait()
  first_look,
  load_deaths,
  say_whom,
  announce,
  second_look,
  look_at_broken,
  look_at_life,
  look_at_presence,
  look_at_departure,
  look_again,
  sleep,
  asleep,
  // after the wait
  read,
  break_off,
  depart,
  finished,
  // of the host
  rest,
  clear,
  count,
  wake_all
};

enum class outcome : std::uint8_t { none, right, ended };

struct process {
  pc now = pc::enter;
  pc then = pc::enter;  // after the wakes
  std::uint8_t call = 1;
  std::uint8_t leaves = 0;  // in the second exchange
  std::uint8_t whom = 0;    // it waits for, or reads
  std::uint8_t target = 0;  // of a wake
  std::uint8_t all = 0;     // everybody is woken, whether he waits or not
  std::uint8_t probe = 0;   // whose health is looked at
  std::uint8_t gone = 0;    // what the first half of that look said
  std::uint8_t noted_deaths = 0;
  std::uint8_t dead = 0;   // 2: buried
  std::uint8_t stays = 0;  // when it has broken the group off
  outcome result = outcome::none;
  std::array<std::uint8_t, 3> padding{};
  std::uint32_t announced = 0;
  std::uint32_t raised = 0;
};

struct slot {
  std::uint8_t sequence = 0;
  std::uint8_t content = 0;
};

enum wrongs : std::uint8_t { wrong_call = 1, lost_tensor = 2, false_loss = 4 };

struct world {
  std::array<process, most_ranks> each{};
  std::array<std::uint32_t, most_ranks> bell{};
  std::array<std::array<slot, 2>, most_ranks> slots{};
  std::array<std::uint8_t, most_ranks> tensor{};  // the call that it may be read and written for
  std::array<std::uint8_t, most_ranks> done{};
  std::array<std::uint8_t, most_ranks> waits_for{};
  std::array<std::uint8_t, most_ranks> left{};
  std::array<std::uint8_t, most_ranks> buried{};
  std::uint8_t deaths = 0;
  std::uint8_t broken = 0;
  pc host = pc::rest;
  std::uint8_t victim = 0;
  std::uint8_t deaths_left = 0;
  std::uint8_t wrong = 0;
  std::uint8_t somebody_died = 0;  // or aborted
  std::array<std::uint8_t, 2> padding{};
};
static_assert(std::has_unique_object_representations_v<world>);

// A bell, in a step of its own.
struct word {
  std::uint32_t* value;

  [[nodiscard]] std::uint32_t load(std::memory_order) const { return *value; }
  std::uint32_t fetch_add(std::uint32_t by, std::memory_order) const { return std::exchange(*value, *value + by); }
  bool compare_exchange_weak(std::uint32_t& expected, std::uint32_t desired, std::memory_order,
                             std::memory_order) const {
    return compare_exchange_strong(expected, desired, std::memory_order_seq_cst);
  }
  bool compare_exchange_strong(std::uint32_t& expected, std::uint32_t desired, std::memory_order) const {
    if (*value != expected) {
      expected = *value;
      return false;
    }
    *value = desired;
    return true;
  }
};

/// One step of one rank.
class stepper {
public:
  stepper(const scenario& what, world& in, std::size_t self) : what_(what), in_(in), self_(self), me_(in.each[self]) {}

  void step() {
    const bool is_late = what_.is_without(mutation::whom_after_look);
    switch (me_.now) {
      case pc::enter: return enter();
      case pc::publish_done: in_.done[self_] = me_.call; return notify(pc::first_look);
      case pc::look_at_bell: return look_at_bell();
      case pc::look_at_whom:
        me_.now = in_.waits_for[me_.target] == self_ ? pc::raise : pc::withdraw;
        if (me_.now == pc::withdraw) next_target();
        return;
      case pc::raise: return raise();
      case pc::wake: return wake();
      case pc::withdraw: return withdraw();
      case pc::first_look:
        if (me_.whom == self_ || is_ready()) return go_on();
        me_.now = pc::load_deaths;
        return;
      case pc::load_deaths:
        me_.noted_deaths = in_.deaths;
        me_.now = is_late ? pc::announce : pc::say_whom;
        return;
      case pc::say_whom:
        in_.waits_for[self_] = me_.whom;
        me_.now = is_late ? pc::look_at_broken : pc::announce;
        return;
      case pc::announce: return announce();
      case pc::second_look:
        if (!what_.is_without(mutation::second_look) && is_ready()) return go_on();
        me_.now = is_late ? pc::say_whom : pc::look_at_broken;
        return;
      case pc::look_at_broken:
        if (in_.broken != 0) return end();
        me_.now = pc::look_at_life;
        me_.probe = self_ == 0 ? 1 : 0;
        return;
      case pc::look_at_life: return look_at_life(pc::look_at_presence);
      case pc::look_at_presence: return look_at_presence();
      case pc::look_at_departure: return look_at_departure();
      case pc::look_again:
        if (is_ready()) return go_on();
        return end();
      case pc::sleep: return sleep();
      case pc::read: return read();
      case pc::break_off:
        in_.broken = 1;
        in_.somebody_died = 1;  // or else nobody breaks it
        me_.result = outcome::ended;
        if (what_.is_without(mutation::break_wakes)) {
          me_.now = pc::finished;
          return;
        }
        return raise_all(me_.stays != 0 ? pc::finished : pc::depart);
      case pc::depart:
        in_.left[self_] = 1;
        if (what_.is_without(mutation::departure_wakes)) {
          me_.now = pc::finished;
          return;
        }
        return raise_all(pc::finished);
      default: return;
    }
  }

private:
  [[nodiscard]] std::size_t slot_of(std::uint8_t call) const {
    return what_.is_without(mutation::double_buffer) ? 0 : call % 2;
  }
  [[nodiscard]] slot& own_slot(std::size_t rank) { return in_.slots[rank][slot_of(me_.call)]; }
  [[nodiscard]] word bell(std::size_t rank) const { return {&in_.bell[rank]}; }
  [[nodiscard]] bool has_two_exchanges() const {
    return what_.calls[me_.call - 1U] && !what_.is_without(mutation::second_exchange);
  }

  // Whoever reads what was there before reads what is there afterwards, too: so it is filled and published in one step.
  void enter() {
    if (what_.calls[me_.call - 1U]) in_.tensor[self_] = me_.call;
    own_slot(self_) = {.sequence = me_.call, .content = me_.call};
    notify(pc::first_look);
  }

  // ---- waking
  void notify(pc then) {
    me_.whom = 0;
    me_.then = then;
    me_.all = 0;
    me_.target = nobody;
    if (what_.is_without(mutation::notify)) {
      me_.now = then;
      return;
    }
    next_target();
  }
  void raise_all(pc then) {
    me_.then = then;
    me_.all = 1;
    me_.target = nobody;
    next_target();
  }
  void next_target() {
    ++me_.target;
    if (me_.target == self_ && me_.all == 0) ++me_.target;
    me_.raised = 0;
    if (me_.target >= what_.ranks) {
      me_.target = 0;
      me_.now = me_.then;
      me_.then = pc::enter;
    } else {
      me_.now = me_.all != 0 ? pc::raise : pc::look_at_bell;
    }
  }
  void look_at_bell() {
    if (wait_protocol::is_awaited(bell(me_.target))) {
      me_.now = pc::look_at_whom;
    } else {
      next_target();
    }
  }
  void raise() {
    auto target = bell(me_.target);
    me_.raised = what_.is_without(mutation::raise) ? in_.bell[me_.target] : wait_protocol::raise(target);
    me_.now = pc::wake;
  }
  void wake() {
    auto& woken = in_.each[me_.target];
    if (woken.now == pc::asleep) woken.now = pc::load_deaths;
    me_.now = pc::withdraw;
  }
  void withdraw() {
    auto target = bell(me_.target);
    if (what_.is_without(mutation::withdraw_compares)) {
      in_.bell[me_.target] &= ~wait_protocol::waiting;
    } else {
      wait_protocol::withdraw(target, me_.raised);
    }
    next_target();
  }

  // ---- waiting
  [[nodiscard]] bool is_ready() {
    if (me_.leaves != 0) return in_.done[me_.whom] >= me_.call;
    return own_slot(me_.whom).sequence == me_.call;
  }
  void announce() {
    auto own = bell(self_);
    me_.announced = wait_protocol::announce(own);
    me_.now = pc::second_look;
  }
  // rank_end::is_dead(): whether it is alive, then whether it has left.
  void look_at_life(pc next) {
    const bool reversed = what_.is_without(mutation::alive_after_left);
    me_.gone = reversed ? (in_.left[me_.probe] == 0 ? 1 : 0) : in_.buried[me_.probe];
    if (me_.gone == 0) return next_probe();
    me_.now = next;
  }
  void look_at_presence() {
    const bool reversed = what_.is_without(mutation::alive_after_left);
    const bool is_dead = reversed ? in_.buried[me_.probe] != 0 : in_.left[me_.probe] == 0;
    me_.gone = 0;
    if (!is_dead) return next_probe();
    if (in_.somebody_died == 0) in_.wrong |= false_loss;
    me_.probe = 0;
    me_.now = pc::break_off;
  }
  void next_probe() {
    ++me_.probe;
    if (me_.probe == self_) ++me_.probe;
    me_.now = pc::look_at_life;
    if (me_.probe < what_.ranks) return;
    me_.probe = 0;
    me_.now = pc::look_at_departure;
  }
  void look_at_departure() {
    me_.now = pc::sleep;
    if (in_.left[me_.whom] == 0) return;
    if (what_.is_without(mutation::look_after_departure)) return end();
    me_.now = pc::look_again;
  }
  void sleep() {
    const bool died = !what_.is_without(mutation::deaths) && in_.deaths != me_.noted_deaths;
    me_.now = in_.bell[self_] == me_.announced && !died ? pc::asleep : pc::load_deaths;
  }
  // By a loss that another one has found, by an abort, or since somebody has left who did not come.
  void end() {
    if (in_.somebody_died == 0) in_.wrong |= false_loss;
    me_.result = outcome::ended;
    me_.now = pc::depart;
  }

  // ---- the call
  void go_on() {
    ++me_.whom;
    me_.now = pc::first_look;
    if (me_.whom < what_.ranks) return;
    me_.whom = 0;
    if (me_.leaves != 0) return end_call();
    me_.now = pc::read;
  }
  void read() {
    const auto& found = own_slot(me_.whom);
    if (found.content != me_.call) in_.wrong |= wrong_call;
    if (what_.calls[me_.call - 1U] && in_.tensor[me_.whom] != me_.call) in_.wrong |= lost_tensor;
    ++me_.whom;
    if (me_.whom < what_.ranks) return;
    me_.whom = 0;
    if (!has_two_exchanges()) return end_call();
    me_.leaves = 1;
    me_.now = pc::publish_done;
  }
  void end_call() {
    in_.tensor[self_] = 0;
    me_.leaves = 0;
    me_.whom = 0;
    if (me_.call == what_.calls.size()) {
      me_.result = outcome::right;
      me_.now = pc::depart;
    } else {
      ++me_.call;
      me_.now = pc::enter;
    }
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
    open_.push_back(first);
    while (!open_.empty()) {
      auto now = open_.back();
      open_.pop_back();
      if (now.wrong != 0) return describe(now.wrong);
      normalize(now);
      if (!seen_.insert(fingerprint(now)).second) continue;
      if (follow(now)) continue;
      if (auto found = judge(now); !found.empty()) return found;
    }
    return {};
  }
  [[nodiscard]] std::size_t states() const { return seen_.size(); }

private:
  struct hash_of {
    std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& of) const { return of.first; }
  };

  static std::string describe(std::uint8_t wrong) {
    if ((wrong & wrong_call) != 0) return "a slot of another call was read";
    if ((wrong & lost_tensor) != 0) return "a tensor was used that its owner had back already";
    return "somebody was told of a loss, and nobody is lost";
  }

  // Words that are only compared with what somebody has noted of them: only whether they are the same counts. They
  // never become the same again, since they are only raised.
  static constexpr std::uint32_t present = 1000 * wait_protocol::step;
  void normalize(world& of) const {
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      const auto bell = of.bell[rank];
      const auto renamed = present | (bell & wait_protocol::waiting);
      auto& owner = of.each[rank];
      owner.announced = owner.announced == bell ? renamed : 0;
      for (std::size_t other = 0; other < what_.ranks; ++other) {
        auto& waker = of.each[other];
        if (waker.target != rank || waker.raised == 0) continue;
        waker.raised = waker.raised == bell ? renamed : 1;
      }
      of.bell[rank] = renamed;
      if (!waits(owner.now)) {
        owner.announced = 0;
        owner.noted_deaths = 0;
      }
    }
  }
  static bool waits(pc now) { return now > pc::load_deaths && now <= pc::asleep; }

  static std::pair<std::uint64_t, std::uint64_t> fingerprint(const world& of) {
    const auto hash = XXH3_128bits(&of, sizeof of);
    return {hash.low64, hash.high64};
  }

  // False when nobody can move.
  bool follow(const world& now) {
    bool any = false;
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      const auto& each = now.each[rank];
      if (each.dead != 0 || each.now == pc::finished) continue;
      if (now.deaths_left > 0) kill(now, rank);
      if (each.now == pc::asleep) continue;
      if (rank == 0 && each.now == pc::enter) stop(now, rank);
      any = true;
      auto next = now;
      stepper(what_, next, rank).step();
      open_.push_back(next);
    }
    return follow_host(now) || any;
  }

  void kill(const world& now, std::size_t rank) {
    auto next = now;
    --next.deaths_left;
    next.somebody_died = 1;
    const auto call = next.each[rank].call;
    next.each[rank] = {.call = call, .dead = 1};
    open_.push_back(next);
  }

  void stop(const world& now, std::size_t rank) {
    auto next = now;
    next.somebody_died = 1;
    next.each[rank].result = outcome::ended;
    if (what_.aborts) {
      next.each[rank].now = pc::break_off;
      next.each[rank].stays = 1;
      open_.push_back(next);
    }
    if (what_.leaves) {
      next.each[rank].now = pc::depart;
      next.each[rank].stays = 0;
      open_.push_back(next);
    }
  }

  // The dead, and those who have ended.
  bool follow_host(const world& now) {
    if (now.host != pc::rest) {
      auto next = now;
      bury(next);
      open_.push_back(next);
      return true;
    }
    bool any = false;
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      const auto& each = now.each[rank];
      const bool has_ended = what_.ends && each.now == pc::finished && each.dead == 0;
      if (each.dead != 1 && !has_ended) continue;
      auto next = now;
      next.victim = static_cast<std::uint8_t>(rank);
      next.each[rank].dead = 2;
      next.host = what_.is_without(mutation::burial_order) ? pc::count : pc::clear;
      open_.push_back(next);
      any = true;
    }
    return any;
  }

  void bury(world& in) const {
    const bool reversed = what_.is_without(mutation::burial_order);
    switch (in.host) {
      case pc::clear:
        in.buried[in.victim] = 1;
        in.host = reversed ? pc::rest : pc::count;
        break;
      case pc::count:
        ++in.deaths;
        in.host = pc::wake_all;
        break;
      default:
        for (auto& each : in.each) {
          if (each.now == pc::asleep && !what_.is_without(mutation::deaths)) each.now = pc::load_deaths;
        }
        in.host = reversed ? pc::clear : pc::rest;
    }
  }

  // Nobody moves, and the dead are buried.
  std::string judge(const world& now) const {
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      const auto& each = now.each[rank];
      if (each.dead == 0 && each.now != pc::finished) return "somebody sleeps for ever";
      if (now.somebody_died == 0 && each.result != outcome::right) return "somebody has not got through";
    }
    return {};
  }

  const scenario what_;
  std::vector<world> open_;
  std::unordered_set<std::pair<std::uint64_t, std::uint64_t>, hash_of> seen_;
};

std::string explore(const scenario& what) {
  exploration all(what);
  auto found = all.run();
  std::string calls;
  for (const bool two : what.calls) calls += two ? '2' : '1';
  std::printf("%zu ranks, calls of %s exchanges, %u deaths%s%s%s: %zu states: %s\n", what.ranks, calls.c_str(),
              what.deaths, what.aborts ? ", aborted at any time" : "", what.leaves ? ", left at any time" : "",
              what.ends ? ", who leaves ends" : "", all.states(), found.empty() ? "right" : found.c_str());
  std::fflush(stdout);
  return found;
}

TEST(GroupModel, TwoRanksGetThroughWhateverHappensToTheOther) {
  EXPECT_EQ(explore({.calls = {false, false, false, false}, .ends = true}), "");
  EXPECT_EQ(explore({.calls = {true, true, true}, .ends = true}), "");
  EXPECT_EQ(explore({.calls = {false, false, false, false}, .deaths = 1, .ends = true}), "");
  EXPECT_EQ(explore({.calls = {true, false, true}, .deaths = 1, .ends = true}), "");
  EXPECT_EQ(explore({.calls = {false, true, false}, .deaths = 2, .ends = true}), "");
  EXPECT_EQ(explore({.calls = {false, true, false}, .deaths = 1, .aborts = true, .leaves = true, .ends = true}), "");
}

TEST(GroupModel, ThreeRanksGetThroughWhateverHappensToTheOthers) {
  EXPECT_EQ(explore({.ranks = 3, .calls = {false, false}}), "");
  EXPECT_EQ(explore({.ranks = 3, .calls = {true}}), "");
  EXPECT_EQ(explore({.ranks = 3, .calls = {false}, .deaths = 1, .ends = true}), "");
  EXPECT_EQ(explore({.ranks = 3, .calls = {false}, .aborts = true, .leaves = true}), "");
  if (std::getenv("MUSTER_SOAK_SECONDS") == nullptr) return;  // a minute and 2 GB more
  EXPECT_EQ(explore({.ranks = 3, .calls = {false, false}, .deaths = 1}), "");
  EXPECT_EQ(explore({.ranks = 3, .calls = {true}, .deaths = 1}), "");
}

TEST(GroupModelMutation, WhateverIsLeftOutIsMissed) {
  const std::vector<bool> short_calls = {false, false, false};
  EXPECT_NE(explore({.calls = short_calls, .without = mutation::notify}), "");
  EXPECT_NE(explore({.calls = short_calls, .without = mutation::second_look}), "");
  EXPECT_NE(explore({.calls = short_calls, .deaths = 1, .without = mutation::deaths}), "");
  EXPECT_NE(explore({.calls = short_calls, .without = mutation::double_buffer}), "");
  EXPECT_NE(explore({.calls = {true, true}, .without = mutation::second_exchange}), "");
  EXPECT_NE(explore({.calls = short_calls, .deaths = 1, .without = mutation::burial_order}), "");
  EXPECT_NE(explore({.ranks = 3, .calls = {false}, .ends = true, .without = mutation::alive_after_left}), "");
  EXPECT_NE(explore({.calls = {false}, .without = mutation::look_after_departure}), "");
  EXPECT_NE(explore({.calls = short_calls, .without = mutation::whom_after_look}), "");
  EXPECT_NE(explore({.calls = short_calls, .without = mutation::raise}), "");
  EXPECT_NE(explore({.ranks = 3, .calls = {false, false}, .without = mutation::withdraw_compares}), "");
  EXPECT_NE(explore({.calls = short_calls, .aborts = true, .without = mutation::break_wakes}), "");
  EXPECT_NE(explore({.calls = short_calls, .leaves = true, .without = mutation::departure_wakes}), "");
}

}  // namespace
}  // namespace muster::group_model_test
