// SPDX-License-Identifier: BSL-1.0
#include "checker.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <unordered_set>

namespace muster::weak {

// ---- one step

void execution::take(const std::function<void()>& body) {
  recorded_ = state_.shared.threads[thread_].length;
  may_step_ = state_.threads[thread_].next != step_kind::none;
  current() = this;
  if (run_until_left(body)) state_.threads[thread_].how = life::ended;
}

bool execution::run_until_left(const std::function<void()>& body) {
  if (setjmp(out_) != 0) return false;
  body();
  return true;
}

// An event at which nobody else comes in between: it has no effect that others would see at once.
template <class F>
std::uint64_t execution::record(F operation) {
  if (position_ < recorded_) return state_.shared.threads[thread_].events[position_++].result;
  operation();
  recorded_ = state_.shared.threads[thread_].length;
  return state_.shared.threads[thread_].events[position_++].result;
}

template <class F>
std::uint64_t execution::perform(step_kind kind, std::uint8_t of, F operation) {
  if (position_ < recorded_) return state_.shared.threads[thread_].events[position_++].result;
  auto& mine = state_.threads[thread_];
  if (!may_step_) {
    mine.next = kind;
    mine.next_of = of;
    std::longjmp(out_, 1);
  }
  may_step_ = false;
  operation();
  if (!is_consistent_) std::longjmp(out_, 1);
  recorded_ = state_.shared.threads[thread_].length;
  if (mine.asleep_on != nobody) {
    mine.next = step_kind::none;
    std::longjmp(out_, 1);
  }
  return state_.shared.threads[thread_].events[position_++].result;
}

void execution::fail(const char* why) {
  failure_ = why;
  std::longjmp(out_, 1);
}

// ---- operations

std::memory_order execution::order_at(const spot& where, std::memory_order order) {
  if (seen_ != nullptr) {
    auto& strongest = seen_->emplace(where, order).first->second;
    strongest = std::max(strongest, order);
  }
  return where == weak_.at ? weakened(order, weak_.how) : order;
}

std::uint64_t execution::taken(const outcome& how) {
  ways_ = how.ways;
  is_consistent_ = how.is_consistent;
  return how.value;
}

std::uint64_t execution::load(std::uint8_t location, part of, std::memory_order order) {
  const request what{.location = location,
                     .order = order_at({.where = site_, .of = of, .what = operation::load}, order)};
  return perform(step_kind::access, location, [&] { taken(weak::load(state_.shared, thread_, what, way_)); });
}

void execution::store(std::uint8_t location, part of, std::uint64_t value, std::memory_order order) {
  const request what{.location = location,
                     .order = order_at({.where = site_, .of = of, .what = operation::store}, order),
                     .operand = value};
  perform(step_kind::store, location, [&] { taken(weak::store(state_.shared, thread_, what, way_)); });
}

namespace {

operation operation_of(const request& what) {
  switch (what.how) {
    case change::exchange: return operation::exchange;
    case change::set_bits: return what.operand == 0 ? operation::touch : operation::set_bits;
    case change::clear_bits: return operation::clear_bits;
    default: return operation::compare;
  }
}

}  // namespace

std::uint64_t execution::modify(part of, request what) {
  const spot where{.where = site_, .of = of, .what = operation_of(what)};
  what.order = order_at(where, what.order);
  if (where == weak_.at && weak_.how == weakening::no_acquire) what.on_failure = std::memory_order_relaxed;
  if (where != weak_.at || weak_.how != weakening::plain_look) {
    return perform(step_kind::access, what.location, [&] { taken(weak::modify(state_.shared, thread_, what, way_)); });
  }
  request half{.location = what.location, .order = std::memory_order_acquire};
  const auto found =
      perform(step_kind::access, half.location, [&] { taken(weak::load(state_.shared, thread_, half, way_)); });
  if (where.what == operation::touch || (what.how == change::compare && found != what.expected)) return found;
  half.order = std::memory_order_release;
  half.operand = what.operand;
  if (what.how == change::set_bits) half.operand |= found;
  if (what.how == change::clear_bits) half.operand &= found;
  perform(step_kind::store, half.location, [&] { taken(weak::store(state_.shared, thread_, half, way_)); });
  return found;
}

std::uint64_t execution::read_cell(std::size_t cell) {
  bool is_alone = true;
  const auto value = record([&] { is_alone = weak::read_cell(state_.shared, thread_, cell); });
  if (!is_alone) fail("a datum is read while it is written");
  return value;
}

void execution::write_cell(std::size_t cell, std::uint64_t value) {
  bool is_alone = true;
  record([&] { is_alone = weak::write_cell(state_.shared, thread_, cell, value); });
  if (!is_alone) fail("a datum is written while it is read or written");
}

void execution::count(std::size_t index) {
  record([&] {
    mark(state_.shared, thread_);
    ++state_.notes[index];
  });
}

bool execution::futex_wait(std::uint8_t location, std::uint64_t expected) {
  const auto found = perform(step_kind::sleep, location, [&] {
    const auto value = taken(weak::kernel_load(state_.shared, thread_, {.location = location}, way_));
    if (static_cast<std::uint32_t>(value) == static_cast<std::uint32_t>(expected)) {
      state_.threads[thread_].asleep_on = location;
    }
  });
  return static_cast<std::uint32_t>(found) == static_cast<std::uint32_t>(expected);
}

void execution::futex_wake(std::uint8_t location) {
  perform(step_kind::wake, location, [&] {
    mark(state_.shared, thread_);
    state_.shared.locations[location].kernel.join(state_.shared.threads[thread_].knows);
    for (auto& other : state_.threads) {
      if (other.asleep_on == location) other.asleep_on = nobody;
    }
  });
}

void execution::lock() {
  perform(step_kind::lock, 0, [&] {
    mark(state_.shared, thread_).released = state_.lock.knows;
    state_.lock.count = 1;
    state_.shared.threads[thread_].knows.join(state_.lock.knows);
  });
}

void execution::unlock() {
  perform(step_kind::wake, 0, [&] {
    mark(state_.shared, thread_);
    state_.lock = {.count = 0, .knows = state_.shared.threads[thread_].knows};
  });
}

void execution::ring() {
  perform(step_kind::wake, 0, [&] {
    mark(state_.shared, thread_);
    state_.bell.count = 1;
    state_.bell.knows.join(state_.shared.threads[thread_].knows);
  });
}

void execution::await_bell() {
  perform(step_kind::bell, 0, [&] {
    mark(state_.shared, thread_).released = state_.bell.knows;
    state_.bell.count = 0;
    state_.shared.threads[thread_].knows.join(state_.bell.knows);
  });
}

void execution::await_death(std::size_t of) {
  perform(step_kind::death, static_cast<std::uint8_t>(of), [&] {
    mark(state_.shared, thread_);
    state_.shared.threads[thread_].knows.join(state_.shared.threads[of].knows);
  });
}

// ---- all steps

namespace {

bool can_go_on(const state& in, std::size_t thread) {
  const auto& it = in.threads[thread];
  if (it.how != life::runs || it.asleep_on != nobody) return false;
  switch (it.next) {
    case step_kind::lock: return in.lock.count == 0;
    case step_kind::bell: return in.bell.count != 0;
    case step_kind::death: return in.threads[it.next_of].how == life::killed;
    default: return true;
  }
}

struct fingerprint {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const fingerprint&, const fingerprint&) = default;
};
struct fingerprint_hash {
  std::size_t operator()(const fingerprint& of) const { return of.low; }
};

// What threads know follows from the graph, in which taking the lock and the bell says what was learnt by it.
fingerprint fingerprint_of(const state& of) {
  static XXH3_state_t* const made = XXH3_createState();
  XXH3_128bits_reset(made);
  const auto add = [](const auto& value, std::size_t bytes) { XXH3_128bits_update(made, &value, bytes); };
  for (const auto& log : of.shared.threads) {
    add(log.length, 1);
    add(log.events, log.length * sizeof(event));
  }
  add(of.shared.locations, sizeof of.shared.locations);
  add(of.threads, sizeof of.threads);
  add(of.notes, sizeof of.notes);
  add(of.lock, sizeof of.lock);
  add(of.bell, sizeof of.bell);
  add(of.deaths_left, 1);
  const auto hash = XXH3_128bits_digest(made);
  return {.low = hash.low64, .high = hash.high64};
}

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 24> digits{};
  std::snprintf(digits.data(), digits.size(), "%" PRIx64, value);
  return digits.data();
}

