// SPDX-License-Identifier: BSL-1.0
#pragma once

// A parent's submitting threads and its workers over the words of a `Machine`, simulated or real. Slots, lanes, rings
// and sets are the product's templates; how dispatcher and worker_end put them together is repeated here, without
// recovery, backlog and payloads.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include <muster/memory/wait/idle_set.hpp>
#include <muster/queue/completion_ring.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "scaling_figures.hpp"
#include "scaling_lanes.hpp"

namespace scaling {

using muster::slot_flag;
using muster::slot_state;
using muster::slot_word;

/// What all of them share.
template <class Machine>
struct common {
  using word = typename Machine::word;
  using set = muster::basic_idle_set<word>;
  using ring = muster::basic_completion_ring<word>;

  common(Machine& machine, const plan& run)
      : where(machine),
        what(run),
        slots(one_by_one(line_kind::slot, std::bit_ceil(run.window))),
        lanes(machine, run),
        sleeping(machine.make_words(line_kind::set, (run.workers + 63) / 64, 8)),
        spinning(machine.make_words(line_kind::set, run.relay ? (run.workers + 63) / 64 : 1, 8)),
        bell_armed(machine.make_words(line_kind::other, 1, 1)[0]),
        mutex(machine.make_words(line_kind::lock, 1, 1)[0]),
        parked(one_by_one(line_kind::other, run.workers)),
        order(one_by_one(line_kind::other, run.workers)),
        ring_tails(one_by_one(line_kind::ring, run.workers)),
        published(slots.size()),
        executed(slots.size()),
        generations(slots.size()) {
    for (std::size_t worker = 0; worker < run.workers; ++worker) {
      ring_entries.push_back(machine.make_words(line_kind::ring, 2 * slots.size(), 8));
    }
    for (std::size_t slot = slots.size(); slot > 0; --slot) free_slots.push_back(static_cast<std::uint16_t>(slot - 1));
  }

  std::vector<word*> one_by_one(line_kind kind, std::size_t count) {
    std::vector<word*> made;
    for (std::size_t index = 0; index < count; ++index) made.push_back(where.make_words(kind, 1, 1).data());
    return made;
  }
  ring ring_of(std::size_t worker) { return {*ring_tails[worker], ring_entries[worker]}; }

  // As spinning().check_any(), when one is enough: ordered like a write.
  bool enough_spin() {
    std::size_t found = 0;
    for (auto& word : spinning) {
      found += static_cast<std::size_t>(std::popcount(word.fetch_or(0, std::memory_order_acq_rel)));
      if (found >= what.enough) return true;
    }
    return false;
  }

  // As board::wake and wake_any.
  bool wake(std::size_t worker) {
    if (!set(sleeping).remove(worker)) return false;
    if (what.relay) set(spinning).insert(worker);
    parked[worker]->store(0, std::memory_order_release);
    where.wake(*parked[worker], 1);
    return true;
  }
  bool wake_any() {
    for (std::size_t index = 0; index < sleeping.size(); ++index) {
      auto found = sleeping[index].fetch_or(0, std::memory_order_acq_rel);
      for (; found != 0; found &= found - 1) {
        if (wake(index * 64 + static_cast<std::size_t>(std::countr_zero(found)))) return true;
      }
    }
    return false;
  }

  Machine& where;
  const plan what;
  std::vector<word*> slots;
  lane_store<Machine> lanes;
  std::span<word> sleeping;
  std::span<word> spinning;
  word& bell_armed;
  word& mutex;
  std::vector<word*> parked;
  std::vector<word*> order;  // 1: leave
  std::vector<word*> ring_tails;
  std::vector<std::span<word>> ring_entries;

  // For the figures and checks: not on simulated lines. Ordered by the slots' words.
  std::vector<nanoseconds> published;
  std::vector<std::uint64_t> executed;

  // The parent's, under the mutex.
  std::vector<std::uint16_t> free_slots;
  std::vector<std::uint64_t> generations;
  std::size_t submitters_left = 0;
};

/// A lock like that of the C library: a word that waiters sleep on.
template <class Machine>
class simple_lock {
public:
  explicit simple_lock(common<Machine>& of) : where_(of.where), word_(of.mutex) {
    std::uint64_t expected = free;
    if (word_.compare_exchange_strong(expected, held, std::memory_order_acquire, std::memory_order_relaxed)) return;
    while (word_.exchange(contended, std::memory_order_acquire) != free) where_.sleep_on(word_, contended);
  }
  simple_lock(const simple_lock&) = delete;
  simple_lock& operator=(const simple_lock&) = delete;
  ~simple_lock() {
    if (word_.exchange(free, std::memory_order_acq_rel) == contended) where_.wake(word_, 1);
  }

private:
  static constexpr std::uint64_t free = 0;
  static constexpr std::uint64_t held = 1;
  static constexpr std::uint64_t contended = 2;

