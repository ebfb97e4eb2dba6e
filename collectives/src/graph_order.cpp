// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/detail/graph_order.hpp>

#include <algorithm>
#include <functional>
#include <tuple>

namespace muster::detail {

namespace {

class orderer {
public:
  explicit orderer(std::span<const order_item> items)
      : items_(items), done_(items.size()), lacking_(items.size()), needed_by_(items.size()), work_of_(items.size()) {
    for (std::size_t item = 0; item < items.size(); ++item) add(item);
    for (std::size_t item = 0; item < items.size(); ++item) {
      if (items[item].what == order_class::start) work_of_[item] = work_before(item);
    }
  }

  order_result run() {
    bool moves = true;
    while (moves) {
      moves = false;
      for (const auto& rank : ranks_) moves |= go_without_waiting(rank);
      for (const auto& rank : ranks_) moves |= take_waits(rank);
    }
    if (sequence_.size() == items_.size()) return {.sequence = std::move(sequence_), .circle = {}};
    return {.sequence = {}, .circle = circle()};
  }

private:
  using steps = std::vector<std::size_t>;

  void add(std::size_t item) {
    const auto& what = items_[item];
    if (ranks_.size() <= what.rank) ranks_.resize(what.rank + 1);
    ranks_[what.rank].push_back(item);
    lacking_[item] = what.after.size();
    for (const auto each : what.after) needed_by_[each].push_back(item);
  }

  // Everything but starts that has to be done before.
  [[nodiscard]] steps work_before(std::size_t start) const {
    std::vector<bool> seen(items_.size());
    steps found;
    steps open{start};
    while (!open.empty()) {
      const auto next = open.back();
      open.pop_back();
      for (const auto each : items_[next].after) {
        if (seen[each]) continue;
        seen[each] = true;
        open.push_back(each);
        if (items_[each].what != order_class::start) found.push_back(each);
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  void take(std::size_t item) {
    done_[item] = true;
    sequence_.push_back(item);
    for (const auto each : needed_by_[item]) --lacking_[each];
  }

  [[nodiscard]] bool is_ready(std::size_t item, order_class what) const {
    return !done_[item] && items_[item].what == what && lacking_[item] == 0;
  }

  bool go_without_waiting(const steps& rank) {
    bool moves = false;
    for (auto next = next_without_waiting(rank); next; next = next_without_waiting(rank)) {
      take(*next);
      moves = true;
    }
    return moves;
  }

  [[nodiscard]] std::optional<std::size_t> next_without_waiting(const steps& rank) const {
    if (const auto start = lowest_tag(rank, order_class::start)) return start;
    if (const auto start = nearest_start(rank)) return first_work(work_of_[*start]);
    return first_work(rank);
  }

  [[nodiscard]] std::optional<std::size_t> lowest_tag(const steps& among, order_class what) const {
    std::optional<std::size_t> best;
    for (const auto each : among) {
      if (is_ready(each, what) && (!best || items_[each].tag < items_[*best].tag)) best = each;
    }
    return best;
  }

  [[nodiscard]] std::optional<std::size_t> first_work(const steps& among) const {
    const auto ready = [&](std::size_t each) { return is_ready(each, order_class::work); };
    const auto found = std::find_if(among.begin(), among.end(), ready);
    return found == among.end() ? std::nullopt : std::optional(*found);
  }

  // How much work is between here and that start; none if there is a wait as well.
  [[nodiscard]] std::optional<std::size_t> distance(std::size_t start) const {
    std::size_t work = 0;
    for (const auto each : work_of_[start]) {
      if (done_[each]) continue;
      if (items_[each].what == order_class::wait) return std::nullopt;
      ++work;
    }
    return work;
  }

  // None if its work needs itself.
  [[nodiscard]] std::optional<std::size_t> nearest_start(const steps& rank) const {
    std::optional<std::tuple<std::size_t, int, std::size_t>> best;
    for (const auto each : rank) {
      if (done_[each] || items_[each].what != order_class::start || !first_work(work_of_[each])) continue;
      const auto far = distance(each);
      if (!far) continue;
      const std::tuple candidate(*far, items_[each].tag, each);
      if (!best || candidate < *best) best = candidate;
    }
    return best ? std::optional(std::get<2>(*best)) : std::nullopt;
  }

  bool take_waits(const steps& rank) {
    const auto unfinished = [&](std::size_t each) {
      return !done_[each] && (items_[each].what == order_class::start || items_[each].what == order_class::work);
    };
    if (std::none_of(rank.begin(), rank.end(), unfinished)) return take_rest(rank);
    std::optional<steps> best;
    for (const auto each : rank) {
      if (!unfinished(each)) continue;
      auto waits = waits_before(each);
      if (waits && (!best || highest_first(*waits) < highest_first(*best))) best = std::move(waits);
    }
    if (!best) return false;
    for (const auto each : *best) take(each);
    return true;
  }

  bool take_rest(const steps& rank) {
    bool moves = false;
    for (auto next = next_of_rest(rank); next; next = next_of_rest(rank)) {
      take(*next);
      moves = true;
    }
    return moves;
  }

  [[nodiscard]] std::optional<std::size_t> next_of_rest(const steps& rank) const {
    const auto wait = lowest_tag(rank, order_class::wait);
    return wait ? wait : lowest_tag(rank, order_class::last);
  }

  // What it lacks, by tag, if that is nothing but waits that can end.
  [[nodiscard]] std::optional<steps> waits_before(std::size_t item) const {
    steps found;
    for (const auto each : items_[item].after) {
      if (done_[each]) continue;
      if (!is_ready(each, order_class::wait) || !can_end(each)) return std::nullopt;
      found.push_back(each);
    }
    const auto key = [&](std::size_t each) { return std::pair(items_[each].tag, each); };
    std::sort(found.begin(), found.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    return found;
  }

  [[nodiscard]] bool can_end(std::size_t wait) const { return !items_[wait].started || done_[*items_[wait].started]; }

  [[nodiscard]] std::vector<int> highest_first(const steps& waits) const {
    std::vector<int> tags(waits.size());
    std::transform(waits.rbegin(), waits.rend(), tags.begin(), [&](std::size_t each) { return items_[each].tag; });
    return tags;
  }

  [[nodiscard]] std::optional<std::size_t> lacks(std::size_t item) const {
    for (const auto each : items_[item].after) {
      if (!done_[each]) return each;
    }
    const auto& other_end = items_[item].started;
    return other_end && !done_[*other_end] ? other_end : std::nullopt;
  }

  // Whoever has not been done lacks somebody who has not been done, so that a walk along them comes round.
  [[nodiscard]] steps circle() const {
    steps walk{static_cast<std::size_t>(std::find(done_.begin(), done_.end(), false) - done_.begin())};
    for (;;) {
      const auto next = lacks(walk.back());
      if (!next) return walk;
      const auto met = std::find(walk.begin(), walk.end(), *next);
      if (met != walk.end()) return {met, walk.end()};
      walk.push_back(*next);
    }
  }

  std::span<const order_item> items_;
  std::vector<steps> ranks_;
  std::vector<bool> done_;
  std::vector<std::size_t> lacking_;  // how many steps of `after` have not been done
  std::vector<steps> needed_by_;
  std::vector<steps> work_of_;  // of starts
  steps sequence_;
};

}  // namespace

order_result order_of(std::span<const order_item> items) { return orderer(items).run(); }

}  // namespace muster::detail
