// SPDX-License-Identifier: BSL-1.0
// Everything that can happen to an arena's extents: two participants claim runs of them, give them back, lend blocks of
// them to the host or share them with one another; either may die before any operation on shared memory, and the host
// adopts, frees and recovers. What touches extents and descriptors is the product's source; how the arena puts the
// steps together is repeated here, and each function says whose steps it repeats. How holds are counted is
// share_model_test's affair: here a set of holders changes in one step. Memory is sequentially consistent.
#include <xxhash.h>

#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/memory/detail/block.hpp>
#include <muster/memory/detail/block_table.hpp>
#include <muster/memory/detail/extent_map.hpp>

namespace muster::extent_model_test {
namespace {

constexpr std::size_t members = 2;  // besides the host
constexpr std::size_t host = members;
constexpr std::size_t most_extents = 3;
constexpr std::size_t most_blocks = 2;
constexpr std::size_t most_operations = 64;    // of one process from one checkpoint to the next
constexpr std::uint64_t in_letter = 1U << 4U;  // a holder: whoever receives the message

namespace at {
constexpr std::size_t extent = 0;
constexpr std::size_t block = extent + most_extents;  // word, offset, capacity, home
constexpr std::size_t extents_used = block + 4 * most_blocks;
constexpr std::size_t blocks_used = extents_used + 1;
constexpr std::size_t letter = blocks_used + 1;  // what a member has lent or sent: the block's name
constexpr std::size_t hold = letter + members;
constexpr std::size_t holders = hold + members;  // of the one block that is shared
constexpr std::size_t target = holders + 1;      // its name
constexpr std::size_t end = target + 1;
}  // namespace at

// What a member does with its run.
enum class script : std::uint8_t { drops, lends, lends_small, shares, takes };

// What is left out, to see that it is missed.
enum class mutation : std::uint8_t {
  none,
  claim_at_once,  // a claim looks and writes in two steps
  owner,          // recovery frees whatever extents a dead one's descriptor says
  transfer,       // the host takes the extents of what it adopts
  mark,           // of the extents that were ever used
  give_first,     // recovery gives a shared block the extents that its sharer still had
  taken_back,     // recovery of one that died while it took a block over
  orphans,        // recovery keeps the memory of what the host has adopted
  generation      // the host looks at it when it adopts
};

struct scenario {
  std::array<script, members> does = {script::drops, script::drops};
  std::uint8_t deaths = 2;
  std::size_t extents = most_extents;
  std::size_t blocks = most_blocks;
  std::size_t wants = 2;        // extents of a run; small blocks take one
  std::uint8_t recoveries = 1;  // of each dead
  std::uint8_t rounds = 1;      // of those who only drop
  mutation without = mutation::none;
};

enum class pc : std::uint8_t {
  claim,
  bind,
  give_back,
  go_live,
  unbind,
  release,
  lend,
  collect,
  share,
  send,
  receive,
  drop,
  take_over,
  end_drop,
  finished,
  // of the host
  rest,
  adopt,
  free_adopted,
  drain,
  recover_shares,
  recover_hold,
  recover_blocks,
  recover_extents
};

enum hold_state : std::uint64_t { none, adding, held, dropping };

struct process {
  pc now = pc::claim;
  pc then = pc::rest;     // after something has been freed
  std::uint8_t dead = 0;  // 2: recovered
  std::uint8_t operations = 0;
  std::uint8_t has_run = 0;  // by its private record
  std::uint8_t first = 0;
  std::uint8_t count = 0;
  std::uint8_t descriptor = 0;
  std::uint8_t generation = 0;
  std::uint8_t cursor = 0;
  std::uint8_t victim = 0;
  std::uint8_t round = 0;
  std::array<std::uint8_t, 4> padding{};
  std::array<std::uint64_t, most_operations> results{};

  [[nodiscard]] extent_run run() const { return {first, count}; }
};

// The host's record of a block that it has adopted.
struct adopted_block {
  std::uint8_t is_there = 0;
  std::uint8_t home = 0;
  std::uint8_t first = 0;
  std::uint8_t count = 0;
  std::uint8_t descriptor = 0;
  std::uint8_t tries = 0;
  std::uint8_t times = 0;
  std::uint8_t padding = 0;

