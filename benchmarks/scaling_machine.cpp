// SPDX-License-Identifier: BSL-1.0
#include "scaling_machine.hpp"

#include <algorithm>
#include <stdexcept>

namespace scaling {

namespace {

constexpr std::size_t stack_bytes = std::size_t{64} << 10U;

}  // namespace

std::span<simulated_word> machine::make_words(line_kind kind, std::size_t count, std::size_t per_line) {
  auto& made = words_.emplace_back();
  made.reserve(count);
  for (std::size_t index = 0; index < count; ++index) {
    if (index % per_line == 0) {
      auto& line = lines_.emplace_back();
      line.kind = kind;
      line.owner = 0;
      line.holders.insert(0);
    }
    made.emplace_back(*this, lines_.back());
  }
  return made;
}

// ---- fibers

machine*& machine::current() {
  thread_local machine* running = nullptr;
  return running;
}

void machine::run(std::vector<job> jobs) {
  for (auto& each : jobs) {
    auto& made = fibers_.emplace_back();
    made.core = fibers_.size() - 1;
    made.what = std::move(each);
    made.stack.resize(stack_bytes);
    make_ready(made, nanoseconds(0));
  }
  current() = this;
  // Fibers start with setcontext and go on with longjmp, which makes no system call.
  if (_setjmp(out_) == 0) go_on_with_the_next();
  current() = nullptr;
  for (const auto& [where, asleep] : sleepers_) {
    if (!asleep.empty()) throw std::logic_error("simulation: somebody sleeps for ever");
  }
}

void machine::begin() {
  auto& self = *current();
  self.running_->what.body();
  self.go_on_with_the_next();
}

void machine::make_ready(fiber& who, nanoseconds when) {
  who.turn = ++turns_;
  ready_.push({.when = when, .turn = who.turn, .who = &who});
}

void machine::drop_outdated() {
  while (!ready_.empty() && ready_.top().turn != ready_.top().who->turn) ready_.pop();
}

bool machine::somebody_is_earlier() {
  drop_outdated();
  return !ready_.empty() && ready_.top().when < running_->now;
}

void machine::go_on_with_the_next() {
  drop_outdated();
  if (ready_.empty()) _longjmp(out_, 1);
  const auto next = ready_.top();
  ready_.pop();
  next.who->now = std::max(next.who->now, next.when);
  enter(*next.who);
}

void machine::enter(fiber& next) {
  running_ = &next;
  if (next.started) _longjmp(next.place, 1);
  next.started = true;
  ::getcontext(&next.first);
  next.first.uc_stack.ss_sp = next.stack.data();
  next.first.uc_stack.ss_size = next.stack.size();
  next.first.uc_link = nullptr;
  ::makecontext(&next.first, &machine::begin, 0);
  ::setcontext(&next.first);
}

// Returns when somebody has made this fiber ready, and it is its turn.
[[gnu::noinline]] void machine::give_way() {
  if (_setjmp(running_->place) == 0) go_on_with_the_next();
}

void machine::wait_for_turn() {
  if (!somebody_is_earlier()) return;
  make_ready(*running_, running_->now);
  give_way();
}

// ---- lines

void machine::touch(cache_line& line, access how) {
  auto& me = *running_;
  if (how == access::change) me.now = std::max(me.now, me.drained);
  wait_for_turn();
  auto& counts = me.events.of(line.kind);
  ++(how == access::read ? counts.reads : counts.writes);
  if (how == access::read) {
    if (me.collecting) me.watched.push_back(&line);
    if (!line.holders.contains(me.core)) return fetch_copy(line);
    if (line.owner == me.core) me.now = std::max(me.now, line.free_at);
    me.now += costs_.hit;
    return;
  }
  const auto arrival = fetch_alone(line);
  if (how == access::change) me.now = std::max(me.now, arrival) + costs_.locked;
  if (how == access::store) {
    me.now += costs_.hit;
    me.drained = std::max(me.drained, arrival);
  }
}

nanoseconds machine::distance(std::size_t from, std::size_t to) const {
  const auto a = fibers_[from].what.place;
  const auto b = fibers_[to].what.place;
  if (a / costs_.cluster_cores == b / costs_.cluster_cores) return costs_.same_cluster;
  return a / costs_.socket_cores == b / costs_.socket_cores ? costs_.same_socket : costs_.other_socket;
}

nanoseconds machine::nearest(const cache_line& line) const {
  auto found = costs_.other_socket;
  line.holders.for_each([&](std::size_t core) { found = std::min(found, distance(core, running_->core)); });
  return found;
}

// Of those who lose their copies.
nanoseconds machine::farthest(const cache_line& line) const {
  nanoseconds found{0};
  nanoseconds extra = -costs_.invalidation;
  line.holders.for_each([&](std::size_t core) {
    if (core == running_->core) return;
    found = std::max(found, distance(core, running_->core));
    extra += costs_.invalidation;
  });
  return found + std::max(extra, nanoseconds(0));
}

void machine::fetch_copy(cache_line& line) {
  auto& me = *running_;
  ++me.events.of(line.kind).transfers;
  const auto start = std::max(me.now, line.free_at);
  const auto latency = nearest(line);
  line.free_at = start + (line.owner != cache_line::nobody ? latency : costs_.shared_read);
  line.owner = cache_line::nobody;
  line.holders.insert(me.core);
  me.now = start + latency;
}

// When the running fiber has the line to itself.
nanoseconds machine::fetch_alone(cache_line& line) {
  auto& me = *running_;
  if (line.owner == me.core) return line.free_at;
  ++me.events.of(line.kind).transfers;
  line.free_at = std::max(me.now, line.free_at) + farthest(line);
  alarm_watchers(line);
  line.owner = me.core;
  line.holders.assign(me.core);
  return line.free_at;
}

void machine::prefetch_for_write(simulated_word& what) {
  wait_for_turn();
  static_cast<void>(fetch_alone(*what.line_));
}

// ---- waiting

void machine::alarm_watchers(const cache_line& line) {
  line.holders.for_each([&](std::size_t core) {
    auto& who = fibers_[core];
    if (!who.watching || std::ranges::find(who.watched, &line) == who.watched.end()) return;
    who.watching = false;
    // It looks once in a pause.
    const auto behind = line.free_at - who.now;
    make_ready(who, behind.count() <= 0 ? who.now : who.now + (behind / costs_.pause + 1) * costs_.pause);
  });
}

void machine::wait_for_change(nanoseconds until) {
  wait_for_turn();
  auto& me = *running_;
  for (const auto* line : me.watched) {
    if (!line->holders.contains(me.core)) return;
  }
  me.watching = true;
  make_ready(me, std::max(me.now, until));
  give_way();
  me.watching = false;
}

void machine::sleep_on(simulated_word& what, std::uint64_t expected) {
  spend(costs_.sleep_call);
  if (what.load(std::memory_order_seq_cst) != expected) return;
  ++running_->events.sleeps;
  sleepers_[&what].push_back(running_);
  give_way();
}

void machine::wake(simulated_word& what, std::size_t count) {
  spend(costs_.wake_call);
  wait_for_turn();
  ++running_->events.wakes;
  auto& asleep = sleepers_[&what];
  for (; count > 0 && !asleep.empty(); --count) {
    make_ready(*asleep.front(), running_->now + costs_.wake_up);
    asleep.erase(asleep.begin());
  }
}

}  // namespace scaling
