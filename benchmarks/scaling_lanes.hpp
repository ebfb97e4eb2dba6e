// SPDX-License-Identifier: BSL-1.0
#pragma once

// The lanes between parent and workers: as built, and other ways to lay them out or to read them. All of them keep the
// product's rule that an entry is only a hint and that the slot's word decides.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include <muster/queue/lane.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "scaling_figures.hpp"

namespace scaling {

/// All lanes of a crew: one for each worker, three or more for everybody. By number: workers' lanes, urgent, normal …,
/// low.
template <class Machine>
class lane_store {
public:
  using word = typename Machine::word;
  using lane = muster::basic_lane<word>;

  lane_store(Machine& where, const plan& what)
      : how_(what.how),
        workers_(what.workers),
        shards_(what.how == dispatch::sharded ? (what.workers + what.group - 1) / what.group : 1),
        group_(what.group) {
    const auto slots = std::bit_ceil(what.window);
    const auto of_worker =
        how_ == dispatch::pushed ? std::bit_ceil(std::max(2 * slots / workers_, std::size_t{64})) : 8;
    for (std::size_t index = 0; index < workers_ + shards_ + 2; ++index) {
      heads_.push_back(where.make_words(line_kind::head, 1, 1).data());
      entries_.push_back(where.make_words(line_kind::entry, index < workers_ ? of_worker : 2 * slots, 8));
      lanes_.emplace_back(*heads_.back(), entries_.back());
    }
    tails_.resize(lanes_.size());
    seen_heads_.resize(lanes_.size());
  }

  [[nodiscard]] lane& at(std::size_t index) { return lanes_[index]; }
  [[nodiscard]] word& head(std::size_t index) { return *heads_[index]; }
  [[nodiscard]] std::span<word> entries(std::size_t index) { return entries_[index]; }

  /// Enters a hint; returns the lane's number. For one thread at a time.
  std::size_t put(muster::lane_hint hint) {
    for (std::size_t tries = 0; tries < lanes_.size(); ++tries) {
      const auto index = next_lane();
      if (!has_room(index)) continue;
      lanes_[index].put(tails_[index]++, hint);
      return index;
    }
    throw std::logic_error("no room in the lanes");
  }

  /// In which order a worker looks at lanes. `near`: those that it also looks at while it spins.
  struct look_order {
    std::vector<std::size_t> usual;
    std::vector<std::size_t> aged;  // the least urgent first
    std::size_t near = 0;
  };
  [[nodiscard]] look_order order_for(std::size_t worker) const {
    look_order made;
    const auto low = workers_ + 1 + shards_;
    made.usual = {worker, workers_};
    made.aged = {worker, low};
    for (std::size_t step = 0; step < shards_; ++step) {
      const auto normal = workers_ + 1 + (worker / group_ + step) % shards_;
      made.usual.push_back(normal);
      made.aged.push_back(normal);
    }
    made.usual.push_back(low);
    made.aged.push_back(workers_);
    made.near = made.usual.size();
    const auto first = worker / group_ * group_;
    const auto group = std::min(group_, workers_ - first);
    for (std::size_t step = 1; how_ == dispatch::pushed && step < group; ++step) {
      made.usual.push_back(first + (worker - first + step) % group);
      made.aged.push_back(made.usual.back());
    }
    return made;
  }

private:
  std::size_t next_lane() {
    const auto turn = turn_++;
    return how_ == dispatch::pushed ? turn % workers_ : workers_ + 1 + turn % shards_;
  }
  bool has_room(std::size_t index) {
    const auto capacity = entries_[index].size();
    if (tails_[index] - seen_heads_[index] < capacity) return true;
    seen_heads_[index] = lanes_[index].head();
    return tails_[index] - seen_heads_[index] < capacity;
  }

  const dispatch how_;
  const std::size_t workers_;
  const std::size_t shards_;
  const std::size_t group_;
  std::vector<word*> heads_;
  std::vector<std::span<word>> entries_;
  std::vector<lane> lanes_;
  std::vector<std::uint64_t> tails_;  // of the parent
  std::vector<std::uint64_t> seen_heads_;
  std::size_t turn_ = 0;
};

/// How a worker takes tasks out of lanes.
template <class Machine>
class claimer {
public:
  using word = typename Machine::word;

  struct claimed {
    std::size_t slot = 0;
    muster::slot_word word;
  };

  claimer(Machine& where, lane_store<Machine>& lanes, std::span<word* const> slots, const plan& what,
          std::size_t worker)
      : where_(where),
        lanes_(lanes),
        slots_(slots),
        order_(lanes.order_for(worker)),
        how_(what.how),
        losers_(what.losers),
        crowd_(what.workers),
        worker_(worker),
        random_(worker + 1) {}

