// SPDX-License-Identifier: BSL-1.0
// Everything that can happen to a count: two participants add and drop a hold each, either may die before any operation
// on shared memory, and the host recovers them and lets go of its own hold. What changes the count is the product's
// source; how the arena puts the steps together is repeated here. Memory is sequentially consistent.
//
// Or one participant was told the block's name, and the host does not wait for it: the block ends, another begins in
// its descriptor, and who was told counts himself then.
#include <array>
#include <csetjmp>
#include <cstdio>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

#include <muster/memory/detail/share_protocol.hpp>

namespace muster::share_model_test {
namespace {

constexpr std::size_t members = 2;  // besides the host
constexpr std::size_t host = members;
constexpr std::size_t most_operations = 32;  // of one process from one checkpoint to the next

namespace at {
constexpr std::size_t count = 0;
constexpr std::size_t taken = 1;   // which life of the block, by whoever counted the last hold out
constexpr std::size_t shared = 2;  // which life of it was shared last; these two are one word, the block's
constexpr std::size_t confirmed = 3;
constexpr std::size_t latest = confirmed + members + 1;
constexpr std::size_t hold = latest + members + 1;  // 0: free
constexpr std::size_t change = hold + members;
constexpr std::size_t target = change + members;  // of a hold: which life
constexpr std::size_t end = target + members;
}  // namespace at

enum hold_state : std::uint64_t { none, adding, held, dropping };
enum member_pc : std::uint8_t { begin_add, add, end_add, begin_drop, drop, take, end_drop, finished, find, find_again };
enum host_pc : std::uint8_t { look, recover, let_go, host_take, host_take_second, after_take, share_again };

struct process {
  std::uint8_t pc = 0;
  std::uint8_t dead = 0;  // 2: recovered
  std::uint8_t operations = 0;
  std::uint8_t victim = 0;    // of the host: whom it recovers
  std::uint32_t changes = 0;  // of its own, which it has begun
  std::array<std::uint64_t, most_operations> results{};
};

struct world {
  std::array<std::uint64_t, at::end> memory{};
  std::array<process, members + 1> each;
  std::uint8_t deaths_left = 0;
  std::uint8_t let_go = 0;  // of how many lives of the block the host has
  std::uint8_t freed = 0;   // how often
  std::uint8_t early = 0;   // freed while somebody held it
  std::array<std::uint8_t, 4> padding{};
};

static_assert(std::has_unique_object_representations_v<world>);

// One process's body is run again from its checkpoint with the results of its operations so far, up to the next.
struct replay {
  world* in = nullptr;
  process* who = nullptr;
  std::size_t position = 0;
  bool moved = false;
  std::jmp_buf out{};

  template <class F>
  std::uint64_t perform(F operation) {
    if (position < who->operations) return who->results[position++];
    if (moved) std::longjmp(out, 1);
    moved = true;
    who->results[position++] = operation();
    who->operations = static_cast<std::uint8_t>(position);
    return who->results[position - 1];
  }
};
replay running;  // one at a time

struct word {
  std::size_t index;

