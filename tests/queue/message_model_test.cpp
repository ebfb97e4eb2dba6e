// SPDX-License-Identifier: BSL-1.0
// Everything that can happen in a small queue: producers and consumers that sleep and are woken, any of whom may be
// killed before any operation on shared memory, the host that recovers them, and the end. What touches cells and wait
// words is the product's source; how message_ring puts the steps together is repeated here. Memory is sequentially
// consistent.
#include <xxhash.h>

#include <array>
#include <csetjmp>
#include <cstdio>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

#include <muster/memory/detail/wait/wait_protocol.hpp>
#include <muster/queue/message_protocol.hpp>

namespace muster::message_model_test {
namespace {

constexpr std::size_t most_members = 4;  // besides the host
constexpr std::size_t host = most_members;
constexpr std::size_t most_cells = 2;
constexpr std::size_t most_operations = 28;  // of one process from one checkpoint to the next

using finding = message_protocol::look::finding;

namespace at {
constexpr std::size_t cell = 0;
constexpr std::size_t payload = cell + most_cells;
constexpr std::size_t head = payload + most_cells;
constexpr std::size_t tail = head + 1;
constexpr std::size_t items = tail + 1;
constexpr std::size_t space = items + 1;
constexpr std::size_t closed = space + 1;
constexpr std::size_t deaths = closed + 1;
constexpr std::size_t end = deaths + 1;
}  // namespace at

// What is left out, to see that it is missed.
enum class mutation : std::uint8_t {
  none,
  wake_next,          // the wake for what is still there
  second_look,        // before sleeping
  deaths,             // as a word to sleep on
  closed_twice,       // the producer's look behind the claim
  raise,              // the wake changes no word
  withdraw_compares,  // whoever finds nobody asleep clears the bit, whatever has happened since
  end_wakes,          // the wake of those who wait for a closed queue's last message
  recovery
};

struct scenario {
  std::size_t producers = 2;
  std::size_t consumers = 1;
  std::size_t capacity = 1;
  std::uint8_t messages = 1;  // of each producer
  std::uint8_t deaths = 0;
  bool closes_early = false;  // at any time; else when nobody can move
  bool puts_back = false;     // each consumer its first message
  std::uint8_t takes = 0;     // each consumer so many messages; 0: until the end
  mutation without = mutation::none;

  [[nodiscard]] std::size_t members() const { return producers + consumers; }
  [[nodiscard]] bool is_producer(std::size_t who) const { return who < producers; }
};

enum class pc : std::uint8_t {
  attempt,
  claim,
  recheck,  // whether the queue was closed meanwhile
  publish,
  release,
  note_other,   // whether somebody waits for what this one has made possible
  note_closed,  // whether somebody waits for the end
  close_raise,
  close_wake,
  note_own,  // whether somebody waits for what this one has left over
  look_own,
  raise,
  wake,
  withdraw,
  see_deaths,
  announce,
  last_attempt,
  last_claim,
  sleep,
  asleep,
  finished,
  // of the host
  rest,
  recover,
  count_death,
  wake_all,
  close,
  raise_items,
  wake_items,
  raise_space,
  wake_space
};

struct process {
  pc now = pc::attempt;
  pc then = pc::attempt;  // after a wake
  std::uint8_t dead = 0;  // 2: recovered
  std::uint8_t operations = 0;
  std::uint8_t messages = 0;  // pushed
  std::uint8_t put_back = 0;
  std::uint8_t left = 0;   // the message it had claimed: by an abandoned claim, or put back
  std::uint8_t which = 0;  // the wait word it is about to wake
  std::uint8_t cursor = 0;
  std::uint8_t victim = 0;
  std::uint8_t ends = 0;  // it has found the queue closed
  std::array<std::uint8_t, 5> padding{};
  std::uint32_t announced = 0;
  std::uint32_t raised = 0;
  std::uint32_t died = 0;
  std::uint32_t got = 0;
  std::uint64_t position = 0;
  std::array<std::uint64_t, most_operations> results{};
};

struct world {
  std::array<std::uint64_t, at::end> memory{};
  std::array<process, most_members + 1> each{};
  std::uint16_t published = 0;
  std::uint16_t delivered = 0;
  std::array<std::uint8_t, most_members> last{};  // of each producer, the latest that was delivered
  std::uint8_t deaths_left = 0;
  std::uint8_t is_closing = 0;
  std::uint8_t wrong = 0;
  std::array<std::uint8_t, 5> padding{};
};
static_assert(std::has_unique_object_representations_v<world>);

enum wrongs : std::uint8_t { doubled = 1, out_of_order = 2, torn = 4, from_nowhere = 8 };

// One process's body is run again from its checkpoint with the results of its operations so far, up to the next.
constexpr int go_on_later = 1;
constexpr int begin_anew = 2;

struct replay {
  world* in = nullptr;
  const scenario* what = nullptr;
  process* who = nullptr;
  std::size_t self = 0;
  std::size_t position = 0;
  std::size_t choice = 0;  // whom a wake wakes
  bool chose = false;      // there was a choice
  bool moved = false;
  unsigned looks = 0;  // at head or tail
  std::jmp_buf out{};