  [[nodiscard]] extent_run run() const { return {first, count}; }
};

struct world {
  std::array<std::uint64_t, at::end> memory{};
  std::array<process, members + 1> each{};
  std::array<adopted_block, members> adopted{};  // by lender
  std::uint8_t deaths_left = 0;
  std::uint8_t claimed = 0;  // somebody has got a run
  std::uint8_t torn = 0;     // the extents of a shared block were not all its own when the last holder took them
  std::array<std::uint8_t, 5> padding{};
};
static_assert(std::has_unique_object_representations_v<world>);

// One process's body is run again from its checkpoint with the results of its operations so far, up to the next.
struct replay {
  world* in = nullptr;
  process* who = nullptr;
  const scenario* what = nullptr;
  std::size_t self = 0;
  std::size_t position = 0;
  bool moved = false;
  std::jmp_buf out{};

  template <class F>
  std::uint64_t perform(F operation) {
    if (position < who->operations) return who->results[position++];
    if (moved) std::longjmp(out, 1);
    moved = true;
    return note(operation);
  }
  // What nobody else can see or change is no step of its own.
  template <class F>
  std::uint64_t perform_unseen(F operation) {
    return position < who->operations ? who->results[position++] : note(operation);
  }

private:
  template <class F>
  std::uint64_t note(F operation) {
    if (position == most_operations) std::abort();
    who->results[position++] = operation();
    who->operations = static_cast<std::uint8_t>(position);
    return who->results[position - 1];
  }
};
replay running;  // one at a time

bool is_without(mutation what) { return running.what->without == what; }
participant_id id_of(std::size_t who) { return who == host ? participant_id::host : participant_id(who + 2); }
std::uint64_t bit_of(std::size_t who) { return std::uint64_t{1} << who; }

using extent_word = ownership<extent_state>;

struct shared_word {
  std::size_t index;