std::string describe(const event& it) {
  if (it.location == nobody) return "  (no atomic) " + hexadecimal(it.result | it.written) + "\n";
  std::string line = "  location " + std::to_string(it.location);
  if (it.reads != 0) {
    line += " read " + hexadecimal(it.result) + " of " + std::to_string(it.read_from.thread) + ":" +
            std::to_string(it.read_from.time);
  }
  if (it.writes != 0) line += " wrote " + hexadecimal(it.written);
  return line + "\n";
}

std::string describe(const state& in) {
  std::string text;
  for (std::size_t thread = 0; thread < most_threads; ++thread) {
    const auto& log = in.shared.threads[thread];
    text += "thread " + std::to_string(thread) + (in.threads[thread].asleep_on != nobody ? ", asleep\n" : "\n");
    for (std::size_t index = 0; index < log.length; ++index) {
      text += std::to_string(index + 1) + describe(log.events[index]);
    }
  }
  return text;
}

class explorer {
public:
  explorer(const scenario& what, const options& how) : what_(what), how_(how) {
    if (how.known != nullptr) last_writes_ = *how.known;
  }

  verdict run() {
    do {
      found_ = {};
      has_learnt_ = false;
      seen_states_.clear();
      go_through();
    } while (has_learnt_ && found_.failure.empty());
    if (how_.known != nullptr) *how_.known = last_writes_;
    return found_;
  }

private:
  void go_through() {
    state first;
    first.deaths_left = what_.may_die != 0 ? 1 : 0;
    what_.prepare(first);
    for (std::size_t thread = most_threads; thread-- > what_.threads.size();) first.threads[thread].how = life::ended;
    visit(first);
  }

