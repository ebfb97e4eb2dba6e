// SPDX-License-Identifier: BSL-1.0
#include "placement_search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

namespace muster::detail {

namespace {

/// The best placement that was looked at.
///
/// Thread safety: belongs to its thread.
class best_found {
public:
  explicit best_found(const placement_judge& by) : by_(by) {}

  /// Whether it is the best so far.
  bool look_at(const placing& where) {
    if (!by_.fits(where)) return false;
    const auto cost = by_.cost(where).total();
    if (!(cost < least_)) return false;
    least_ = cost;
    best_ = where;
    return true;
  }
  [[nodiscard]] bool is_there() const noexcept { return best_.has_value(); }
  [[nodiscard]] const placing& get() const {
    if (!best_) by_.throw_does_not_fit();
    return *best_;
  }

private:
  const placement_judge& by_;
  double least_ = std::numeric_limits<double>::infinity();
  std::optional<placing> best_;
};

// As a number counts, whose digits are devices.
bool count_on(placing& where, std::size_t devices) {
  for (auto digit = where.rbegin(); digit != where.rend(); ++digit) {
    if (++*digit < devices) return true;
    *digit = 0;
  }
  return false;
}

placing first_fit(const placement_judge& by) {
  placing where(by.models());
  std::vector<std::uint64_t> used(by.devices());
  std::vector<std::size_t> order(by.models());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return by.size_of(a) != by.size_of(b) ? by.size_of(a) > by.size_of(b) : a < b; });
  for (const auto model : order) {
    std::size_t roomiest = 0;
    for (std::size_t each = 1; each < by.devices(); ++each) {
      const auto room = [&](auto which) { return by.room_of(which) - std::min(used[which], by.room_of(which)); };
      if (room(each) > room(roomiest)) roomiest = each;
    }
    where[model] = roomiest;
    used[roomiest] += by.size_of(model);
  }
  return where;
}

/// A search from one placement on: moves one model, or exchanges two, as long as that makes it better.
///
/// Thread safety: belongs to its thread.
class descent {
public:
  descent(placing from, const placement_judge& by) : by_(by), where_(std::move(from)), best_(by) {
    best_.look_at(where_);
  }

  /// Ends where nothing makes it better, or so many placements have been looked at. Returns how many were.
  std::size_t run(std::size_t most) {
    most_ = most;
    while (move_each() || exchange_each()) {
    }
    return looks_;
  }
  [[nodiscard]] const best_found& best() const noexcept { return best_; }

private:
  bool move_each() {
    bool is_better = false;
    for (std::size_t model = 0; model < by_.models(); ++model) {
      for (std::size_t to = 0; to < by_.devices(); ++to) {
        auto moved = where_;
        moved[model] = to;
        is_better |= take(std::move(moved));
      }
    }
    return is_better;
  }
  bool exchange_each() {
    bool is_better = false;
    for (std::size_t model = 0; model < by_.models(); ++model) {
      for (std::size_t other = 0; other < model; ++other) {
        if (where_[model] == where_[other]) continue;
        auto exchanged = where_;
        std::swap(exchanged[model], exchanged[other]);
        is_better |= take(std::move(exchanged));
      }
    }
    return is_better;
  }
  bool take(placing next) {
    if (looks_ == most_) return false;
    ++looks_;
    if (!best_.look_at(next)) return false;
    where_ = std::move(next);
    return true;
  }

  const placement_judge& by_;
  placing where_;
  best_found best_;
  std::size_t looks_ = 0;
  std::size_t most_ = 0;
};

}  // namespace

bool are_at_most(std::size_t models, std::size_t devices, std::size_t most) {
  std::size_t all = 1;
  for (std::size_t each = 0; each < models; ++each) {
    if (all > most / devices) return false;
    all *= devices;
  }
  return true;
}

placing best_of_all(const placement_judge& by) {
  best_found best(by);
  placing where(by.models());
  do {
    best.look_at(where);
  } while (count_on(where, by.devices()));
  return best.get();
}

placing best_of_some(const placement_judge& by, std::uint64_t seed) {
  constexpr std::size_t attempts = 50;
  constexpr std::size_t most_looks = 1'000'000;  // some seconds
  best_found best(by);
  std::mt19937_64 random(seed);
  auto from = first_fit(by);
  std::size_t looks = 0;
  for (std::size_t each = 0; each <= attempts && looks < most_looks; ++each) {
    descent one(from, by);
    looks += one.run(most_looks - looks);
    if (one.best().is_there()) best.look_at(one.best().get());
    for (auto& to : from) to = static_cast<std::size_t>(random() % by.devices());
  }
  return best.get();
}

}  // namespace muster::detail
