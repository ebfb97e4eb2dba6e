// SPDX-License-Identifier: BSL-1.0
// Everything that can happen to processes that make names at once, of which any may be killed before any operation on
// shared memory. What name_table::insert does is repeated here, a step for each such operation, in the same order.
//
// Left out: which of several free lines is taken, where the model takes each; and time, since a process that gives up
// waiting is as one that finds no line any more. Memory is sequentially consistent, as the table's operations are.
#include <xxhash.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

#include "state_space.hpp"

namespace muster::name_model_test {
namespace {

constexpr std::size_t processes = 3;
constexpr std::size_t lines = 3;
constexpr std::uint8_t generations = 4;  // of a line; then it is not used any more: they must not begin anew
constexpr std::uint8_t nobody = 0xff;

// What is done otherwise, to see that it is missed.
enum class mutation : std::uint8_t { none, ready_at_once, no_order, state_of_another };

enum class state : std::uint8_t { free, writing, pending, ready };
enum class pc : std::uint8_t { claim, write, say, look, read, look_again, settle, give_way, won, refused, erased };

struct line {
  std::uint8_t generation = 0;
  state now = state::free;
  std::uint8_t owner = nobody;
  std::uint8_t name = 0;
};

struct process {
  pc now = pc::claim;
  std::uint8_t mine = 0;
  std::uint8_t at = 0;          // the line that is looked at
  std::uint8_t generation = 0;  // of that, when it was looked at first
  std::uint8_t name = 0;        // that was read there
  std::uint8_t was_taken = 0;   // another has had the name meanwhile
  std::uint8_t dead = 0;
  std::uint8_t padding = 0;
};

struct world {
  std::array<line, lines> table{};
  std::array<process, processes> each{};
  std::uint8_t deaths_left = 0;
  std::array<std::uint8_t, 3> padding{};

  friend bool operator==(const world& a, const world& b) { return std::memcmp(&a, &b, sizeof a) == 0; }
};
static_assert(sizeof(world) == lines * sizeof(line) + processes * sizeof(process) + 4);

struct hash {
  std::size_t operator()(const world& which) const noexcept { return XXH3_64bits(&which, sizeof which); }
};

/// The first two make the same name, the third another.
class model {
public:
  model(std::uint8_t deaths, mutation what) : mutation_(what) {
    world first;
    first.deaths_left = deaths;
    see(first);
    for (std::size_t next = 0; next < worlds_.size(); ++next) expand(next);
  }

  [[nodiscard]] std::size_t size() const { return worlds_.size(); }
  [[nodiscard]] bool has_two_owners() const { return two_owners_; }
  [[nodiscard]] bool is_refused_for_nothing() const { return false_refusal_; }

  // Whether each world leads to one in which all are done.
  [[nodiscard]] bool always_ends() const {
    return test::always_ends(edges_, [this](std::uint32_t each) { return is_over(worlds_[each]); });
  }

private:
  static std::uint8_t name_of(std::size_t process) { return process < 2 ? 1 : 2; }
  static bool is_done(const process& which) {
    return which.dead != 0 || which.now == pc::refused || which.now == pc::erased;
  }
  static bool is_over(const world& of) { return is_done(of.each[0]) && is_done(of.each[1]) && is_done(of.each[2]); }
  static bool is_alive(const world& of, const line& which) {
    return which.now != state::free && of.each[which.owner].dead == 0;
  }

  std::uint32_t see(const world& which) {
    const auto [found, is_new] = numbers_.try_emplace(which, static_cast<std::uint32_t>(worlds_.size()));
    if (is_new) {
      worlds_.push_back(which);
      edges_.emplace_back();
      check(which);
    }
    return found->second;
  }

  void check(const world& of) {
    std::array<int, 3> owners{};
    for (const auto& each : of.table) {
      if (each.now == state::ready && is_alive(of, each)) ++owners[each.name];
    }
    two_owners_ |= owners[1] > 1 || owners[2] > 1;
  }

  void reach(std::size_t from, world next) {
    for (std::size_t who = 0; who < processes; ++who) {
      auto& self = next.each[who];
      for (const auto& each : next.table) {
        if (each.now == state::ready && is_alive(next, each) && each.owner != who && each.name == name_of(who)) {
          self.was_taken = 1;
        }
      }
      false_refusal_ |= self.now == pc::refused && self.was_taken == 0;
    }
    const auto to = see(next);
    edges_[from].push_back(to);
  }

