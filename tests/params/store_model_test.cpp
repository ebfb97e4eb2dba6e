// SPDX-License-Identifier: BSL-1.0
// Everything that can happen to processes that push and pull two keys of a store at once, of which any may be killed
// before any operation on shared memory, and to the host, which recovers what they leave: the steps of store_push.cpp,
// store_commit.cpp, version_chain.cpp and store_keeper.cpp, in their order. One version of each key is kept.
//
// Left out: values beside their keys, and erase; blocks that are used again, whose names have other generations;
// expected versions; and attempts beyond the second, where the model gives up. What is behind a version is read in one
// step. Memory is sequentially consistent, as the store's operations are.
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "state_space.hpp"

namespace muster::store_model_test {
namespace {

constexpr std::size_t keys = 2;
constexpr std::size_t processes = 3;
constexpr std::size_t attempts = 2;
constexpr std::size_t versions = 1 + processes * attempts;  // of each key: the first one, and one of each attempt
constexpr std::size_t records = processes * attempts;
constexpr std::uint8_t none = 0xff;
constexpr std::uint8_t first_mark = 0x10;  // words from here on name a record

enum class role : std::uint8_t { nothing, push_all, push_one, pull_all };

// What is done otherwise, to see that it is missed.
enum class mutation : std::uint8_t { nothing, says_late, overwrites_marks, looks_once, host_settles_nothing };

enum class held : std::uint8_t { no, by_maker, by_all, gone };
enum class fate : std::uint8_t { open, made, refused };

struct record {
  fate state = fate::open;
  held hold = held::no;
  std::array<std::uint8_t, keys> before{};
};

enum class pc : std::uint8_t {
  look,
  refuse,
  settle_of_other,
  make,
  say,
  entrust_record,
  entrust,
  mark,
  check,
  decide,
  refuse_own,
  settle,
  drop,
  drop_record,
  publish,
  clear,
  collect,
  let_go,
  cut,
  read,
  resolve,
  keep,
  still,
  still_resolved,
  again,
  again_resolved,
  over
};

/// Holds to let go of, the oldest last: at most those of all other processes and the first version.
static_assert(processes <= 4);
struct chain {
  std::uint8_t count = 0;
  std::array<std::uint8_t, 4> owner{};  // whose word names it
  std::array<std::uint8_t, 4> hold{};
};

struct process {
  pc now = pc::look;
  std::uint8_t key = 0;
  std::uint8_t attempt = 0;
  std::uint8_t mark = 0;  // that it has met
  std::uint8_t said = 0;  // its line in shared memory names what it is about to publish
  std::uint8_t done = 0;
  std::uint8_t dead = 0;  // 1: not recovered yet
  std::uint8_t kept = 0;
  std::array<std::uint8_t, keys> raw{};  // words, as they were read
  std::array<std::uint8_t, keys> got{};  // what these stood for
  chain behind{};
};

enum class host_pc : std::uint8_t {
  idle,
  refuse,
  settle,
  let_go_of_key,
  drop_record,
  has_read,
  has_open,
  has_walk,
  collect,
  let_go_behind,
  cut_behind,
  let_go,
  drop_own
};

struct host {
  host_pc now = host_pc::idle;
  std::uint8_t whose = 0;
  std::uint8_t key = 0;
  std::uint8_t refused = 0;
  std::uint8_t wanted = 0;
  std::uint8_t is_behind = 0;  // what is wanted is what is behind the dead one's version
  std::uint8_t raw = 0;
  std::uint8_t at = 0;
  std::uint8_t other = none;  // looked at when that is not where it is
  chain behind{};
};

struct world {
  std::uint64_t pairs = 0;  // of values, that were there together since the reader has begun to look
  std::array<std::uint8_t, keys> word{};
  std::array<std::array<held, versions>, keys> hold{};
  std::array<std::array<std::uint8_t, versions>, keys> previous{};
  std::array<record, records> all{};
  std::array<process, processes> each{};
  host keeper{};
  std::uint8_t deaths_left = 0;
  std::array<std::uint8_t, 8> padding{};