  std::optional<claimed> claim_any(figures& seen) {
    while (!taken_.empty()) {
      const auto hint = taken_.back();
      taken_.pop_back();
      if (auto won = try_claim(hint, seen)) return won;
    }
    const bool aged = ++looks_ % 16 == 0;
    for (const auto index : aged ? order_.aged : order_.usual) {
      if (auto won = claim(index, seen)) return won;
    }
    return std::nullopt;
  }

  /// `thorough`: before sleeping, nothing must be overlooked.
  [[nodiscard]] bool has_work(bool thorough) {
    const auto count = thorough ? order_.usual.size() : order_.near;
    for (std::size_t step = 0; step < count; ++step) {
      if (lanes_.at(order_.usual[step]).has_entry()) return true;
    }
    return false;
  }

private:
  using found = typename lane_store<Machine>::lane::found;
  static constexpr std::size_t most_taken = 4;

  std::optional<claimed> claim(std::size_t index, figures& seen) {
    if (how_ == dispatch::batch) return claim_several(index, seen);
    return claim_one(index, seen);
  }

  std::optional<claimed> try_claim(muster::lane_hint hint, figures& seen) {
    ++seen.looks;
    auto& target = *slots_[hint.slot];
    if (losers_ == patience::none || losses_ == 0) where_.prefetch_for_write(target);
    const auto won = muster::slot_protocol::try_claim(target, hint.generation, static_cast<unsigned>(worker_) + 1);
    if (won) {
      losses_ = 0;
      return claimed{.slot = hint.slot, .word = *won};
    }
    ++seen.lost;
    ++losses_;
    return std::nullopt;
  }

  // The product's way: worker_end::claim.
  std::optional<claimed> claim_one(std::size_t index, figures& seen) {
    auto& lane = lanes_.at(index);
    for (auto entry = lane.look(); entry.some; entry = lane.look()) {
      const auto won = try_claim(entry.hint, seen);
      if (won) {
        lane.advance(entry);
        return won;
      }
      help(index, entry, seen);
      if (losers_ == patience::back_off) back_off();
    }
    return std::nullopt;
  }

  void help(std::size_t index, const found& entry, figures& seen) {
    if (losers_ != patience::none && lanes_.at(index).head() != entry.ticket) return;
    const auto failed = where_.events().of(line_kind::head).failed;
    lanes_.at(index).advance(entry);
    seen.helped += where_.events().of(line_kind::head).failed == failed ? 1U : 0U;
  }

  // For up to as long as all workers would need to take turns.
  void back_off() {
    const auto most = std::min(std::size_t{1} << std::min<std::size_t>(losses_, 16), 4 * crowd_);
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    where_.pause((random_ >> 33U) % most);
  }

  std::optional<muster::lane_hint> read(std::size_t index, std::uint64_t ticket) {
    const auto entries = lanes_.entries(index);
    const auto entry = entries[ticket & (entries.size() - 1)].load(std::memory_order_acquire);
    if (entry >> 48U != ((ticket / entries.size() + 1) & 0xffffU)) return std::nullopt;
    return muster::lane_hint{.generation = static_cast<std::uint32_t>(entry >> 16U),
                             .slot = static_cast<std::uint16_t>(entry)};
  }

  // Moves the head first: the entries are this worker's alone then, and would be posted again by recovery if it died.
  std::optional<claimed> claim_several(std::size_t index, figures& seen) {
    for (;;) {
      const auto first = lanes_.head(index).load(std::memory_order_acquire);
      if (!read(index, first)) {
        if (lanes_.head(index).load(std::memory_order_acquire) == first) return std::nullopt;
        continue;
      }
      const auto count = take(index, first);
      auto expected = first;
      if (!lanes_.head(index).compare_exchange_strong(expected, first + count, std::memory_order_acq_rel,
                                                      std::memory_order_relaxed)) {
        taken_.clear();
        ++losses_;
        if (losers_ == patience::back_off) back_off();
        continue;
      }
      const auto hint = taken_.back();
      taken_.pop_back();
      if (auto won = try_claim(hint, seen)) return won;
    }
  }

  // Reads as many entries as it should have; the oldest is at the back.
  std::uint64_t take(std::size_t index, std::uint64_t first) {
    const bool backlog = read(index, first + std::max<std::uint64_t>(2 * crowd_, most_taken)).has_value();
    taken_.clear();
    for (std::uint64_t step = 0; step < (backlog ? most_taken : 1); ++step) {
      const auto hint = read(index, first + step);
      if (!hint) break;
      taken_.push_back(*hint);
    }
    std::ranges::reverse(taken_);
    return taken_.size();
  }

  Machine& where_;
  lane_store<Machine>& lanes_;
  const std::span<word* const> slots_;
  const typename lane_store<Machine>::look_order order_;
  const dispatch how_;
  const patience losers_;
  const std::size_t crowd_;  // how many workers there are
  const std::size_t worker_;
  std::uint64_t looks_ = 0;
  std::uint64_t random_;
  std::size_t losses_ = 0;  // since it last won
  std::vector<muster::lane_hint> taken_;
};

}  // namespace scaling