  Machine& where_;
  typename Machine::word& word_;
};

/// worker_end.
template <class Machine>
class worker {
public:
  worker(common<Machine>& of, std::size_t index)
      : common_(of), index_(index), tasks_(of.where, of.lanes, of.slots, of.what, index), random_(index + 1) {
    // A growing vector would copy in the middle of a run.
    seen_.delays.reserve(4 * of.what.tasks / of.what.workers + 64);
  }

  void run() {
    bool slept = false;
    while (common_.order[index_]->load(std::memory_order_acquire) == 0) {
      const auto task = tasks_.claim_any(seen_);
      if (!task) {
        idle();
        slept = true;
        continue;
      }
      if (slept && common_.what.workers > 1 && tasks_.has_work(false)) wake_another();
      slept = false;
      execute(task->slot, task->word);
    }
    seen_.events = common_.where.events();
  }

  [[nodiscard]] const figures& seen() const { return seen_; }

private:
  using set = typename common<Machine>::set;

  void execute(std::size_t slot, const slot_word& claimed) {
    auto& where = common_.where;
    const auto delay = where.now() - common_.published[slot];
    seen_.delays.push_back(delay);
    ++common_.executed[slot];
    where.spend(common_.what.run_overhead);
    const auto length = varied(common_.what.length);
    where.work(length);
    seen_.busy += length;
    const auto asked = muster::slot_protocol::complete(*common_.slots[slot], claimed, slot_flag::none);
    if (asked.has(slot_flag::waiter)) where.wake(*common_.slots[slot], std::numeric_limits<int>::max());
    if (!asked.has(slot_flag::notify)) return;
    common_.ring_of(index_).push({.generation = claimed.short_generation(), .slot = static_cast<std::uint16_t>(slot)});
    static_cast<void>(common_.bell_armed.load(std::memory_order_seq_cst));
  }

  // By a tenth at most, lest all go in step.
  nanoseconds varied(nanoseconds length) {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    return length * (900 + static_cast<std::int64_t>((random_ >> 33U) % 201)) / 1000;
  }

  void idle() {
    if (!spin()) park();
  }

  bool is_ordered() { return common_.order[index_]->load(std::memory_order_acquire) != 0; }

  bool spin() {
    if (index_ >= 64 && !common_.what.relay) return false;
    const bool alone = common_.what.workers == 1;
    set spinning(common_.spinning);
    if (!alone) {
      const auto processors = common_.what.workers + common_.what.submitters;
      if (spinning.count() + 1 >= std::min(processors, common_.what.spinners + 1)) return false;
      spinning.insert(index_);
    }
    const bool found =
        common_.where.spin_until(common_.what.spin, [this] { return tasks_.has_work(false) || is_ordered(); });
    if (!alone) spinning.remove(index_);
    return found;
  }

  void park() {
    auto& parked = *common_.parked[index_];
    set sleeping(common_.sleeping);
    parked.store(1, std::memory_order_relaxed);
    sleeping.insert(index_);
    if (tasks_.has_work(true) || is_ordered()) {
      parked.store(0, std::memory_order_relaxed);
    } else {
      while (parked.load(std::memory_order_acquire) == 1) common_.where.sleep_on(parked, 1);
    }
    sleeping.remove(index_);
    // Before it looks at the lanes: whoever saw the bit woke nobody.
    if (common_.what.relay) set(common_.spinning).remove(index_);
  }

  void wake_another() {
    if (!common_.enough_spin()) common_.wake_any();
  }

  common<Machine>& common_;
  const std::size_t index_;
  claimer<Machine> tasks_;
  figures seen_;
  std::uint64_t random_;
};

/// A thread that submits tasks and takes their replies, and the dispatcher's part in it.
template <class Machine>
class submitter {
public:
  /// `mark(n)` is called when n of its tasks have been submitted.
  submitter(common<Machine>& of, std::size_t tasks, std::function<void(std::size_t)> mark)
      : common_(of),
        tasks_(tasks),
        window_(std::max<std::size_t>(1, of.what.window / of.what.submitters)),
        mark_(std::move(mark)),
        ring_heads_(of.what.workers) {}

  void run() {
    for (std::size_t index = 0; index < tasks_; ++index) {
      while (under_way_.size() >= window_) end_some();
      mark_(index);
      post();
    }
    mark_(tasks_);
    while (!under_way_.empty()) end_some();
    leave();
    seen_.tasks = tasks_;
    seen_.events = common_.where.events();
  }

  [[nodiscard]] const figures& seen() const { return seen_; }

private:
  struct record {
    std::uint16_t slot = 0;
    std::uint64_t generation = 0;
    std::size_t lane = 0;
  };

  [[nodiscard]] bool is_told() const {
    return common_.what.ends == completion::rings || common_.what.ends == completion::sweep;
  }