  [[nodiscard]] std::uint64_t load(std::memory_order) const {
    const auto read = [this] { return value(); };
    return is_own() ? running.perform_unseen(read) : running.perform(read);
  }
  void store(std::uint64_t desired, std::memory_order) const {
    running.perform([&] { return value() = desired; });
  }
  bool compare_exchange_weak(std::uint64_t& expected, std::uint64_t desired, std::memory_order order) const {
    if (is_without(mutation::mark) && index == at::extents_used) return true;
    return compare_exchange_strong(expected, desired, order);
  }
  bool compare_exchange_strong(std::uint64_t& expected, std::uint64_t desired, std::memory_order order) const {
    const auto wanted = expected;
    if (is_without(mutation::claim_at_once) && index < at::block) {
      if (load(order) != wanted) return false;
      store(desired, order);
      return true;
    }
    expected = running.perform([&] {
      const auto found = value();
      if (found == wanted) value() = desired;
      return found;
    });
    return expected == wanted;
  }
  [[nodiscard]] std::uint64_t& value() const { return running.in->memory[index]; }

private:
  // Nobody else changes an extent that this one holds.
  [[nodiscard]] bool is_own() const {
    if (index >= at::block) return false;
    const auto found = extent_word::unpack(value());
    return found.state == extent_state::held && found.owner == id_of(running.self);
  }
};

struct descriptor {
  shared_word word;
  shared_word offset;  // in extents
  shared_word capacity;
  shared_word home;
};

std::array<shared_word, most_extents> extent_words = {{{0}, {1}, {2}}};
std::array<descriptor, most_blocks> descriptors = {
    {{{at::block}, {at::block + 1}, {at::block + 2}, {at::block + 3}},
     {{at::block + 4}, {at::block + 5}, {at::block + 6}, {at::block + 7}}}};
shared_word extents_used{at::extents_used};
shared_word blocks_used{at::blocks_used};

basic_extent_map<shared_word> extents() {
  return {std::span(extent_words).first(running.what->extents), basic_table_mark(extents_used)};
}
basic_block_table<descriptor, shared_word> blocks() {
  return {std::span(descriptors).first(running.what->blocks), basic_table_mark(blocks_used)};
}

std::uint64_t read(std::size_t index) { return shared_word{index}.load(std::memory_order_acquire); }
void write(std::size_t index, std::uint64_t value) { shared_word{index}.store(value, std::memory_order_release); }

std::uint64_t name_of(std::uint32_t descriptor, std::uint32_t generation) {
  return block_ref{.descriptor = descriptor, .generation = generation, .size_bytes = 0}.handle();
}
extent_run run_of(const block_snapshot& found) { return {found.offset, found.capacity}; }
bool is_within(const block_snapshot& found) {
  const auto size = running.what->extents;
  return found.capacity <= size && found.offset <= size - found.capacity;
}

// arena::publish
void publish(std::uint32_t which, std::uint32_t generation, participant_id owner, block_state state) {
  const block_ownership word{.generation = generation, .owner = owner, .state = state};
  blocks().at(which).word.store(word.pack(), std::memory_order_release);
}

// ---- members

script own_script() { return running.what->does[running.self]; }

// arena::fresh_run, arena::allocate_small
void claim(process& me) {
  const auto count = own_script() == script::lends_small ? 1 : running.what->wants;
  const auto run = extents().claim(id_of(running.self), count, running.self);
  if (!run) {
    me.now = pc::finished;
    return;
  }
  me.first = static_cast<std::uint8_t>(run->first);
  me.count = static_cast<std::uint8_t>(run->count);
  me.has_run = 1;
  running.in->claimed = 1;
  me.now = pc::bind;
}

// arena::bind
void bind(process& me) {
  const auto found = blocks().bind(id_of(running.self), me.first, me.count, 0);
  me.now = found ? pc::go_live : pc::give_back;
  if (!found) return;
  me.descriptor = static_cast<std::uint8_t>(*found);
  me.generation = static_cast<std::uint8_t>(blocks().read(*found).owner.generation);
}

// arena::make_live
void go_live(process& me) {
  const auto generation = static_cast<std::uint8_t>(me.generation + 1);
  blocks().place(me.descriptor, id_of(running.self), me.first, me.count);
  publish(me.descriptor, generation, id_of(running.self), block_state::live);
  me.generation = generation;
  switch (own_script()) {
    case script::drops: me.now = pc::unbind; break;
    case script::shares: me.now = pc::share; break;
    default: me.now = pc::lend; break;
  }
  me.then = pc::finished;
}

// arena::drop_run: the descriptor first
void unbind(process& me) {
  blocks().unbind(me.descriptor);
  me.has_run = 0;
  me.now = pc::release;
}
void release(process& me) {
  extents().release(id_of(running.self), me.run());
  me.now = me.then;
}

// arena::lend, and a task's reply that names the block. A small one's memory stays with its home.
void lend(process& me) {
  write(at::letter + running.self, name_of(me.descriptor, me.generation));
  const bool is_small = own_script() == script::lends_small;
  if (!is_small) me.has_run = 0;
  me.now = is_small ? pc::collect : pc::finished;
}

// slab::collect
void collect(process& me) {
  auto found = blocks().read(me.descriptor).owner;
  if (found.state != block_state::returned || found.owner != id_of(running.self)) return;
  publish(me.descriptor, found.generation, found.owner, block_state::cached);
  me.now = pc::finished;
}

// arena::share
void share(process& me) {
  const auto self = running.self;
  write(at::hold + self, adding);
  blocks()
      .at(me.descriptor)
      .home.store(static_cast<std::uint64_t>(participant_id::everybody), std::memory_order_relaxed);
  write(at::target, name_of(me.descriptor, me.generation));
  publish(me.descriptor, me.generation, participant_id::everybody, block_state::shared);
  write(at::holders, bit_of(self));
  write(at::hold + self, held);
  extents().share(id_of(self), me.descriptor, me.run());
  me.has_run = 0;
  me.now = pc::send;
}

// arena::send and arena::entrust, with the message in one step.
void send(process& me) {
  running.perform([&] {
    running.in->memory[at::holders] |= in_letter;
    return running.in->memory[at::letter + running.self] = name_of(me.descriptor, me.generation);
  });
  me.now = pc::drop;
}

// arena::receive
void receive(process& me) {
  const auto from = 1 - running.self;
  const block_ref received = block_ref::of_handle(running.perform([&] {
    auto& memory = running.in->memory;
    memory[at::hold + running.self] = held;
    memory[at::holders] = (memory[at::holders] & ~in_letter) | bit_of(running.self);
    return std::exchange(memory[at::letter + from], std::uint64_t{0});
  }));
  me.descriptor = static_cast<std::uint8_t>(received.descriptor);
  me.generation = static_cast<std::uint8_t>(received.generation);
  me.now = pc::drop;
}

std::uint64_t leave(std::uint64_t holder) {
  return running.perform([&] { return running.in->memory[at::holders] &= ~holder; });
}

// arena::drop_hold
void drop(process& me) {
  write(at::hold + running.self, dropping);
  me.now = leave(bit_of(running.self)) == 0 ? pc::take_over : pc::end_drop;
  me.then = pc::end_drop;
}

// arena::take_over, and arena::release_here, whose cache is trimmed at once. The caller says what comes then.
void take_over(process& me) {
  const auto found = blocks().read(me.descriptor);
  auto mine = found.owner;
  mine.owner = id_of(running.self);
  mine.state = block_state::live;
  const bool is_it = found.owner.state == block_state::shared && found.owner.generation == me.generation;
  if (!is_it || !blocks().change(me.descriptor, found.owner, mine)) {
    me.now = me.then;
    return;
  }
  const auto run = run_of(found);
  const bool whole = extents().shared_count(me.descriptor, run) == run.count;
  extents().unshare(me.descriptor, id_of(running.self), run);
  blocks().at(me.descriptor).home.store(static_cast<std::uint64_t>(id_of(running.self)), std::memory_order_relaxed);
  if (!whole) running.in->torn = 1;
  me.first = static_cast<std::uint8_t>(run.first);
  me.count = static_cast<std::uint8_t>(run.count);
  me.has_run = 1;
  me.now = pc::unbind;
}

void run_member(process& me) {
  switch (me.now) {
    case pc::claim: return claim(me);
    case pc::bind: return bind(me);
    case pc::give_back:
      me.has_run = 0;
      me.then = pc::finished;
      return release(me);
    case pc::go_live: return go_live(me);
    case pc::unbind: return unbind(me);
    case pc::release: return release(me);
    case pc::lend: return lend(me);
    case pc::collect: return collect(me);
    case pc::share: return share(me);
    case pc::send: return send(me);
    case pc::receive: return receive(me);
    case pc::drop: return drop(me);
    case pc::take_over: return take_over(me);
    case pc::end_drop:
      write(at::hold + running.self, none);
      me.now = pc::finished;
      return;
    default: return;
  }
}

// ---- the host

adopted_block* find_adopted(std::size_t which) {
  for (auto& each : running.in->adopted) {
    if (each.is_there != 0 && each.descriptor == which) return &each;
  }
  return nullptr;
}

// arena::adopt
void adopt(process& me) {
  auto& mine = running.in->adopted[me.victim];
  const auto ref = block_ref::of_handle(running.in->memory[at::letter + me.victim]);
  const bool is_known = find_adopted(ref.descriptor) != nullptr;
  const auto found = blocks().read(ref.descriptor);
  auto taken = found.owner;
  taken.owner = participant_id::host;
  const bool is_same = found.owner.generation == ref.generation || is_without(mutation::generation);
  const bool resolves = found.owner.state == block_state::live && is_same && is_within(found);
  me.now = pc::rest;
  if (is_known || !resolves || !blocks().change(ref.descriptor, found.owner, taken)) {
    ++mine.tries;
    return;
  }
  auto home = found.home;
  if (running.what->does[me.victim] != script::lends_small) {
    if (!is_without(mutation::transfer)) extents().transfer(found.home, participant_id::host, run_of(found));
    home = participant_id::host;
    blocks().at(ref.descriptor).home.store(static_cast<std::uint64_t>(home), std::memory_order_release);
  }
  mine = {.is_there = 1,
          .home = static_cast<std::uint8_t>(home),
          .first = static_cast<std::uint8_t>(found.offset),
          .count = static_cast<std::uint8_t>(found.capacity),
          .descriptor = static_cast<std::uint8_t>(ref.descriptor),
          .tries = static_cast<std::uint8_t>(mine.tries + 1),
          .times = static_cast<std::uint8_t>(mine.times + 1)};
}

// arena::release_live: home to a member that lives, else as arena::release_orphan
void free_adopted(process& me) {
  auto& mine = running.in->adopted[me.victim];
  if (mine.home != index_of(participant_id::host)) {
    const auto generation = block_ref::of_handle(running.in->memory[at::letter + me.victim]).generation;
    publish(mine.descriptor, generation, static_cast<participant_id>(mine.home), block_state::returned);
    mine.is_there = 0;
    me.now = pc::rest;
    return;
  }
  blocks().unbind(mine.descriptor);
  mine.is_there = 0;
  me.first = mine.first;
  me.count = mine.count;
  me.then = pc::rest;
  me.now = pc::release;
}

void take_over_shared(process& me, std::uint64_t name, pc then) {
  const auto ref = block_ref::of_handle(name);
  me.descriptor = static_cast<std::uint8_t>(ref.descriptor);
  me.generation = static_cast<std::uint8_t>(ref.generation);
  me.now = pc::take_over;
  me.then = then;
}

// queue_keeper::drop_message: nobody has received it
void drain(process& me) {
  write(at::letter + me.victim, 0);
  const auto name = running.in->memory[at::target];
  me.now = pc::rest;
  if (leave(in_letter) == 0) take_over_shared(me, name, pc::rest);
}

// arena::recover_shares, the first half
void recover_share(process& me) {
  if (me.cursor == running.what->blocks || is_without(mutation::give_first)) {
    me.cursor = 0;
    me.now = pc::recover_hold;
    return;
  }
  const auto found = blocks().read(me.cursor);
  if (found.owner.state == block_state::shared && is_within(found)) {
    extents().share(id_of(me.victim), me.cursor, run_of(found));
  }
  ++me.cursor;
}

// arena::recover_hold
void recover_hold(process& me) {
  const auto name = running.in->memory[at::target];
  const auto ref = block_ref::of_handle(name);
  me.now = pc::recover_blocks;
  if (read(at::hold + me.victim) == none) return;
  const auto found = blocks().read(ref.descriptor).owner;
  const bool is_shared = name != 0 && found.state == block_state::shared && found.generation == ref.generation;
  const bool is_last = is_shared && leave(bit_of(me.victim)) == 0;
  write(at::hold + me.victim, none);
  if (is_last) take_over_shared(me, name, pc::recover_blocks);
}

void recover_adopted(process& me, adopted_block& known) {
  if (is_without(mutation::orphans)) return;
  blocks().at(me.cursor).home.store(static_cast<std::uint64_t>(participant_id::host), std::memory_order_release);
  extents().transfer(id_of(me.victim), participant_id::host, known.run());
  known.home = static_cast<std::uint8_t>(participant_id::host);
}

// arena::recover_block
void recover_block(process& me) {
  const auto dead = id_of(me.victim);
  if (auto* const known = find_adopted(me.cursor)) {
    if (known->home == index_of(dead)) recover_adopted(me, *known);
    return;
  }
  const auto found = blocks().read(me.cursor);
  if (found.owner.owner != dead || found.owner.state == block_state::free) return;
  if (found.home == dead || found.owner.state != block_state::live) {
    if (is_without(mutation::owner) && is_within(found)) {
      for (auto each = found.offset; each < found.offset + found.capacity; ++each) write(at::extent + each, 0);
    }
    blocks().unbind(me.cursor);
  } else if (found.home == participant_id::everybody) {
    if (!is_without(mutation::taken_back)) extents().unshare(me.cursor, dead, run_of(found));
    blocks().unbind(me.cursor);
  } else {
    extents().transfer(dead, found.home, run_of(found));
    publish(me.cursor, found.owner.generation, found.home, block_state::returned);
  }
}

void recover_blocks(process& me) {
  if (me.cursor < running.what->blocks) {
    recover_block(me);
    ++me.cursor;
    return;
  }
  me.cursor = 0;
  me.now = pc::recover_extents;
}

// arena::recover_extents, and the end of a recovery
void recover_extents(process& me) {
  const auto dead = id_of(me.victim);
  auto all = extents();
  if (me.cursor < all.used_count()) {
    if (all.owner_of(me.cursor) == dead) all.release(dead, {me.cursor, 1});
    ++me.cursor;
    return;
  }
  me.cursor = 0;
  me.now = pc::recover_shares;
  if (++me.round < running.what->recoveries) return;
  me.round = 0;
  me.now = pc::rest;
  running.in->each[me.victim].dead = 2;
}

void run_host(process& me) {
  switch (me.now) {
    case pc::adopt: return adopt(me);
    case pc::free_adopted: return free_adopted(me);
    case pc::drain: return drain(me);
    case pc::take_over: return take_over(me);
    case pc::unbind: return unbind(me);
    case pc::release: return release(me);
    case pc::recover_shares: return recover_share(me);
    case pc::recover_hold: return recover_hold(me);
    case pc::recover_blocks: return recover_blocks(me);
    case pc::recover_extents: return recover_extents(me);
    default: return;
  }
}

// What a process at rest remembers makes no difference.
void tidy(process& me) {
  me.operations = 0;
  me.results = {};
  if (me.now == pc::rest || me.now == pc::finished || me.now == pc::claim) {
    me.victim = 0;
    me.cursor = 0;
    me.then = pc::rest;
    if (me.has_run == 0) me.first = me.count = me.descriptor = me.generation = 0;
  }
}

// One operation of one process.
void advance(world& now, const scenario& what, std::size_t self) {
  auto& me = now.each[self];
  const auto before = me;
  running.in = &now;
  running.what = &what;
  running.who = &me;
  running.self = self;
  running.position = 0;
  running.moved = false;
  if (setjmp(running.out) != 0) {  // it stands before its next operation: what it had computed is done again then
    const auto results = me.results;
    const auto operations = me.operations;
    me = before;
    me.results = results;
    me.operations = operations;
    return;
  }
  self == host ? run_host(me) : run_member(me);
  const bool drops = self != host && what.does[self] == script::drops;
  if (drops && me.now == pc::finished && ++me.round < what.rounds) me.now = pc::claim;
  tidy(me);
}

// ---- what must hold

extent_word word_of(const world& now, std::size_t extent) {
  return extent_word::unpack(now.memory[at::extent + extent]);
}

bool holds_shared(const world& now, std::size_t who) {
  return now.each[who].dead == 0 && now.memory[at::hold + who] == held;
}

bool is_held_by(const world& now, std::size_t extent, participant_id owner) {
  const auto found = word_of(now, extent);
  return found.state == extent_state::held && found.owner == owner;
}

// Whoever believes to have a run has every extent of it.
bool has_its_run(const world& now, std::size_t who) {
  const auto& each = now.each[who];
  if (each.dead != 0 || each.has_run == 0) return true;
  for (std::size_t extent = each.first; extent < std::size_t{each.first} + each.count; ++extent) {
    const bool is_given = each.now == pc::share && word_of(now, extent).state == extent_state::shared;
    if (!is_given && !is_held_by(now, extent, id_of(who))) return false;
  }
  return true;
}

bool has_what_it_adopted(const world& now, const adopted_block& which) {
  if (which.is_there == 0) return true;
  for (std::size_t extent = which.first; extent < std::size_t{which.first} + which.count; ++extent) {
    const bool is_home = is_held_by(now, extent, static_cast<participant_id>(which.home));
    if (!is_home && !is_held_by(now, extent, participant_id::host)) return false;
  }
  return true;
}

// What somebody holds is the block's, or still its sharer's, who has not given all of it yet.
bool is_shared_whole(const world& now, const scenario& what) {
  bool is_held = now.memory[at::holders] != 0 && (now.memory[at::holders] & in_letter) != 0;
  for (std::size_t who = 0; who < members; ++who) is_held = is_held || holds_shared(now, who);
  if (!is_held) return true;
  const auto ref = block_ref::of_handle(now.memory[at::target]);
  const auto* const words = &now.memory[at::block + 4 * ref.descriptor];
  const auto found = block_ownership::unpack(words[0]);
  if (found.state != block_state::shared || found.generation != ref.generation) return false;
  for (auto extent = words[1]; extent < words[1] + words[2]; ++extent) {
    const auto word = word_of(now, extent);
    const bool is_part = word.state == extent_state::shared && word.generation == ref.descriptor;
    const auto sharer = static_cast<std::size_t>(what.does[0] == script::shares ? 0 : 1);
    if (!is_part && !is_held_by(now, extent, id_of(sharer))) return false;
  }
  return true;
}

std::string find_wrong(const world& now, const scenario& what) {
  for (std::size_t who = 0; who <= members; ++who) {
    if (!has_its_run(now, who)) return "an extent was taken from one who has it";
  }
  for (const auto& each : now.adopted) {
    if (!has_what_it_adopted(now, each)) return "an extent was taken from a block that the host has adopted";
    if (each.times > 1) return "a block was adopted twice";
  }
  if (!is_shared_whole(now, what)) return "a shared block lost an extent while somebody holds it";
  return now.torn != 0 ? "a shared block was not whole when it was taken over" : "";
}

// Nobody can move any more: only a small block's memory is left, with its home.
std::string find_lost(const world& now, const scenario& what) {
  for (std::size_t extent = 0; extent < what.extents; ++extent) {
    const auto found = word_of(now, extent);
    if (found.state == extent_state::free) continue;
    const auto owner = index_of(found.owner) - 2;
    if (owner >= members || now.each[owner].dead != 0 || now.each[owner].has_run == 0) return "an extent is lost";
  }
  for (std::size_t index = 0; index < what.blocks; ++index) {
    const auto found = block_ownership::unpack(now.memory[at::block + 4 * index]);
    const auto owner = index_of(found.owner) - 2;
    const bool is_left = owner < members && now.each[owner].dead == 0 && now.each[owner].has_run != 0;
    if (found.state != block_state::free && !is_left) return "a descriptor is lost";
  }
  return now.claimed == 0 && now.deaths_left == what.deaths ? "nobody got a run although all was free" : "";
}

// ---- all of it

class exploration {
public:
  explicit exploration(const scenario& what) : what_(what) {
    world first;
    first.deaths_left = what.deaths;
    first.each[host].now = pc::rest;
    for (std::size_t who = 0; who < members; ++who) {
      if (what.does[who] == script::takes) first.each[who].now = pc::receive;
    }
    open_.push_back(first);
  }