  template <class F>
  std::uint64_t perform(F operation) {
    if (position < who->operations) return who->results[position++];
    if (moved) std::longjmp(out, go_on_later);
    moved = true;
    return note(operation);
  }

  // What nobody else can see is no step of its own.
  template <class F>
  std::uint64_t perform_unseen(F operation) {
    if (position < who->operations) return who->results[position++];
    return note(operation);
  }

private:
  template <class F>
  std::uint64_t note(F operation) {
    who->results[position++] = operation();
    who->operations = static_cast<std::uint8_t>(position);
    if (position == most_operations) std::abort();
    return who->results[position - 1];
  }
};
replay running;  // one at a time

participant_id id_of(std::size_t who) { return static_cast<participant_id>(who + 2); }
unsigned bit_of(std::size_t message) { return 1U << message; }

// What an exchange of a cell's word means.
void note_change(std::size_t index, std::uint64_t before, std::uint64_t after) {
  auto& now = *running.in;
  const message_word was(before);
  const message_word is(after);
  const auto message = now.memory[at::payload + index];
  if (was.state() == message_state::writing && is.state() == message_state::ready) {
    now.published = static_cast<std::uint16_t>(now.published | bit_of(message));
  }
  if (was.state() != message_state::reading || is.state() != message_state::empty) return;
  if (message != running.who->got) now.wrong |= torn;
  if ((now.published & bit_of(message)) == 0) now.wrong |= from_nowhere;
  if ((now.delivered & bit_of(message)) != 0) now.wrong |= doubled;
  now.delivered = static_cast<std::uint16_t>(now.delivered | bit_of(message));
  running.who->got = 0;
  auto& last = now.last[message / 4];
  const auto count = static_cast<std::uint8_t>(message % 4 + 1);
  if (running.what->consumers == 1 && count <= last) now.wrong |= out_of_order;
  last = count;
}

struct word {
  std::size_t index;