  friend bool operator==(const world& a, const world& b) { return std::memcmp(&a, &b, sizeof a) == 0; }
};
static_assert(std::has_unique_object_representations_v<world>);

struct hash {
  std::size_t operator()(const world& which) const noexcept { return XXH3_64bits(&which, sizeof which); }
};

bool is_mark(std::uint8_t word) { return word >= first_mark && word != none; }
std::uint8_t version_of(std::size_t process, std::size_t attempt) {
  return static_cast<std::uint8_t>(1 + process * attempts + attempt);
}
std::size_t record_of(std::uint8_t mark) { return mark - first_mark; }
std::uint8_t mark_of(std::size_t process, std::size_t attempt) {
  return static_cast<std::uint8_t>(first_mark + process * attempts + attempt);
}

std::uint8_t stands_for(const world& of, std::size_t key, std::uint8_t word) {
  if (!is_mark(word)) return word;
  const auto which = record_of(word);
  const auto& found = of.all[which];
  return found.state == fate::made ? static_cast<std::uint8_t>(1 + which) : found.before[key];
}
std::uint8_t value(const world& of, std::size_t key) { return stands_for(of, key, of.word[key]); }
std::uint64_t pair_of(std::uint8_t first, std::uint8_t second) {
  return std::uint64_t{1} << (first * versions + second);
}

void settle(world& of, std::size_t key, std::uint8_t mark) {
  if (of.word[key] == mark) of.word[key] = stands_for(of, key, mark);
}
void let_go(held& which) {
  if (which != held::no) which = held::gone;
}
void refuse(record& which) {
  if (which.state == fate::open) which.state = fate::refused;
}

chain links_behind(const world& of, std::size_t key, std::uint8_t from) {
  chain found;
  while (of.previous[key][from] != none) {
    const auto next = of.previous[key][from];
    found.owner[found.count] = from;
    found.hold[found.count++] = next;
    if (of.hold[key][next] == held::gone) break;
    from = next;
  }
  return found;
}

class model {
public:
  model(std::array<role, processes> roles, std::uint8_t deaths, mutation what = mutation::nothing)
      : roles_(roles), mutation_(what), deaths_(deaths) {
    world first;
    first.deaths_left = deaths;
    for (std::size_t key = 0; key < keys; ++key) {
      first.hold[key][0] = held::by_all;
      first.previous[key].fill(none);
    }
    for (std::size_t each = 0; each < processes; ++each) {
      if (roles_[each] == role::nothing) first.each[each].now = pc::over;
      if (roles_[each] == role::pull_all) first.each[each].now = pc::read;
    }
    see(first);
    for (std::size_t next = 0; next < worlds_.size(); ++next) expand(next);
  }

  [[nodiscard]] std::size_t size() const { return worlds_.size(); }
  [[nodiscard]] const std::string& fault() const { return fault_; }

  // Whether each world leads to one in which all are done.
  [[nodiscard]] bool always_ends() const {
    return test::always_ends(edges_, [this](std::uint32_t each) { return edges_[each].empty(); });
  }

private:
  void note_fault(const std::string& what) {
    if (fault_.empty()) fault_ = what;
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
    for (std::size_t key = 0; key < keys; ++key) {
      if (of.hold[key][value(of, key)] != held::by_all) note_fault("the newest version has gone");
      if (is_mark(of.word[key]) && of.all[record_of(of.word[key])].hold == held::gone) {
        note_fault("a word names a record that has gone");
      }
    }
  }

  void check_end(const world& of) {
    for (const auto& each : of.all) {
      if (each.hold != held::no && each.hold != held::gone) note_fault("a record stays");
    }
    for (std::size_t key = 0; key < keys; ++key) {
      if (is_mark(of.word[key])) return note_fault("a word names a record in the end");
      std::array<bool, versions> is_there{};
      is_there[of.word[key]] = true;
      const auto rest = links_behind(of, key, of.word[key]);
      for (std::size_t each = 0; each < rest.count; ++each) is_there[rest.hold[each]] = true;
      if (deaths_ == 0 && rest.count != 0) note_fault("more versions than one stay");
      for (std::size_t each = 0; each < versions; ++each) {
        const auto found = of.hold[key][each];
        if (found != held::no && found != held::gone && !is_there[each]) note_fault("a version stays that is lost");
      }
    }
  }