  [[nodiscard]] std::uint64_t load(std::memory_order) const {
    return running.perform([this] { return value(); });
  }
  void store(std::uint64_t desired) const {
    running.perform([&] { return value() = desired; });
  }
  bool compare_exchange_weak(std::uint64_t& expected, std::uint64_t desired, std::memory_order, std::memory_order) {
    const auto wanted = expected;
    expected = running.perform([&] {
      const auto found = value();
      if (found == wanted) value() = desired;
      return found;
    });
    return expected == wanted;
  }
  [[nodiscard]] std::uint64_t& value() const { return running.in->memory[index]; }
};

struct entry {
  word change;
  word confirmed;
};

participant_id id_of(std::size_t who) { return static_cast<participant_id>(who + 1); }

std::optional<share_word> change_count(std::size_t self, int by, std::uint64_t number, bool confirms) {
  word count{at::count};
  static std::array<entry, members + 1> entries;
  for (std::size_t each = 0; each <= members; ++each) {
    entries[each] = {.change = {at::latest + each}, .confirmed = {at::confirmed + each}};
  }
  return share_protocol::change_count(count, by, id_of(self), number, [&](participant_id who) {
    const auto index = static_cast<std::size_t>(who) - 1;
    return confirms && index <= members ? &entries[index] : nullptr;
  });
}

std::uint64_t next_change(process& me, std::size_t self) {
  word{at::latest + self}.store(me.changes + 1);
  return ++me.changes;
}

// The block's word: which life of it is shared now; 0: none.
std::uint64_t read_life() {
  return running.perform([] {
    const auto& memory = running.in->memory;
    return memory[at::shared] == memory[at::taken] ? 0 : memory[at::shared];
  });
}

// The last hold is out: whoever wins this frees the block.
void take_block(std::uint64_t life) {
  running.perform([life] {
    auto& world = *running.in;
    if (world.memory[at::shared] != life || world.memory[at::taken] + 1 != life) return std::uint64_t{0};
    world.memory[at::taken] = life;
    ++world.freed;
    bool used = world.let_go < life;
    for (std::size_t each = 0; each < members; ++each) {
      const bool has_it = world.memory[at::hold + each] == held && world.memory[at::target + each] == life;
      used = used || (has_it && world.each[each].dead == 0);
    }
    world.early = static_cast<std::uint8_t>(world.early | (used ? 1 : 0));
    return std::uint64_t{1};
  });
}

struct scenario {
  std::uint8_t deaths = 2;
  bool confirms = true;
  std::uint8_t lives = 1;      // of the block; with a second, there is one member
  bool looks_again = true;     // the member, once it has counted itself
  bool recovery_looks = true;  // for it
};

void run_member(process& me, std::size_t self, const scenario& what) {
  const word hold{at::hold + self};
  const word target{at::target + self};
  switch (me.pc) {
    case find: me.pc = read_life() == 1 ? begin_add : finished; return;
    case begin_add:
    case begin_drop:
      word{at::change + self}.store(next_change(me, self));
      hold.store(me.pc == begin_add ? adding : dropping);
      ++me.pc;
      return;
    case add: {
      const auto added = change_count(self, 1, me.changes, what.confirms);
      const auto then = what.lives > 1 && what.looks_again ? find_again : end_add;
      me.pc = added ? then : end_drop;
      return;
    }
    case find_again:
      target.store(read_life());
      me.pc = end_add;
      return;
    case end_add:
      hold.store(held);
      me.pc = begin_drop;
      return;
    case drop: {
      const auto left = change_count(self, -1, me.changes, what.confirms);
      me.pc = left && left->count() == 0 ? take : end_drop;
      return;
    }
    case take:
      take_block(target.value());  // written by nobody else
      me.pc = end_drop;
      return;
    case end_drop:
      hold.store(none);
      me.pc = finished;
      return;
    default: return;
  }
}

host_pc take_of(std::uint64_t life) { return life == 1 ? host_take : host_take_second; }

// As below, where the member may have counted itself into another life of the block than it was told of.
void recover_late_member(process& me, const scenario& what) {
  const std::size_t dead = me.victim;
  const auto state = word{at::hold + dead}.load(std::memory_order_acquire);
  const auto target = word{at::target + dead}.load(std::memory_order_relaxed);
  const auto number = word{at::change + dead}.load(std::memory_order_relaxed);
  const bool changed = share_protocol::took_place(word{at::count}, word{at::confirmed + dead}, id_of(dead), number);
  const auto life = state == adding && changed && what.recovery_looks ? read_life() : target;
  me.pc = after_take;
  if (state == none || read_life() != life) return;
  const bool counted = state == held || (state == adding) == changed;
  if (counted) static_cast<void>(change_count(host, -1, next_change(me, host), what.confirms));
  const share_word left(word{at::count}.load(std::memory_order_acquire));
  if (left.count() == 0) me.pc = take_of(life);
}

void recover_member(process& me, const scenario& what) {
  const std::size_t dead = me.victim;
  const auto state = word{at::hold + dead}.load(std::memory_order_acquire);
  if (state == none) {
    me.pc = after_take;
    return;
  }
  const auto number = word{at::change + dead}.load(std::memory_order_acquire);
  const bool changed = share_protocol::took_place(word{at::count}, word{at::confirmed + dead}, id_of(dead), number);
  const bool counted = state == held || (state == adding) == changed;
  if (counted) static_cast<void>(change_count(host, -1, next_change(me, host), what.confirms));
  const share_word left(word{at::count}.load(std::memory_order_acquire));
  me.pc = left.count() == 0 ? host_take : after_take;
}

void run_host(process& me, const scenario& what) {
  switch (me.pc) {
    case recover: return what.lives > 1 ? recover_late_member(me, what) : recover_member(me, what);
    case let_go: {
      const auto left = change_count(host, -1, next_change(me, host), what.confirms);
      me.pc = left && left->count() == 0 ? take_of(running.in->let_go) : after_take;
      return;
    }
    case host_take:
    case host_take_second:
      take_block(me.pc == host_take ? 1 : 2);
      me.pc = after_take;
      return;
    case share_again: {
      const auto number = next_change(me, host);
      word{at::shared}.store(2);
      word{at::count}.store(share_word(number, id_of(host), 1).bits());
      me.pc = look;
      return;
    }
    default:  // after_take
      if (running.in->each[me.victim].dead == 1 && me.victim < members) {
        word{at::hold + me.victim}.store(none);
        running.in->each[me.victim].dead = 2;
      } else {
        static_cast<void>(word{at::taken}.load(std::memory_order_acquire));
      }
      me.victim = members;
      me.pc = look;
  }
}

// One operation of one process; false when it cannot go on.
bool advance(world& now, std::size_t self, const scenario& what) {
  auto& me = now.each[self];
  const auto before = me;
  running = {.in = &now, .who = &me};
  if (setjmp(running.out) != 0) {  // it stands before its next operation: what it had computed is done again then
    const auto results = me.results;
    const auto operations = me.operations;
    me = before;
    me.results = results;
    me.operations = operations;
    return true;
  }
  self == host ? run_host(me, what) : run_member(me, self, what);
  me.operations = 0;
  me.results = {};
  return running.moved;
}

class exploration {
public:
  explicit exploration(scenario what) : what_(what) {
    world first;
    first.memory[at::count] = share_word(1, id_of(host), 1).bits();
    first.memory[at::latest + host] = 1;
    first.each[host].changes = 1;
    first.each[host].victim = members;
    first.memory[at::shared] = 1;
    for (std::size_t member = 0; member < members; ++member) first.memory[at::target + member] = 1;
    if (what.lives > 1) {
      first.each[0].pc = find;
      first.each[1].pc = finished;
    }
    first.deaths_left = what.deaths;
    open_.push_back(first);
  }