  std::string run() {
    while (!open_.empty()) {
      const auto now = open_.back();
      open_.pop_back();
      const auto hash = XXH3_128bits(&now, sizeof now);
      if (!seen_.insert({hash.low64, hash.high64}).second) continue;
      if (auto wrong = find_wrong(now, what_); !wrong.empty()) return wrong;
      if (follow(now)) continue;
      if (auto lost = find_lost(now, what_); !lost.empty()) return lost;
    }
    return {};
  }
  [[nodiscard]] std::size_t states() const { return seen_.size(); }

private:
  struct hash_of {
    std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& of) const { return of.first; }
  };

  // False when nobody can move; a death is no move.
  bool follow(const world& now) {
    bool any = false;
    for (std::size_t who = 0; who < members; ++who) {
      const auto& each = now.each[who];
      if (each.dead != 0) continue;
      if (now.deaths_left > 0 && (each.now != pc::finished || each.has_run != 0)) die(now, who);
      if (!can_move(now, who)) continue;
      step(now, who);
      any = true;
    }
    return follow_host(now) || any;
  }

  void die(const world& now, std::size_t who) {
    auto died = now;
    --died.deaths_left;
    auto& dead = died.each[who];
    dead = {};
    dead.dead = 1;
    dead.now = pc::finished;
    open_.push_back(died);
  }