  // `moved`: which keys may have another value by this step.
  void reach(std::size_t from, world next, std::array<bool, keys> moved = {}) {
    const auto now = worlds_[from];
    for (std::size_t key = 0; key < keys; ++key) {
      const bool has_moved = value(now, key) != value(next, key);
      if (has_moved != moved[key]) note_fault(has_moved ? "a value has changed by itself" : "a value has not changed");
    }
    next.pairs |= next.pairs != 0 ? pair_of(value(next, 0), value(next, 1)) : 0;
    const auto to = see(next);
    edges_[from].push_back(to);
  }

  void expand(std::size_t from) {
    const auto now = worlds_[from];
    bool is_end = now.keeper.now == host_pc::idle;
    for (std::size_t which = 0; which < processes; ++which) {
      if (now.each[which].dead == 1) is_end = false;
      if (now.each[which].dead != 0 || now.each[which].now == pc::over) continue;
      is_end = false;
      step(from, now, which);
      if (now.deaths_left == 0) continue;
      auto next = now;
      next.each[which].dead = 1;
      --next.deaths_left;
      if (roles_[which] == role::pull_all) next.pairs = 0;
      reach(from, next);
    }
    recover(from, now);
    if (is_end) check_end(now);
  }

  // ---- processes

  [[nodiscard]] bool is_of_all(std::size_t which) const { return roles_[which] == role::push_all; }

  // To the next key, or, behind the last one, on.
  void next_key(process& self, std::size_t which, pc same, pc then) const {
    self.now = same;
    if (is_of_all(which) && self.key + 1U < keys) {
      ++self.key;
    } else {
      self.key = 0;
      self.now = then;
    }
  }

  void step(std::size_t from, const world& now, std::size_t which) {
    if (roles_[which] == role::pull_all) return step_of_reader(from, now, which);
    auto next = now;
    auto& self = next.each[which];
    const auto key = self.key;
    const auto own = version_of(which, self.attempt);
    const auto mark = mark_of(which, self.attempt);
    auto& entry = next.all[record_of(mark)];
    auto& hold = next.hold[key][own];
    std::array<bool, keys> moved{};
    switch (self.now) {
      case pc::look: look(next, which); break;
      case pc::refuse:
        self.now = pc::look;
        if (next.all[record_of(self.mark)].hold == held::gone) break;
        refuse(next.all[record_of(self.mark)]);
        self.now = pc::settle_of_other;
        break;
      case pc::settle_of_other: settle(next, key, self.mark), self.now = pc::look; break;
      case pc::make:
        for (std::size_t each = 0; each < (is_of_all(which) ? keys : 1); ++each) {
          next.hold[each][own] = held::by_maker;
          next.previous[each][own] = self.got[each];
        }
        if (is_of_all(which)) entry = {.state = fate::open, .hold = held::by_maker, .before = self.got};
        self.now = mutation_ == mutation::says_late ? pc::entrust : pc::say;
        break;
      case pc::say:
        self.said = 1;
        self.now = is_of_all(which) ? pc::entrust_record : pc::entrust;
        if (mutation_ == mutation::says_late) self.now = pc::publish;
        break;
      case pc::entrust_record: entry.hold = held::by_all, self.now = pc::entrust; break;
      case pc::entrust:
        hold = held::by_all;
        next_key(self, which, pc::entrust, is_of_all(which) ? pc::mark : pc::publish);
        if (mutation_ == mutation::says_late) self.now = pc::say;
        break;
      case pc::mark:
        self.now = next.word[key] == self.raw[key] ? pc::check : pc::refuse_own;
        if (self.now == pc::check) next.word[key] = mark;
        break;
      case pc::check:
        if (entry.state == fate::open) {
          next_key(self, which, pc::mark, pc::decide);
        } else {
          self.now = pc::refuse_own;
        }
        break;
      case pc::decide:
        self.key = 0;
        self.now = pc::refuse_own;
        if (entry.state != fate::open) break;
        entry.state = fate::made;
        moved = {true, true};
        self.done = 1;
        self.now = pc::settle;
        break;
      case pc::refuse_own: refuse(entry), self.key = 0, self.now = pc::settle; break;
      case pc::settle:
        settle(next, key, mark);
        next_key(self, which, pc::settle, self.done != 0 ? pc::drop_record : pc::drop);
        break;
      case pc::drop:
        let_go(hold), next_key(self, which, pc::drop, is_of_all(which) ? pc::drop_record : pc::clear);
        break;
      case pc::drop_record: let_go(entry.hold), self.now = pc::clear; break;
      case pc::publish:
        self.done = next.word[key] == self.raw[key] ? 1 : 0;
        moved[key] = self.done != 0;
        if (self.done != 0) next.word[key] = own;
        self.now = self.done != 0 ? pc::clear : pc::drop;
        break;
      case pc::clear:
        self.said = 0;
        self.now = self.done != 0 ? pc::collect : pc::look;
        if (self.done == 0 && ++self.attempt == attempts) self.attempt = 0, self.now = pc::over;
        break;
      case pc::collect:
        self.behind = links_behind(next, key, own);
        self.now = pc::let_go;
        if (self.behind.count == 0) next_key(self, which, pc::collect, pc::over);
        break;
      case pc::let_go: let_go(next.hold[key][self.behind.hold[self.behind.count - 1]]), self.now = pc::cut; break;
      case pc::cut:
        next.previous[key][self.behind.owner[--self.behind.count]] = none;
        self.now = pc::let_go;
        if (self.behind.count == 0) next_key(self, which, pc::collect, pc::over);
        break;
      default: return;
    }
    forget(self);
    reach(from, next, moved);
  }

