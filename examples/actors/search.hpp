// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <random>
#include <vector>

#include "cart_pole.hpp"

namespace actors {

/// A policy to be tried.
struct candidate {
  int generation = 0;
  int index = 0;
  policy how{};

  /// Where it begins, in any sampler.
  [[nodiscard]] unsigned seed() const noexcept { return static_cast<unsigned>(generation * 1000 + index); }
};

/// Looks for a policy: of each generation of candidates the best quarter says where the next one is sought. Source:
/// the cross-entropy method, Rubinstein 1999. Candidates that do not come back are given out again.
class search {
public:
  static constexpr std::size_t candidates = 32;
  static constexpr std::size_t best = candidates / 4;
  static constexpr int most_generations = 50;

  search() { begin(); }

  [[nodiscard]] int generation() const noexcept { return generation_; }
  /// The mean of the last generation's best quarter, in steps.
  [[nodiscard]] double mean_of_best() const noexcept { return mean_of_best_; }
  [[nodiscard]] bool is_done() const noexcept {
    return mean_of_best_ >= cart_pole::most_steps || generation_ > most_generations;
  }
  /// The next candidate that was not given out, else the one that was given out first and has not come back; nothing
  /// when the search is done.
  [[nodiscard]] std::optional<candidate> next() {
    if (is_done()) return std::nullopt;
    while (steps_[turn_ % candidates] >= 0) ++turn_;
    const auto index = turn_++ % candidates;
    return candidate{.generation = generation_, .index = static_cast<int>(index), .how = tried_[index]};
  }
  /// How long that one has stood. True when it was the last of its generation.
  bool bring(const candidate& which, int steps) {
    auto& known = steps_.at(static_cast<std::size_t>(which.index));
    if (which.generation != generation_ || known >= 0) return false;  // another sampler was quicker
    known = steps;
    if (std::any_of(steps_.begin(), steps_.end(), [](int each) { return each < 0; })) return false;
    learn();
    return true;
  }

private:
  void begin() {
    tried_.assign(candidates, {});
    steps_.assign(candidates, -1);
    turn_ = 0;
    for (auto& each : tried_) {
      for (std::size_t weight = 0; weight < each.size(); ++weight) {
        each[weight] = std::normal_distribution<double>(mean_[weight], spread_[weight])(random_);
      }
    }
  }

  void learn() {
    std::vector<std::size_t> order(candidates);
    for (std::size_t index = 0; index < candidates; ++index) order[index] = index;
    std::sort(order.begin(), order.end(),
              [&](auto a, auto b) { return steps_[a] != steps_[b] ? steps_[a] > steps_[b] : a < b; });
    order.resize(best);
    mean_of_best_ = 0;
    for (const auto index : order) mean_of_best_ += steps_[index] / static_cast<double>(best);
    for (std::size_t weight = 0; weight < mean_.size(); ++weight) {
      double sum = 0;
      double squares = 0;
      for (const auto index : order) {
        sum += tried_[index][weight];
        squares += tried_[index][weight] * tried_[index][weight];
      }
      mean_[weight] = sum / best;
      spread_[weight] = std::sqrt(std::max(0.0, squares / best - mean_[weight] * mean_[weight])) + 0.05;
    }
    ++generation_;
    begin();
  }

  std::mt19937 random_{1};
  policy mean_{};
  policy spread_{1, 1, 1, 1};
  std::vector<policy> tried_;
  std::vector<int> steps_;  // -1: not brought back yet
  std::size_t turn_ = 0;
  int generation_ = 1;
  double mean_of_best_ = 0;
};

}  // namespace actors