  [[nodiscard]] bool can_move(const world& now, std::size_t who) const {
    const auto& each = now.each[who];
    if (each.now == pc::receive && each.operations == 0) return now.memory[at::letter + 1 - who] != 0;
    if (each.now != pc::collect || each.operations != 0) return each.now != pc::finished && each.now != pc::receive;
    const auto found = block_ownership::unpack(now.memory[at::block + 4 * each.descriptor]);
    return found.state == block_state::returned && found.owner == id_of(who);
  }

  void step(const world& now, std::size_t who) {
    auto next = now;
    advance(next, what_, who);
    open_.push_back(next);
  }

  bool follow_host(const world& now) {
    if (now.each[host].now != pc::rest) {
      step(now, host);
      return true;
    }
    bool any = false;
    const auto begin = [&](pc what, std::size_t with) {
      auto next = now;
      next.each[host].now = what;
      next.each[host].victim = static_cast<std::uint8_t>(with);
      open_.push_back(next);
      any = true;
    };
    for (std::size_t who = 0; who < members; ++who) {
      const bool lends = what_.does[who] == script::lends || what_.does[who] == script::lends_small;
      const bool has_letter = now.memory[at::letter + who] != 0;
      if (now.each[who].dead == 1) begin(pc::recover_shares, who);
      if (lends && has_letter && now.adopted[who].tries < 2) begin(pc::adopt, who);
      if (now.adopted[who].is_there != 0) begin(pc::free_adopted, who);
      if (what_.does[who] == script::shares && has_letter && now.each[1 - who].dead == 2) begin(pc::drain, who);
    }
    return any;
  }

