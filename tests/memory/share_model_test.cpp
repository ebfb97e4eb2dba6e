// SPDX-License-Identifier: BSL-1.0
// Everything that can happen to a count: two participants add and drop a hold each, either may die before any operation
// on shared memory, and the host recovers them and lets go of its own hold. What changes the count is the product's
// source; how the arena puts the steps together is repeated here. Memory is sequentially consistent.
#include <array>
#include <csetjmp>
#include <cstdio>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

#include <muster/memory/share_protocol.hpp>

namespace muster::share_model_test {
namespace {

constexpr std::size_t members = 2;  // besides the host
constexpr std::size_t host = members;
constexpr std::size_t most_operations = 32;  // of one process from one checkpoint to the next

namespace at {
constexpr std::size_t count = 0;
constexpr std::size_t taken = 1;  // the block, by whoever counted the last hold out
constexpr std::size_t confirmed = 2;
constexpr std::size_t latest = confirmed + members + 1;
constexpr std::size_t hold = latest + members + 1;  // 0: free
constexpr std::size_t change = hold + members;
constexpr std::size_t end = change + members;
}  // namespace at

enum hold_state : std::uint64_t { none, adding, held, dropping };
enum member_pc : std::uint8_t { begin_add, add, end_add, begin_drop, drop, take, end_drop, finished };
enum host_pc : std::uint8_t { look, recover, let_go, host_take, after_take };

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
  std::uint8_t let_go = 0;  // the host has
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

// The last hold is out: whoever wins this frees the block.
void take_block() {
  running.perform([] {
    auto& world = *running.in;
    if (world.memory[at::taken] != 0) return std::uint64_t{0};
    world.memory[at::taken] = 1;
    ++world.freed;
    bool used = world.let_go == 0;
    for (std::size_t each = 0; each < members; ++each)
      used = used || (world.memory[at::hold + each] == held && world.each[each].dead == 0);
    world.early = static_cast<std::uint8_t>(world.early | (used ? 1 : 0));
    return std::uint64_t{1};
  });
}

struct scenario {
  std::uint8_t deaths = 2;
  bool confirms = true;
};

void run_member(process& me, std::size_t self, const scenario& what) {
  const word hold{at::hold + self};
  switch (me.pc) {
    case begin_add:
    case begin_drop:
      word{at::change + self}.store(next_change(me, self));
      hold.store(me.pc == begin_add ? adding : dropping);
      ++me.pc;
      return;
    case add:
      static_cast<void>(change_count(self, 1, me.changes, what.confirms));
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
      take_block();
      me.pc = end_drop;
      return;
    case end_drop:
      hold.store(none);
      me.pc = finished;
      return;
    default: return;
  }
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
    case recover: return recover_member(me, what);
    case let_go: {
      const auto left = change_count(host, -1, next_change(me, host), what.confirms);
      me.pc = left && left->count() == 0 ? host_take : after_take;
      return;
    }
    case host_take:
      take_block();
      me.pc = after_take;
      return;
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
    first.deaths_left = what.deaths;
    open_.push_back(first);
  }

  std::string run() {
    while (!open_.empty()) {
      const auto now = open_.back();
      open_.pop_back();
      if (!seen_.insert(std::string(reinterpret_cast<const char*>(&now), sizeof now)).second) continue;
      if (now.early != 0) return "the block was freed while somebody held it";
      if (now.freed > 1) return "the block was freed twice";
      if (!follow(now) && now.freed != 1) return "the block is never freed";
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
    if (!all_added || now.let_go != 0) return;  // it keeps the block until nobody borrows it
    auto next = now;
    next.let_go = 1;
    next.each[host].pc = let_go;
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

}  // namespace
}  // namespace muster::share_model_test
