// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_round.hpp>

#include <algorithm>
#include <utility>

namespace muster::detail {

namespace {

std::uint32_t incarnation_of(std::uint64_t number) { return static_cast<std::uint32_t>(number >> kv_number_bits); }

}  // namespace

kv_round::kv_round(kv_record so_far, std::size_t workers, std::size_t enough)
    : record_(std::move(so_far)), workers_(workers), enough_(enough) {
  record_.ranks.resize(std::max(record_.ranks.size(), workers));
}

// One that an owner has answered before it died is known by its number. One that comes when its worker's death has been
// told does not count any more. Numbers may be missing: of pushes that were refused.
kv_round::verdict kv_round::look(std::size_t rank, std::uint64_t number) const {
  const auto& of = record_.ranks[rank];
  const auto incarnation = incarnation_of(number);
  if (number == of.failed) return verdict::failed;
  if (number <= of.applied) return verdict::applied;
  if (number < of.failed || incarnation <= of.told || incarnation == of.pending) return verdict::failed;
  const auto before = given_.find(rank);
  if (before != given_.end() && before->second != number) return verdict::later;
  return incarnation == of.late ? verdict::late : verdict::open;
}

void kv_round::give(std::size_t rank, std::uint64_t number) { given_.insert_or_assign(rank, number); }

std::optional<std::size_t> kv_round::find_loss(std::span<const kv_worker> workers) const {
  for (std::size_t rank = 0; rank < workers_; ++rank) {
    const auto& found = workers[rank];
    if (found.state != member_state::lost || given_.contains(rank)) continue;
    if (record_.ranks[rank].told < found.incarnation) return rank;
  }
  return std::nullopt;
}

std::vector<std::size_t> kv_round::missing(std::span<const kv_worker> workers) const {
  std::vector<std::size_t> all;
  for (std::size_t rank = 0; rank < workers_; ++rank) {
    const auto state = workers[rank].state;
    const bool is_there = state == member_state::joined || state == member_state::expected;
    if (is_there && !given_.contains(rank)) all.push_back(rank);
  }
  return all;
}

bool kv_round::is_complete(std::span<const kv_worker> workers) const {
  if (given_.empty()) return false;
  return (enough_ != 0 && given_.size() >= enough_) || missing(workers).empty();
}

bool kv_round::is_ahead(std::size_t rank, std::uint64_t staleness, std::span<const kv_worker> workers) const {
  const auto own = record_.ranks[rank].pushes;
  for (std::size_t other = 0; other < workers_; ++other) {
    const auto pushes = record_.ranks[other].pushes;
    if (other == rank || pushes == 0 || workers[other].state != member_state::joined) continue;
    if (own > pushes && own - pushes > staleness) return true;
  }
  return false;
}

kv_record kv_round::after_round(std::span<const kv_worker> workers) const {
  auto next = record_;
  for (std::size_t rank = 0; rank < workers_; ++rank) {
    const auto found = given_.find(rank);
    auto& of = next.ranks[rank];
    if (found == given_.end()) {
      if (workers[rank].state == member_state::joined) of.late = workers[rank].incarnation;
      continue;
    }
    of.applied = found->second;
    ++of.pushes;
  }
  return next;
}

// One that is joined anew is as far as the slowest of the others.
kv_record kv_round::after_push(std::size_t rank, std::uint64_t number, std::span<const kv_worker> workers) const {
  auto next = record_;
  auto& of = next.ranks[rank];
  if (of.applied != 0 && incarnation_of(of.applied) != incarnation_of(number)) {
    for (std::size_t other = 0; other < workers_; ++other) {
      const auto pushes = record_.ranks[other].pushes;
      if (other == rank || pushes == 0 || workers[other].state != member_state::joined) continue;
      of.pushes = of.applied != 0 ? pushes : std::min(of.pushes, pushes);
      of.applied = 0;
    }
  }
  of.applied = number;
  ++of.pushes;
  return next;
}

kv_record kv_round::after_failed_push(std::size_t rank, std::uint64_t number, std::string why) const {
  auto next = record_;
  next.ranks[rank].failed = number;
  next.is_loss = false;
  next.why = std::move(why);
  return next;
}

kv_record kv_round::after_late(std::size_t rank, std::uint64_t number) const {
  auto next = record_;
  next.ranks[rank].applied = number;
  next.ranks[rank].late = 0;
  return next;
}

kv_record kv_round::after_telling(std::size_t rank, std::uint64_t number) const {
  auto next = record_;
  next.ranks[rank].failed = number;
  next.ranks[rank].pending = 0;
  return next;
}

// One that has not heard of the last failure yet hears of both at once.
kv_record kv_round::after_failure(std::span<const kv_worker> workers, bool is_loss, std::string why) const {
  auto next = record_;
  next.is_loss = is_loss;
  next.why = std::move(why);
  for (std::size_t rank = 0; rank < workers_; ++rank) {
    const auto found = given_.find(rank);
    auto& of = next.ranks[rank];
    of.late = 0;
    of.pending = 0;
    if (workers[rank].state == member_state::lost) of.told = workers[rank].incarnation;
    if (found != given_.end()) {
      of.failed = found->second;
    } else if (workers[rank].state == member_state::joined) {
      of.pending = workers[rank].incarnation;
    }
  }
  return next;
}

void kv_round::begin(kv_record record) {
  record_ = std::move(record);
  given_.clear();
}

}  // namespace muster::detail