  const scenario what_;
  std::vector<world> open_;
  std::unordered_set<std::pair<std::uint64_t, std::uint64_t>, hash_of> seen_;
};

std::string explore(const scenario& what) {
  exploration all(what);
  auto found = all.run();
  constexpr std::array names = {"drops", "lends", "lends a small one", "shares", "takes"};
  std::printf(
      "one %s, one %s, %zu of %zu extents, %zu descriptors, %u rounds, %u deaths, %u recoveries: %zu states: %s\n",
      names[static_cast<std::size_t>(what.does[0])], names[static_cast<std::size_t>(what.does[1])], what.wants,
      what.extents, what.blocks, what.rounds, what.deaths, what.recoveries, all.states(),
      found.empty() ? "right" : found.c_str());
  return found;
}

TEST(ExtentModel, NoExtentIsOwnedTwiceOrLostWhoeverDiesWhenever) {
  EXPECT_EQ(explore({.deaths = 0}), "");
  EXPECT_EQ(explore({.deaths = 2}), "");
  EXPECT_EQ(explore({.deaths = 2, .blocks = 1, .wants = 1}), "");
  EXPECT_EQ(explore({.deaths = 1, .rounds = 2}), "");
  EXPECT_EQ(explore({.deaths = 1, .wants = 1, .rounds = 2}), "");
}

TEST(ExtentModel, WhatIsLentIsAdoptedOnceAndFreedOnce) {
  EXPECT_EQ(explore({.does = {script::lends, script::drops}}), "");
  EXPECT_EQ(explore({.does = {script::lends_small, script::drops}}), "");
  EXPECT_EQ(explore({.does = {script::lends, script::lends_small}}), "");
  EXPECT_EQ(explore({.does = {script::lends, script::drops}, .deaths = 1, .rounds = 2}), "");
  EXPECT_EQ(explore({.does = {script::lends, script::lends}, .blocks = 1, .wants = 1}), "");
}

TEST(ExtentModel, WhatIsSharedIsWholeUntilItsLastHolderHasFreedIt) {
  EXPECT_EQ(explore({.does = {script::shares, script::takes}}), "");
}

TEST(ExtentModel, ARecoveryThatIsRepeatedChangesNothing) {
  EXPECT_EQ(explore({.deaths = 1, .recoveries = 2}), "");
  EXPECT_EQ(explore({.does = {script::lends, script::drops}, .deaths = 1, .recoveries = 2}), "");
  EXPECT_EQ(explore({.does = {script::lends_small, script::drops}, .deaths = 1, .recoveries = 2}), "");
  EXPECT_EQ(explore({.does = {script::shares, script::takes}, .recoveries = 2}), "");
}

TEST(ExtentModelMutation, WhateverIsLeftOutIsMissed) {
  EXPECT_NE(explore({.deaths = 0, .without = mutation::claim_at_once}), "");
  EXPECT_NE(explore({.deaths = 1, .without = mutation::mark}), "");
  EXPECT_NE(explore({.deaths = 1, .wants = 1, .rounds = 2, .without = mutation::owner}), "");
  EXPECT_NE(explore({.does = {script::lends, script::drops}, .deaths = 0, .without = mutation::transfer}), "");
  EXPECT_NE(explore({.does = {script::shares, script::takes}, .deaths = 1, .without = mutation::give_first}), "");
  EXPECT_NE(explore({.does = {script::shares, script::takes}, .deaths = 1, .without = mutation::taken_back}), "");
  EXPECT_NE(explore({.does = {script::lends_small, script::drops}, .deaths = 1, .without = mutation::orphans}), "");
  EXPECT_NE(explore({.does = {script::lends, script::lends}, .blocks = 1, .wants = 1, .without = mutation::generation}),
            "");
}

}  // namespace
}  // namespace muster::extent_model_test