  void look(world& next, std::size_t which) const {
    auto& self = next.each[which];
    const auto found = next.word[self.key];
    self.raw[self.key] = found;
    self.got[self.key] = stands_for(next, self.key, found);
    if (is_mark(found) && mutation_ != mutation::overwrites_marks) {
      self.mark = found;
      self.now = pc::refuse;
    } else {
      next_key(self, which, pc::look, pc::make);
    }
  }

  // What is of no use any more, so that worlds that differ in it alone are one.
  static void forget(process& self) {
    if (self.now != pc::refuse && self.now != pc::settle_of_other) self.mark = 0;
    if (self.now != pc::let_go && self.now != pc::cut) self.behind = {};
    if (self.now == pc::look && self.key == 0) self.raw = {}, self.got = {};
    if (self.now != pc::over) return;
    self = {.now = pc::over};
  }

  // ---- the reader

  void begin_again(world& next, process& self) const {
    self = {.now = pc::read};
    next.pairs = 0;
  }

  void step_of_reader(std::size_t from, const world& now, std::size_t which) {
    auto next = now;
    auto& self = next.each[which];
    const auto key = self.key;
    const auto raw = self.raw[key];
    const auto& entry = next.all[is_mark(raw) ? record_of(raw) : 0];
    const bool is_gone = is_mark(raw) && entry.hold == held::gone;
    switch (self.now) {
      case pc::read:
        if (key == 0) next.pairs = pair_of(value(now, 0), value(now, 1));
        self.raw[key] = next.word[key];
        self.got[key] = self.raw[key];
        self.now = is_mark(self.raw[key]) ? pc::resolve : pc::keep;
        break;
      case pc::resolve:
        self.now = pc::read;
        if (is_gone) {
          if (next.word[key] == raw) note_fault("a reader finds no record");
          break;
        }
        self.got[key] = stands_for(next, key, raw);
        self.now = pc::keep;
        break;
      case pc::keep: self.kept = next.hold[key][self.got[key]] != held::gone, self.now = pc::still; break;
      case pc::still:
        self.now = pc::read;
        if (next.word[key] != raw) break;
        if (is_mark(raw)) {
          self.now = pc::still_resolved;
        } else {
          end_look(self);
        }
        break;
      case pc::still_resolved:
        self.now = pc::read;
        if (!is_gone && stands_for(next, key, raw) == self.got[key]) end_look(self);
        break;
      case pc::again:
        if (mutation_ == mutation::looks_once) {
          end_second_look(next, self);
        } else if (next.word[key] != raw) {
          begin_again(next, self);
        } else if (is_mark(raw)) {
          self.now = pc::again_resolved;
        } else {
          end_second_look(next, self);
        }
        break;
      case pc::again_resolved:
        if (is_gone || stands_for(next, key, raw) != self.got[key]) {
          begin_again(next, self);
        } else {
          end_second_look(next, self);
        }
        break;
      default: return;
    }
    reach(from, next);
  }