  std::string run() {
    while (!open_.empty()) {
      const auto now = open_.back();
      open_.pop_back();
      if (!seen_.insert(std::string(reinterpret_cast<const char*>(&now), sizeof now)).second) continue;
      if (now.early != 0) return "the block was freed while somebody held it";
      if (now.freed > what_.lives) return "the block was freed twice";
      if (!follow(now) && now.freed != what_.lives) return "the block is never freed";
    }
    return {};
  }
  [[nodiscard]] std::size_t states() const { return seen_.size(); }

private:
  bool follow(const world& now) {
    const auto before = open_.size();
    for (std::size_t member = 0; member < members; ++member) {
      if (now.each[member].dead != 0 || now.each[member].pc == finished) continue;
      auto next = now;
      if (advance(next, member, what_)) open_.push_back(next);
      if (now.deaths_left == 0) continue;
      auto died = now;
      --died.deaths_left;
      died.each[member].dead = 1;
      open_.push_back(died);
    }
    follow_host(now);
    return open_.size() > before;
  }

  void follow_host(const world& now) {
    if (now.each[host].pc != look) {
      auto next = now;
      advance(next, host, what_);
      open_.push_back(next);
      return;
    }
    bool all_added = true;
    for (std::size_t member = 0; member < members; ++member) {
      if (now.each[member].dead == 1) {
        auto next = now;
        next.each[host].victim = static_cast<std::uint8_t>(member);
        next.each[host].pc = recover;
        open_.push_back(next);
      }
      all_added = all_added && (now.each[member].pc >= begin_drop || now.each[member].dead == 2);
    }
    if (what_.lives == 1 && !all_added) return;  // it keeps the block until nobody borrows it
    auto next = now;
    if (now.let_go < now.memory[at::shared]) {
      ++next.let_go;
      next.each[host].pc = let_go;
    } else if (now.memory[at::taken] == 1 && now.memory[at::shared] < what_.lives) {  // it has the descriptor now
      next.each[host].pc = share_again;
    } else {
      return;
    }
    open_.push_back(next);
  }

  const scenario what_;
  std::vector<world> open_;
  std::unordered_set<std::string> seen_;
};

std::string explore(const scenario& what) {
  exploration all(what);
  auto found = all.run();
  std::printf("%zu states: %s\n", all.states(), found.empty() ? "right" : found.c_str());
  return found;
}

TEST(ShareModel, ABlockIsFreedOnceAndNotBeforeItsLastHolderWhoeverDiesWhenever) {
  EXPECT_EQ(explore({.deaths = 0}), "");
  EXPECT_EQ(explore({.deaths = 1}), "");
  EXPECT_EQ(explore({.deaths = 2}), "");
}

TEST(ShareModel, OverwritingASignatureWithoutConfirmingItIsNoticed) {
  EXPECT_NE(explore({.deaths = 1, .confirms = false}), "");
}

TEST(ShareModel, WhoCountsHimselfIntoTheNextBlockOfTheDescriptorLeavesItLikeAnyOther) {
  EXPECT_EQ(explore({.deaths = 0, .lives = 2}), "");
  EXPECT_EQ(explore({.deaths = 1, .lives = 2}), "");
}

TEST(ShareModel, CountingOneselfWithoutLookingAgainIsNoticed) {
  EXPECT_NE(explore({.deaths = 0, .lives = 2, .looks_again = false}), "");
  EXPECT_NE(explore({.deaths = 1, .lives = 2, .recovery_looks = false}), "");
}

}  // namespace
}  // namespace muster::share_model_test
