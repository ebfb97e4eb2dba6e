// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_round.hpp>

#include <algorithm>
#include <utility>

namespace muster::detail {

namespace {

std::uint64_t last_of(const kv_rank_record& of) { return std::max(of.applied, of.failed); }

std::uint32_t incarnation_of(std::uint64_t number) { return static_cast<std::uint32_t>(number >> kv_number_bits); }

bool is_first(std::uint64_t number) { return number == first_number(incarnation_of(number)); }

}  // namespace

kv_round::kv_round(kv_record so_far, std::size_t workers, std::size_t enough)
    : record_(std::move(so_far)), workers_(workers), enough_(enough) {
  record_.ranks.resize(std::max(record_.ranks.size(), workers));
}

std::uint64_t kv_round::next_number(std::size_t rank, std::uint32_t incarnation) const {
  return std::max(last_of(record_.ranks[rank]) + 1, first_number(incarnation));
}

// One that an owner has answered before it died is known by its number. One that comes when its worker's death has been
// told does not count any more.
kv_round::verdict kv_round::look(std::size_t rank, std::uint64_t number) const {
  const auto& of = record_.ranks[rank];
  if (incarnation_of(number) <= of.told) return number <= of.applied ? verdict::applied : verdict::failed;
  if (number == of.failed) return verdict::failed;
  if (number <= of.applied) return verdict::applied;
  if (number != last_of(of) + 1 && !is_first(number)) return verdict::later;
  if (of.is_late) return verdict::late;
  const auto before = given_.find(rank);
  return before == given_.end() || before->second == number ? verdict::open : verdict::later;
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
    const auto state = workers[rank].state;
    if (state == member_state::lost) of.told = workers[rank].incarnation;
    if (found == given_.end()) {
      of.is_late = of.is_late || state == member_state::joined;
      continue;
    }
    of.applied = found->second;
    ++of.pushes;
  }
  return next;
}

kv_record kv_round::after_push(std::size_t rank, std::uint64_t number) const {
  auto next = record_;
  next.ranks[rank].applied = number;
  ++next.ranks[rank].pushes;
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
  next.ranks[rank].is_late = false;
  return next;
}

kv_record kv_round::after_telling(std::size_t rank) const {
  auto next = record_;
  next.ranks[rank].is_pending = false;
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
    if (workers[rank].state == member_state::lost) of.told = workers[rank].incarnation;
    of.is_late = false;
    const bool was_pending = std::exchange(of.is_pending, false);
    if (found != given_.end()) {
      of.failed = found->second;
    } else if (workers[rank].state == member_state::joined) {
      const auto incarnation = workers[rank].incarnation;
      if (!was_pending || incarnation_of(of.failed) != incarnation) of.failed = next_number(rank, incarnation);
      of.is_pending = true;
    }
  }
  return next;
}

void kv_round::begin(kv_record record) {
  record_ = std::move(record);
  given_.clear();
}

}  // namespace muster::detail