  void end_look(process& self) {
    if (self.kept == 0) note_fault("a reader finds no block");
    self.kept = 0;
    self.now = ++self.key == keys ? pc::again : pc::read;
    self.key %= keys;
  }

  void end_second_look(world& next, process& self) {
    self.now = pc::again;
    if (++self.key < keys) return;
    if ((next.pairs & pair_of(self.got[0], self.got[1])) == 0) note_fault("values that were never there together");
    self = {.now = pc::over};
    next.pairs = 0;
  }

  // ---- the host

  void recover(std::size_t from, const world& now) {
    if (now.keeper.now != host_pc::idle) return step_of_host(from, now);
    for (std::uint8_t which = 0; which < processes; ++which) {
      if (now.each[which].dead != 1) continue;
      auto next = now;
      next.keeper = {.now = host_pc::drop_own, .whose = which};
      auto& dead = next.each[which];
      if (std::exchange(dead.said, std::uint8_t{0}) != 0) {
        next.keeper.now = is_of_all(which) ? host_pc::refuse : host_pc::has_read;
        next.keeper.wanted = version_of(which, dead.attempt);
      }
      reach(from, next);
    }
  }

  void step_of_host(std::size_t from, const world& now) {
    auto next = now;
    auto& self = next.keeper;
    const auto attempt = next.each[self.whose].attempt;
    const auto own = version_of(self.whose, attempt);
    const auto mark = mark_of(self.whose, attempt);
    auto& entry = next.all[record_of(mark)];
    switch (self.now) {
      case host_pc::refuse:
        self.now = host_pc::drop_own;
        if (entry.hold == held::gone) break;
        refuse(entry);
        self.refused = entry.state == fate::refused ? 1 : 0;
        self.now = host_pc::settle;
        break;
      case host_pc::settle:
        if (mutation_ != mutation::host_settles_nothing) settle(next, self.key, mark);
        self.now = host_pc::let_go_of_key;
        break;
      case host_pc::let_go_of_key:
        if (self.refused != 0) let_go(next.hold[self.key][own]);
        self.now = ++self.key == keys ? host_pc::drop_record : host_pc::settle;
        break;
      case host_pc::drop_record: let_go(entry.hold), self.now = host_pc::drop_own; break;
      case host_pc::has_read:
        self.raw = next.word[0];
        self.at = self.raw;
        self.other = none;
        self.now = is_mark(self.raw) ? host_pc::has_open : host_pc::has_walk;
        break;
      case host_pc::has_open: {
        const auto& found = next.all[record_of(self.raw)];
        self.now = host_pc::has_walk;
        self.at = found.before[0];
        self.other = static_cast<std::uint8_t>(1 + record_of(self.raw));
        if (found.hold == held::gone && next.word[0] != self.raw) self.now = host_pc::has_read;
        if (found.hold == held::gone && next.word[0] == self.raw) note_fault("the host finds no record");
        break;
      }
      case host_pc::has_walk: walk(next, self, own); break;
      case host_pc::collect:
        self.behind = next.hold[0][own] == held::gone ? chain() : links_behind(next, 0, own);
        self.now = self.behind.count != 0 ? host_pc::let_go_behind : host_pc::let_go;
        break;
      case host_pc::let_go_behind:
        let_go(next.hold[0][self.behind.hold[self.behind.count - 1]]);
        self.now = host_pc::cut_behind;
        break;
      case host_pc::cut_behind:
        next.previous[0][self.behind.owner[--self.behind.count]] = none;
        self.now = self.behind.count != 0 ? host_pc::let_go_behind : host_pc::let_go;
        break;
      case host_pc::let_go: let_go(next.hold[0][own]), self.now = host_pc::drop_own; break;
      case host_pc::drop_own:
        drop_holds(next, self.whose);
        self = {};
        break;
      default: return;
    }
    if (self.now == host_pc::drop_own) self = {.now = host_pc::drop_own, .whose = self.whose};
    reach(from, next);
  }