  [[nodiscard]] std::uint64_t load(std::memory_order) const {
    return running.perform([this] { return value(); });
  }
  std::uint64_t exchange(std::uint64_t desired, std::memory_order) const {
    return running.perform([&] {
      const auto before = value();
      if (index < at::payload) note_change(index, before, desired);
      value() = desired;
      return before;
    });
  }
  bool compare_exchange_strong(std::uint64_t& expected, std::uint64_t desired, std::memory_order) const {
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

// Of 32 bits. The look before an announcement is no step: it is repeated until nothing has come between.
struct wait_word {
  std::size_t index;

  [[nodiscard]] std::uint32_t load(std::memory_order order) const {
    if (order == std::memory_order_relaxed) return static_cast<std::uint32_t>(value());
    return static_cast<std::uint32_t>(running.perform([this] { return value(); }));
  }
  std::uint32_t fetch_add(std::uint32_t by, std::memory_order) const {
    return static_cast<std::uint32_t>(running.perform([&] {
      const auto before = value();
      value() = static_cast<std::uint32_t>(before + by);
      return before;
    }));
  }
  bool compare_exchange_weak(std::uint32_t& expected, std::uint32_t desired, std::memory_order,
                             std::memory_order) const {
    return compare_exchange_strong(expected, desired, std::memory_order_seq_cst);
  }
  bool compare_exchange_strong(std::uint32_t& expected, std::uint32_t desired, std::memory_order) const {
    const auto wanted = expected;
    expected = static_cast<std::uint32_t>(running.perform([&] {
      const auto found = value();
      if (found == wanted) value() = desired;
      return found;
    }));
    return expected == wanted;
  }
  [[nodiscard]] std::uint64_t& value() const { return running.in->memory[index]; }
};

struct model_ring {
  [[nodiscard]] std::size_t capacity() const { return running.what->capacity; }
  [[nodiscard]] word cell(std::size_t index) const { return {at::cell + index}; }
  [[nodiscard]] ring_position head() const { return hint(at::head); }
  [[nodiscard]] ring_position tail() const { return hint(at::tail); }
  void pass_head(ring_position at) const { pass(at::head, at); }
  void pass_tail(ring_position at) const { pass(at::tail, at); }

private:
  // Only one producer looks at the tail, only one consumer at the head; but a producer that gives up moves the head.
  static bool is_unseen(std::size_t which) {
    const auto& what = *running.what;
    return which == at::tail ? what.producers == 1 : what.consumers == 1 && !what.closes_early;
  }
  // Whoever looks at a hint again begins anew: what he has seen before makes no difference any more.
  static ring_position hint(std::size_t which) {
    if (running.looks++ > 0 && running.moved) std::longjmp(running.out, begin_anew);
    const auto read = [which] { return running.in->memory[which]; };
    return ring_position(is_unseen(which) ? running.perform_unseen(read) : running.perform(read));
  }
  void pass(std::size_t which, ring_position at) const {
    const auto move = [&] {
      auto& hint = running.in->memory[which];
      const auto found = hint;
      if (found == at.bits()) hint = at.next(capacity()).bits();
      return found;
    };
    is_unseen(which) ? running.perform_unseen(move) : running.perform(move);
  }
};

bool is_without(mutation what) { return running.what->without == what; }

// Who sleeps on a word, those who are dead and not yet recovered included: a wake may still go to them.
std::vector<std::size_t> sleepers_on(const world& now, const scenario& what, std::size_t which) {
  std::vector<std::size_t> found;
  for (std::size_t who = 0; who < what.members(); ++who) {
    const bool waits = which == at::deaths || what.is_producer(who) == (which == at::space);
    if (now.each[who].now == pc::asleep && now.each[who].dead != 2 && waits) found.push_back(who);
  }
  return found;
}

std::uint64_t wake_one(std::size_t which) {
  return running.perform([&]() -> std::uint64_t {
    const auto all = sleepers_on(*running.in, *running.what, which);
    running.chose = all.size() > 1;
    if (all.empty()) return 0;
    running.in->each[all[running.choice % all.size()]].now = pc::attempt;
    return 1;
  });
}

void wake_all(std::size_t which) {
  running.perform([&] {
    for (const auto who : sleepers_on(*running.in, *running.what, which)) running.in->each[who].now = pc::attempt;
    return std::uint64_t{0};
  });
}

std::uint32_t raise(std::size_t which) {
  wait_word target{which};
  return wait_protocol::raise(target);
}

// A step only where it can change meanwhile.
bool is_closed() {
  const word closed{at::closed};
  return (running.what->closes_early ? closed.load(std::memory_order_seq_cst) : closed.value()) != 0;
}

// As message_ring::try_push, up to the claim.
void claim_to_push(process& me, pc if_not_now) {
  const model_ring ring;
  const auto found = message_protocol::claim_empty(ring, id_of(running.self));
  if (!found) {
    me.now = if_not_now;
    return;
  }
  me.position = found->bits();
  me.now = running.what->closes_early && !is_without(mutation::closed_twice) ? pc::recheck : pc::publish;
}

// As message_ring::try_claim.
void claim_to_take(process& me, pc if_not_now) {
  const model_ring ring;
  const auto found = message_protocol::claim_ready(ring, id_of(running.self));
  if (found.what == finding::ready) {
    me.position = found.at.bits();
    me.now = pc::note_own;
    me.then = pc::release;
  } else {
    me.now = me.ends != 0 && found.what == finding::nothing ? pc::finished : if_not_now;
  }
}

bool is_producer() { return running.what->is_producer(running.self); }

void claim(process& me, pc if_not_now) {
  is_producer() ? claim_to_push(me, if_not_now) : claim_to_take(me, if_not_now);
  me.ends = 0;
  if (me.now == pc::sleep || if_not_now != pc::sleep) return;
  me.announced = 0;
  me.died = 0;
}

void attempt(process& me, pc next, pc if_not_now) {
  me.ends = is_closed() ? 1 : 0;
  if (is_producer() && me.ends != 0) {
    me.now = pc::finished;
    me.announced = 0;
    me.died = 0;
    me.ends = 0;
  } else if (running.what->closes_early) {
    me.now = next;
  } else {
    claim(me, if_not_now);
  }
}

std::size_t own_word() { return is_producer() ? at::space : at::items; }
std::size_t other_word() { return is_producer() ? at::items : at::space; }

// The next of its messages, or the next message.
void go_on(process& me) {
  if (is_producer() && me.left == 0) ++me.messages;
  if (!is_producer() && running.what->takes != 0) ++me.messages;
  const bool ended = is_producer() ? me.left != 0 || me.messages == running.what->messages
                                   : me.messages != 0 && me.messages == running.what->takes;
  me.now = ended ? pc::finished : pc::attempt;
  me.left = 0;
  me.position = 0;
  me.got = 0;
}

// What is in a cell is nobody else's affair while it is written or read, so this is no step.
void write(const process& me, std::size_t index) {
  const message_word found(running.in->memory[at::cell + index]);
  if (found.owner() != id_of(running.self)) running.in->wrong |= torn;
  running.in->memory[at::payload + index] = running.self * 4 + me.messages;
}

// Makes its cell empty or ready again. An abandoned claim frees a cell as a consumer does.
void release(process& me) {
  const model_ring ring;
  const ring_position position(me.position);
  me.got = static_cast<std::uint32_t>(running.in->memory[at::payload + position.index()]);
  if (running.what->puts_back && !is_producer() && me.put_back == 0) {
    message_protocol::make_ready(ring, position);
    me.put_back = 1;
    me.left = 1;
  } else {
    message_protocol::make_empty(ring, position);
  }
  me.now = pc::note_other;
}

void run_member(process& me) {
  const model_ring ring;
  const auto index = ring_position(me.position).index();
  switch (me.now) {
    case pc::attempt: return attempt(me, pc::claim, pc::see_deaths);
    case pc::claim: return claim(me, pc::see_deaths);
    case pc::last_attempt: return attempt(me, pc::last_claim, pc::sleep);
    case pc::last_claim: return claim(me, pc::sleep);
    case pc::recheck: {
      const bool ends = is_closed();
      me.left = ends ? 1 : 0;
      me.now = ends ? pc::release : pc::publish;
      return;
    }
    case pc::publish:
      write(me, index);
      message_protocol::make_ready(ring, ring_position(me.position));
      me.now = pc::note_other;
      me.position = 0;
      return;
    case pc::release: return release(me);
    case pc::note_other: {
      const bool put_back = !is_producer() && me.left != 0;
      const bool abandoned = is_producer() && me.left != 0;
      const auto which = put_back ? at::items : abandoned ? at::space : other_word();
      me.which = static_cast<std::uint8_t>(which);
      me.then = is_producer() && !abandoned ? pc::note_own : put_back ? pc::attempt : pc::note_closed;
      if (put_back) {
        me.left = 0;
        me.position = 0;
        me.got = 0;
      }
      me.now = wait_protocol::is_awaited(wait_word{which}) ? pc::raise : me.then;
      return;
    }
    case pc::note_closed:
      if (is_closed() && !is_without(mutation::end_wakes)) {
        me.now = pc::close_raise;
      } else {
        go_on(me);
      }
      return;
    case pc::close_raise:
      raise(at::items);
      me.now = pc::close_wake;
      return;
    case pc::close_wake:
      wake_all(at::items);
      go_on(me);
      return;
    case pc::note_own: {
      const bool waits = wait_protocol::is_awaited(wait_word{own_word()}) && !is_without(mutation::wake_next);
      me.which = static_cast<std::uint8_t>(own_word());
      me.then = is_producer() ? pc::finished : pc::release;
      if (waits) {
        me.now = pc::look_own;
      } else if (is_producer()) {
        go_on(me);
      } else {
        me.now = pc::release;
      }
      return;
    }
    case pc::look_own: {
      const bool more = is_producer() ? message_protocol::find_empty(ring).has_value()
                                      : message_protocol::find_ready(ring, id_of(running.self)).what == finding::ready;
      if (more) {
        me.now = pc::raise;
      } else if (is_producer()) {
        go_on(me);
      } else {
        me.now = pc::release;
      }
      return;
    }
    case pc::raise:
      if (is_without(mutation::raise)) {
        me.raised = wait_word{me.which}.load(std::memory_order_seq_cst);
      } else {
        me.raised = raise(me.which);
      }
      me.now = pc::wake;
      return;
    case pc::wake:
      if (wake_one(me.which) == 0) {
        me.now = pc::withdraw;
        return;
      }
      me.raised = 0;
      me.now = me.then;
      if (me.then == pc::finished) go_on(me);
      return;
    case pc::withdraw:
      if (is_without(mutation::withdraw_compares)) {
        running.perform([&] { return wait_word{me.which}.value() &= ~std::uint64_t{1}; });
      } else {
        wait_word target{me.which};
        wait_protocol::withdraw(target, me.raised);
      }
      me.raised = 0;
      me.now = me.then;
      if (me.then == pc::finished) go_on(me);
      return;
    case pc::see_deaths:
      me.died = static_cast<std::uint32_t>(running.perform([] { return running.in->memory[at::deaths]; }));
      me.now = pc::announce;
      return;
    case pc::announce: {
      wait_word target{own_word()};
      me.announced = wait_protocol::announce(target);
      me.now = is_without(mutation::second_look) ? pc::sleep : pc::last_attempt;
      return;
    }
    case pc::sleep:
      running.perform([&] {
        const bool same = running.in->memory[own_word()] == me.announced;
        const bool alive = running.in->memory[at::deaths] == me.died || is_without(mutation::deaths);
        me.now = same && alive ? pc::asleep : pc::attempt;
        return std::uint64_t{0};
      });
      me.announced = 0;
      me.died = 0;
      return;
    default: return;
  }
}

void run_host(process& me) {
  const model_ring ring;
  switch (me.now) {
    case pc::recover:
      if (!is_without(mutation::recovery)) {
        auto cell = ring.cell(me.cursor);
        message_protocol::recover(cell, id_of(me.victim));
      }
      if (++me.cursor == ring.capacity()) me.now = pc::count_death;
      return;
    case pc::count_death:
      running.perform([] { return ++running.in->memory[at::deaths]; });
      me.now = pc::wake_all;
      return;
    case pc::wake_all:
      if (is_without(mutation::deaths)) {
        static_cast<void>(word{at::deaths}.load(std::memory_order_relaxed));
      } else {
        wake_all(at::deaths);
      }
      running.in->each[me.victim].dead = 2;
      running.in->each[me.victim].now = pc::finished;
      me.now = pc::rest;
      me.cursor = 0;
      me.victim = 0;
      return;
    case pc::close:
      word{at::closed}.exchange(1, std::memory_order_seq_cst);
      me.now = pc::raise_items;
      return;
    case pc::raise_items:
      raise(at::items);
      me.now = pc::wake_items;
      return;
    case pc::wake_items:
      wake_all(at::items);
      me.now = pc::raise_space;
      return;
    case pc::raise_space:
      raise(at::space);
      me.now = pc::wake_space;
      return;
    case pc::wake_space:
      wake_all(at::space);
      me.now = pc::rest;
      return;
    default: return;
  }
}

// One operation of one process; false when it has nothing to do.
bool advance(world& now, const scenario& what, std::size_t self, std::size_t choice) {
  auto& me = now.each[self];
  const auto before = me;
  running.in = &now;
  running.what = &what;
  running.who = &me;
  running.self = self;
  running.position = 0;
  running.choice = choice;
  running.chose = false;
  running.moved = false;
  running.looks = 0;
  const int left = setjmp(running.out);
  if (left == begin_anew) {
    me = before;
    me.operations = 0;
    me.results = {};
    return true;
  }
  if (left == go_on_later) {  // it stands before its next operation: what it had computed is done again then
    const auto results = me.results;
    const auto operations = me.operations;
    me = before;
    me.results = results;
    me.operations = operations;
    return true;
  }
  self == host ? run_host(me) : run_member(me);
  me.operations = 0;
  me.results = {};
  return running.moved || me.now != before.now;
}

// Numbers of wakes are only compared with the present ones, and what lies in an empty cell is of no interest.
world canonical(world now, const scenario& what) {
  for (const auto which : {at::items, at::space}) {
    const auto present = static_cast<std::uint32_t>(now.memory[which]);
    const auto same = 8U | (present & 1U);
    for (std::size_t who = 0; who < what.members(); ++who) {
      auto& each = now.each[who];
      const auto own = what.is_producer(who) ? at::space : at::items;
      if (own == which && each.announced != 0) each.announced = each.announced == present ? same : 2;
      if (each.which == which && each.raised != 0) each.raised = each.raised == present ? same : 2;
    }
    now.memory[which] = same;
  }
  for (std::size_t index = 0; index < what.capacity; ++index) {
    if (message_word(now.memory[at::cell + index]).state() == message_state::empty) now.memory[at::payload + index] = 0;
  }
  return now;
}

constexpr std::uint64_t owner_mask = 0xffff00;

// Words of cells name their owner in bits that nothing else uses.
void exchange_owners(std::uint64_t& bits, std::size_t one, std::size_t other) {
  const auto owner = bits & owner_mask;
  const auto of = [](std::size_t who) { return std::uint64_t{static_cast<std::uint16_t>(id_of(who))} << 8U; };
  if (owner == of(one)) bits = (bits & ~owner_mask) | of(other);
  if (owner == of(other)) bits = (bits & ~owner_mask) | of(one);
}

// The same with two processes in each other's place.
world exchange_members(world now, std::size_t one, std::size_t other) {
  std::swap(now.each[one], now.each[other]);
  for (std::size_t index = 0; index < most_cells; ++index) exchange_owners(now.memory[at::cell + index], one, other);
  for (auto& each : now.each) {
    for (auto& result : each.results) exchange_owners(result, one, other);
  }
  auto& recovered = now.each[host].victim;
  if (now.each[host].now != pc::rest && (recovered == one || recovered == other)) {
    recovered = static_cast<std::uint8_t>(one + other - recovered);
  }
  return now;
}

// Two producers, whose messages have their names.
world exchange_producers(const world& before) {
  auto now = exchange_members(before, 0, 1);
  const auto other = [](std::uint64_t message) { return message ^ 4U; };
  const auto bits = [](unsigned of) { return static_cast<std::uint16_t>((of >> 4U & 0xfU) | (of & 0xfU) << 4U); };
  for (std::size_t index = 0; index < most_cells; ++index) {
    const auto state = message_word(now.memory[at::cell + index]).state();
    auto& payload = now.memory[at::payload + index];
    if (state != message_state::empty) payload = other(payload);
  }
  now.published = bits(now.published);
  now.delivered = bits(now.delivered);
  std::swap(now.last[0], now.last[1]);
  return now;
}

// The ring as one state has it.
struct still_ring {
  struct still_word {
    std::uint64_t bits;
    [[nodiscard]] std::uint64_t load(std::memory_order) const { return bits; }
  };
  const world& now;
  const scenario& what;

  [[nodiscard]] std::size_t capacity() const { return what.capacity; }
  [[nodiscard]] still_word cell(std::size_t index) const { return {now.memory[at::cell + index]}; }
  [[nodiscard]] ring_position head() const { return ring_position(now.memory[at::head]); }
  [[nodiscard]] ring_position tail() const { return ring_position(now.memory[at::tail]); }
};

class exploration {
public:
  explicit exploration(const scenario& what) : what_(what) {
    world first;
    first.deaths_left = what.deaths;
    first.each[host].now = pc::rest;
    for (std::size_t who = what.members(); who < most_members; ++who) first.each[who].now = pc::finished;
    open_.push_back(first);
  }

  std::string run() {
    while (!open_.empty()) {
      const auto now = open_.back();
      open_.pop_back();
      if (!seen_.insert(fingerprint_of(canonical(now, what_))).second) continue;
      if ((now.wrong & doubled) != 0) return "a message was delivered twice";
      if ((now.wrong & out_of_order) != 0) return "a message overtook another";
      if ((now.wrong & torn) != 0) return "a cell was written by one who did not have it";
      if ((now.wrong & from_nowhere) != 0) return "a message was delivered that was not pushed";
      const still_ring ring{now, what_};
      if (message_protocol::find_damage_at_tail(ring)) return "what is right at the tail is taken for damage";
      if (message_protocol::find_damage_at_head(ring)) return "what is right at the head is taken for damage";
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
  // Which of two that do the same does what is of no interest.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> fingerprint_of(const world& of) const {
    auto least = fingerprint(of);
    const auto first = what_.producers;
    if (what_.consumers == 2) least = std::min(least, fingerprint(exchange_members(of, first, first + 1)));
    if (what_.producers == 2) {
      const auto exchanged = exchange_producers(of);
      least = std::min(least, fingerprint(exchanged));
      if (what_.consumers == 2) least = std::min(least, fingerprint(exchange_members(exchanged, first, first + 1)));
    }
    return least;
  }
  static std::pair<std::uint64_t, std::uint64_t> fingerprint(const world& of) {
    const auto hash = XXH3_128bits(&of, sizeof of);
    return {hash.low64, hash.high64};
  }

  // False when nobody can move.
  bool follow(const world& now) {
    bool any = false;
    for (std::size_t who = 0; who < what_.members(); ++who) {
      const auto& each = now.each[who];
      if (each.dead != 0 || each.now == pc::finished) continue;
      if (now.deaths_left > 0) {
        auto died = now;
        --died.deaths_left;
        died.each[who].dead = 1;
        died.each[who].operations = 0;
        died.each[who].results = {};
        open_.push_back(died);
      }
      if (each.now == pc::asleep) continue;
      any = true;
      step(now, who);
    }
    return follow_host(now) || any;
  }

  void step(const world& now, std::size_t who) {
    for (std::size_t choice = 0; choice < most_members; ++choice) {
      auto next = now;
      advance(next, what_, who, choice);
      open_.push_back(next);
      if (!running.chose) return;
    }
  }

  bool follow_host(const world& now) {
    if (now.each[host].now != pc::rest) {
      step(now, host);
      return true;
    }
    bool any = false;
    for (std::size_t who = 0; who < what_.members(); ++who) {
      if (now.each[who].dead != 1) continue;
      auto next = now;
      next.each[host].now = pc::recover;
      next.each[host].victim = static_cast<std::uint8_t>(who);
      open_.push_back(next);
      any = true;
    }
    if (what_.closes_early && now.is_closing == 0) close(now);
    return any;
  }

  void close(const world& now) {
    auto next = now;
    next.is_closing = 1;
    next.each[host].now = pc::close;
    open_.push_back(next);
  }

  // Nobody moves, the dead are recovered: nobody may sleep who could do something.
  std::string judge(const world& now) {
    std::size_t ready = 0;
    for (std::size_t index = 0; index < what_.capacity; ++index) {
      const auto state = message_word(now.memory[at::cell + index]).state();
      if (state == message_state::ready) ++ready;
      if (state == message_state::writing || state == message_state::reading) return "a cell is nobody's";
    }
    bool has_consumer = false;
    for (std::size_t who = 0; who < what_.members(); ++who) {
      const bool sleeps = now.each[who].now == pc::asleep;
      if (now.each[who].dead == 0 && !what_.is_producer(who)) has_consumer = true;
      if (sleeps && !what_.is_producer(who) && ready > 0) return "a consumer sleeps although there is a message";
      if (sleeps && what_.is_producer(who) && ready < what_.capacity) return "a producer sleeps although there is room";
      if (sleeps && now.is_closing != 0) return "somebody sleeps although the queue is closed";
    }
    if (now.is_closing == 0) {
      close(now);
      return {};
    }
    if (what_.takes != 0) return {};
    if (has_consumer && ready > 0) return "a message is left in a closed queue";
    if (has_consumer && now.published != now.delivered) return "a message is lost";
    return {};
  }

  const scenario what_;
  std::vector<world> open_;
  std::unordered_set<std::pair<std::uint64_t, std::uint64_t>, hash_of> seen_;
};

std::string explore(const scenario& what) {
  exploration all(what);
  auto found = all.run();
  std::printf("%s%s%zu producers, %zu consumers, %zu cells, %u messages each, %u deaths: %zu states: %s\n",
              what.closes_early ? "closed early, " : "", what.puts_back ? "put back, " : "", what.producers,
              what.consumers, what.capacity, what.messages, what.deaths, all.states(),
              found.empty() ? "right" : found.c_str());
  return found;
}

TEST(MessageModel, NobodySleepsThroughWhatHeWaitsForAndNothingIsLost) {
  EXPECT_EQ(explore({.producers = 1, .messages = 3}), "");
  EXPECT_EQ(explore({.capacity = 1, .messages = 2}), "");
  EXPECT_EQ(explore({.capacity = 2, .messages = 2}), "");
  EXPECT_EQ(explore({.producers = 1, .consumers = 2, .messages = 2}), "");
  EXPECT_EQ(explore({.consumers = 2, .capacity = 2}), "");
  EXPECT_EQ(explore({.consumers = 2, .capacity = 2, .takes = 1}), "");
}

TEST(MessageModel, NorDoesAnybodyWhenOthersDieAtAnyOperation) {
  EXPECT_EQ(explore({.producers = 1, .messages = 2, .deaths = 2}), "");
  EXPECT_EQ(explore({.capacity = 1, .deaths = 2}), "");
  EXPECT_EQ(explore({.capacity = 2, .deaths = 1}), "");
  EXPECT_EQ(explore({.producers = 1, .consumers = 2, .capacity = 2, .messages = 2, .deaths = 1}), "");
}

TEST(MessageModel, WhateverWasPushedIsDeliveredWhenItIsClosedAtAnyTime) {
  EXPECT_EQ(explore({.producers = 1, .messages = 2, .closes_early = true}), "");
  EXPECT_EQ(explore({.capacity = 2, .closes_early = true}), "");
  EXPECT_EQ(explore({.producers = 1, .consumers = 2, .capacity = 2, .messages = 1, .closes_early = true}), "");
  EXPECT_EQ(explore({.producers = 1, .consumers = 2, .deaths = 1, .closes_early = true}), "");
}

TEST(MessageModel, WhatIsPutBackIsDeliveredToo) {
  EXPECT_EQ(explore({.producers = 1, .consumers = 2, .capacity = 2, .puts_back = true}), "");
  EXPECT_EQ(explore({.producers = 1, .consumers = 2, .deaths = 1, .puts_back = true}), "");
  EXPECT_EQ(explore({.producers = 1, .consumers = 2, .closes_early = true, .puts_back = true}), "");
}

TEST(MessageModelMutation, WhateverIsLeftOutIsMissed) {
  EXPECT_NE(explore({.consumers = 2, .capacity = 2, .takes = 1, .without = mutation::wake_next}), "");
  EXPECT_NE(explore({.producers = 1, .without = mutation::second_look}), "");
  EXPECT_NE(explore({.producers = 1, .consumers = 2, .deaths = 1, .without = mutation::deaths}), "");
  EXPECT_NE(explore({.producers = 1, .closes_early = true, .without = mutation::closed_twice}), "");
  EXPECT_NE(explore({.producers = 1, .messages = 2, .without = mutation::raise}), "");
  EXPECT_NE(explore({.consumers = 2, .capacity = 1, .without = mutation::withdraw_compares}), "");
  EXPECT_NE(explore({.producers = 1, .consumers = 2, .closes_early = true, .without = mutation::end_wakes}), "");
  EXPECT_NE(explore({.producers = 1, .deaths = 1, .without = mutation::recovery}), "");
}

}  // namespace
}  // namespace muster::message_model_test