  // dispatcher::post
  void post() {
    common_.where.spend(common_.what.post_unlocked);
    record made;
    {
      const simple_lock<Machine> lock(common_);
      common_.where.spend(common_.what.post_locked);
      made.slot = common_.free_slots.back();
      common_.free_slots.pop_back();
      made.generation = ++common_.generations[made.slot];
      common_.published[made.slot] = common_.where.now();
      const auto flags = common_.what.ends == completion::rings ? slot_flag::notify : slot_flag::none;
      muster::slot_protocol::publish(*common_.slots[made.slot], made.generation, flags);
      made.lane = common_.lanes.put({.generation = static_cast<std::uint32_t>(made.generation), .slot = made.slot});
    }
    under_way_.push_back(made);
    wake_for_one(made.lane);
  }

  void wake_for_one(std::size_t lane) {
    const bool shared = lane >= common_.what.workers;
    if (shared && (common_.what.relay || !is_told()) && common_.what.workers > 1 && common_.enough_spin()) return;
    wake_for(lane);
  }
  void wake_for(std::size_t lane) {
    if (lane >= common_.what.workers) {
      common_.wake_any();
    } else {
      common_.wake(lane);
    }
  }

  void end_some() {
    if (common_.what.ends == completion::rings) return drain();
    if (common_.what.ends == completion::sweep) return sweep();
    const auto oldest = under_way_.front();
    if (common_.what.ends == completion::ahead && under_way_.size() > 2) {
      common_.where.prefetch_for_write(*common_.slots[under_way_[2].slot]);
    }
    under_way_.pop_front();
    wait(oldest);
    take(oldest);
  }

  // dispatcher::wait
  void wait(const record& task) {
    auto& word = *common_.slots[task.slot];
    for (;;) {
      common_.where.spin_until(common_.what.spin, [&] { return is_done(word, task); });
      const auto found = muster::slot_protocol::read(word);
      if (found.state() == slot_state::done) return;
      if (found.state() == slot_state::queued) wake_for(task.lane);
      const auto before = muster::slot_protocol::request(word, slot_flag::waiter);
      if (before.state() == slot_state::done) return;
      common_.where.sleep_on(word, before.bits() | slot_word::flag_bits(slot_flag::waiter));
    }
  }

  bool is_done(const typename Machine::word& word, const record& task) {
    const auto found = muster::slot_protocol::read(word);
    return found.generation() == task.generation && found.state() == slot_state::done;
  }

  // dispatcher::take
  void take(const record& task) {
    common_.where.spend(common_.what.take_unlocked);
    const simple_lock<Machine> lock(common_);
    collect(task);
  }

  void collect(const record& task) {
    auto& word = *common_.slots[task.slot];
    const auto found = muster::slot_protocol::read(word);
    if (found.state() != slot_state::done || common_.executed[task.slot] != task.generation) {
      throw std::logic_error("a task was not run exactly once");
    }
    common_.where.spend(common_.what.take_locked);
    muster::slot_protocol::retire(word, task.generation);
    common_.free_slots.push_back(task.slot);
  }

  // dispatcher::drain, by a helper that looks often
  void drain() {
    common_.where.spin_until(common_.what.spin, [this] { return has_completions(); });
    common_.where.spend(common_.what.take_unlocked);
    const simple_lock<Machine> lock(common_);
    for (std::size_t worker = 0; worker < ring_heads_.size(); ++worker) drain_ring(worker);
  }

  bool has_completions() {
    for (std::size_t worker = 0; worker < ring_heads_.size(); ++worker) {
      if (common_.ring_of(worker).tail() != ring_heads_[worker]) return true;
    }
    return false;
  }

  void drain_ring(std::size_t worker) {
    const auto ring = common_.ring_of(worker);
    const auto tail = ring.tail();
    for (auto& head = ring_heads_[worker]; head != tail; ++head) {
      const auto slot = ring.read(head).slot;
      collect({.slot = slot, .generation = common_.generations[slot], .lane = 0});
      under_way_.pop_front();  // with one submitter it is only their number that counts
    }
  }

  void sweep() {
    const auto count = under_way_.size();
    common_.where.spin_until(common_.what.spin, [&] {
      return std::ranges::any_of(under_way_,
                                 [&](const record& each) { return is_done(*common_.slots[each.slot], each); });
    });
    common_.where.spend(common_.what.take_unlocked);
    const simple_lock<Machine> lock(common_);
    for (std::size_t index = 0; index < count; ++index) {
      const auto each = under_way_.front();
      under_way_.pop_front();
      if (is_done(*common_.slots[each.slot], each)) {
        collect(each);
      } else {
        under_way_.push_back(each);
      }
    }
  }

  void leave() {
    {
      const simple_lock<Machine> lock(common_);
      if (--common_.submitters_left > 0) return;
    }
    for (std::size_t worker = 0; worker < common_.what.workers; ++worker) {
      common_.order[worker]->store(1, std::memory_order_seq_cst);
      common_.wake(worker);
    }
  }

  common<Machine>& common_;
  const std::size_t tasks_;
  const std::size_t window_;
  const std::function<void(std::size_t)> mark_;
  std::vector<std::uint64_t> ring_heads_;
  std::deque<record> under_way_;  // the oldest first
  figures seen_;
};

}  // namespace scaling