  static void walk(const world& of, host& self, std::uint8_t own) {
    if (self.at != none && self.at == self.wanted) {
      self.now = self.is_behind != 0 ? host_pc::let_go : host_pc::drop_own;
      return;
    }
    const bool goes_on = self.at != none && of.hold[0][self.at] != held::gone && of.previous[0][self.at] != none;
    if (goes_on) {
      self.at = of.previous[0][self.at];
    } else if (self.other != none) {
      self.at = std::exchange(self.other, none);
    } else if (self.is_behind != 0) {
      self.now = host_pc::collect;
    } else {
      const auto behind = of.hold[0][own] != held::gone ? of.previous[0][own] : none;
      self.wanted = behind;
      self.is_behind = 1;
      self.now = behind != none ? host_pc::has_read : host_pc::let_go;
    }
  }

  // What nobody else has goes with its process.
  static void drop_holds(world& next, std::size_t whose) {
    auto& dead = next.each[whose];
    for (std::size_t attempt = 0; attempt < attempts; ++attempt) {
      auto& entry = next.all[record_of(mark_of(whose, attempt))].hold;
      if (entry == held::by_maker) entry = held::gone;
      for (std::size_t key = 0; key < keys; ++key) {
        auto& hold = next.hold[key][version_of(whose, attempt)];
        if (hold == held::by_maker) hold = held::gone;
      }
    }
    dead = {.now = pc::over, .dead = 2};
  }

  const std::array<role, processes> roles_;
  const mutation mutation_;
  const std::uint8_t deaths_;
  std::string fault_;
  std::vector<world> worlds_;
  std::vector<std::vector<std::uint32_t>> edges_;
  std::unordered_map<world, std::uint32_t, hash> numbers_;
};

using role::nothing;
using role::pull_all;
using role::push_all;
using role::push_one;

// Values change only by a push of their key, or all by one of all; what is newest is there; what a reader of several
// finds was there together; and nothing stays that is of no use.
TEST(StoreModel, VersionsAreWholeAndNoneIsLost) {
  struct meeting {
    std::array<role, processes> roles;
    std::uint8_t most_deaths;
  };
  const std::array<meeting, 5> all{{{{push_one, push_one, nothing}, 2},
                                    {{push_all, push_one, nothing}, 2},
                                    {{push_all, push_all, nothing}, 2},
                                    {{push_all, push_one, pull_all}, 1},
                                    {{push_all, push_all, pull_all}, 0}}};
  for (const auto& [roles, most_deaths] : all) {
    for (std::uint8_t deaths = 0; deaths <= most_deaths; ++deaths) {
      const model found(roles, deaths);
      EXPECT_EQ(found.fault(), "") << int{deaths} << " deaths";
      EXPECT_TRUE(found.always_ends()) << int{deaths} << " deaths";
      EXPECT_GT(found.size(), 100U);
    }
  }
}

TEST(StoreModel, SeesWhatIsLeftOut) {
  EXPECT_NE(model({push_one, nothing, nothing}, 1, mutation::says_late).fault(), "");
  EXPECT_NE(model({push_all, push_one, nothing}, 0, mutation::overwrites_marks).fault(), "");
  EXPECT_NE(model({push_all, pull_all, nothing}, 0, mutation::looks_once).fault(), "");
  EXPECT_NE(model({push_all, nothing, nothing}, 1, mutation::host_settles_nothing).fault(), "");
}

}  // namespace
}  // namespace muster::store_model_test