  void expand(std::size_t from) {
    const auto now = worlds_[from];
    for (std::size_t who = 0; who < processes; ++who) {
      if (is_done(now.each[who])) continue;
      step(from, now, who);
      if (now.deaths_left == 0) continue;
      auto next = now;
      next.each[who] = {.now = pc::erased, .dead = 1};
      --next.deaths_left;
      reach(from, next);
    }
  }

  void step(std::size_t from, const world& now, std::size_t who) {
    if (now.each[who].now == pc::claim) return claim(from, now, who);
    auto next = now;
    auto& self = next.each[who];
    auto& mine = next.table[self.mine];
    switch (self.now) {
      case pc::write: mine.name = name_of(who), self.now = pc::say; break;
      case pc::say:
        mine.now = mutation_ == mutation::ready_at_once ? state::ready : state::pending;
        self.at = 0;
        self.now = pc::look;
        break;
      case pc::look: look(next, self); break;
      case pc::read: self.name = next.table[self.at].name, self.now = pc::look_again; break;
      case pc::look_again: look_again(next, self, who); break;
      case pc::settle: mine.now = state::ready, self.now = pc::won; break;
      case pc::give_way: mine.now = state::free, self.now = pc::claim; break;
      case pc::won: mine.now = state::free, self.now = pc::erased; break;
      default: return;
    }
    forget(self);
    reach(from, next);
  }

  // What is of no use any more, so that worlds that differ in it alone are one.
  static void forget(process& self) {
    if (self.now != pc::read && self.now != pc::look_again) self.generation = 0;
    if (self.now != pc::look_again) self.name = 0;
    if (self.now != pc::look && self.now != pc::read && self.now != pc::look_again) self.at = 0;
    if (self.now == pc::claim || self.now == pc::refused || self.now == pc::erased) self.mine = 0;
  }

  void claim(std::size_t from, const world& now, std::size_t who) {
    bool is_out = true;
    for (std::size_t at = 0; at < lines; ++at) {
      if (now.table[at].generation == generations || is_alive(now, now.table[at])) continue;
      is_out = false;
      auto next = now;
      ++next.table[at].generation;
      next.table[at].now = state::writing;
      next.table[at].owner = static_cast<std::uint8_t>(who);
      next.each[who].mine = static_cast<std::uint8_t>(at);
      next.each[who].now = pc::write;
      reach(from, next);
    }
    if (!is_out) return;
    auto next = now;
    next.each[who].now = pc::erased;
    reach(from, next);
  }

  void go_on(process& self) const {
    ++self.at;
    self.now = pc::look;
  }

  void look(world& next, process& self) const {
    if (self.at == lines) {
      self.now = pc::settle;
      self.at = 0;
      return;
    }
    const auto& other = next.table[self.at];
    if (self.at == self.mine || other.now < state::pending || !is_alive(next, other)) return go_on(self);
    self.generation = other.generation;
    self.now = pc::read;
  }

  void look_again(world& next, process& self, std::size_t who) const {
    const auto& other = next.table[self.at];
    const bool is_same = mutation_ == mutation::state_of_another || other.generation == self.generation;
    if (!is_same || other.now < state::pending || self.name != name_of(who)) return go_on(self);
    if (other.now == state::ready) {
      next.table[self.mine].now = state::free;
      self.now = pc::refused;
    } else if (self.at < self.mine || mutation_ == mutation::no_order) {
      self.now = pc::give_way;
    } else {
      self.now = pc::look;  // until it has given way
    }
  }

  const mutation mutation_;
  bool two_owners_ = false;
  bool false_refusal_ = false;
  std::vector<world> worlds_;
  std::vector<std::vector<std::uint32_t>> edges_;
  std::unordered_map<world, std::uint32_t, hash> numbers_;
};

TEST(NameModel, OneOwnerEach) {
  for (std::uint8_t deaths = 0; deaths <= 2; ++deaths) {
    const model all(deaths, mutation::none);
    EXPECT_FALSE(all.has_two_owners()) << int{deaths};
    EXPECT_FALSE(all.is_refused_for_nothing()) << int{deaths};
    EXPECT_TRUE(all.always_ends()) << int{deaths};
    RecordProperty("worlds", static_cast<int>(all.size()));
    EXPECT_GT(all.size(), 1000U);
  }
}

TEST(NameModel, SeesWhatIsLeftOut) {
  EXPECT_TRUE(model(0, mutation::ready_at_once).has_two_owners());
  EXPECT_TRUE(model(1, mutation::state_of_another).is_refused_for_nothing());
}

}  // namespace
}  // namespace muster::name_model_test