  void expand(const state& from) {
    bool goes_on = false;
    const auto first = first_that_needs_no_others(from);
    for (std::size_t thread = 0; thread < what_.threads.size(); ++thread) {
      if (first < what_.threads.size() && thread != first) continue;
      if (!can_go_on(from, thread)) continue;
      goes_on = true;
      take_every_way(from, thread);
    }
    for (std::size_t thread = 0; thread < what_.threads.size(); ++thread) {
      if (first < what_.threads.size() && thread != first) continue;
      if ((what_.may_die >> thread & 1U) == 0 || from.deaths_left == 0) continue;
      if (from.threads[thread].how != life::runs) continue;
      state next = from;
      next.deaths_left = 0;
      next.threads[thread] = {.how = life::killed};
      visit(next);
    }
    if (!goes_on) check_end(from);
  }

  // A thread whose next step may as well come before everything else.
  std::size_t first_that_needs_no_others(const state& in) const {
    std::size_t thread = 0;
    while (thread < most_threads && !needs_no_others(in, thread)) ++thread;
    return thread;
  }

  bool needs_no_others(const state& in, std::size_t thread) const {
    const auto& it = in.threads[thread];
    if (it.how != life::runs || it.asleep_on != nobody) return false;
    if (how_.in_any_order) return it.next == step_kind::none;
    if (it.next == step_kind::store || it.next == step_kind::none) return true;
    if (it.next != step_kind::access) return false;
    for (std::size_t other = 0; other < what_.threads.size(); ++other) {
      if (other != thread && may_write(in, other, it.next_of)) return false;
    }
    return true;
  }

  bool may_write(const state& in, std::size_t thread, std::uint8_t location) const {
    const auto& it = in.threads[thread];
    if (it.how != life::runs) return false;
    if (it.next == step_kind::death && in.threads[it.next_of].how == life::ended) return false;
    return in.shared.threads[thread].length < last_writes_[thread][location];
  }

  void learn(const state& next, std::size_t thread, std::size_t length_before) {
    const auto& log = next.shared.threads[thread];
    for (std::size_t index = length_before; index < log.length; ++index) {
      const auto& it = log.events[index];
      if (it.might_write == 0 || last_writes_[thread][it.location] > index) continue;
      last_writes_[thread][it.location] = static_cast<std::uint8_t>(index + 1);
      has_learnt_ = true;
    }
  }

  void take_every_way(const state& from, std::size_t thread) {
    std::size_t ways = 1;
    for (std::size_t way = 0; way < ways && found_.failure.empty(); ++way) {
      state next = from;
      execution step(next, thread, way, how_.weak, how_.seen);
      step.take(what_.threads[thread]);
      ways = step.ways();
      if (step.failure() != nullptr) fail(step.failure(), next);
      if (!step.is_consistent()) continue;
      learn(next, thread, from.shared.threads[thread].length);
      visit(next);
    }
  }

  void visit(const state& next) {
    if (!found_.failure.empty() || !seen_states_.insert(fingerprint_of(next)).second) return;
    if (++found_.states > how_.most_states) found_.failure = "too many states";
    expand(next);
  }

  void check_end(const state& end) {
    ++found_.ends;
    for (std::size_t thread = 0; thread < what_.threads.size(); ++thread) {
      const auto& it = end.threads[thread];
      const bool is_over = it.how != life::runs || it.next == step_kind::death;
      if (!is_over && (what_.may_sleep >> thread & 1U) == 0) fail("somebody sleeps for ever", end);
    }
    if (const auto* wrong = what_.check(end); wrong != nullptr) fail(wrong, end);
  }

  void fail(const char* why, const state& where) {
    found_.failure = why;
    found_.trace = describe(where);
  }

  const scenario& what_;
  const options& how_;
  verdict found_;
  last_writes last_writes_{};
  bool has_learnt_ = false;
  std::unordered_set<fingerprint, fingerprint_hash> seen_states_;
};

}  // namespace

verdict explore(const scenario& what, const options& how) { return explorer(what, how).run(); }

}  // namespace muster::weak
