// SPDX-License-Identifier: BSL-1.0
// The group of those who are left. It is made as follows.
//
// Everybody says that he is there, and waits until all have or are gone, or the time is over. Then the first of those
// who are there *claims* to lead, makes the memory, *chooses* who is in, and *offers* it. Everybody who is chosen takes
// a hold on the memory and says so; when all have that are not gone, the leader *settles* it. Until then nobody uses
// it, so should the leader die or leave before, the next one claims and offers other memory; and after that everybody
// has a hold of his own, so nobody's death takes it away. Whoever was chosen and does not come is left out in the next
// round.
#include <algorithm>
#include <utility>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "group_family.hpp"
#include "group_impl.hpp"
#include "succession.hpp"

namespace muster {

namespace {

using detail::rank_end;
using detail::succession_word;
using detail::survival_word;

constexpr auto consistent = std::memory_order_seq_cst;

bool is_gone(const rank_end& end, std::size_t rank) { return end.is_dead(rank) || end.has_left(rank); }

survival_word survival(const rank_end& end, std::size_t rank) {
  return survival_word::unpack(end.memory().line(rank).survives.load(consistent));
}

bool is_there(const rank_end& end, std::size_t rank) {
  return survival(end, rank).now != survival_word::state::none && !is_gone(end, rank);
}

bool all_are_there(const rank_end& end) {
  for (std::size_t rank = 0; rank < end.size(); ++rank) {
    if (survival(end, rank).now == survival_word::state::none && !is_gone(end, rank)) return false;
  }
  return true;
}

void require_losses(rank_end& end) {
  if (end.is_broken()) return;
  for (std::size_t rank = 0; rank < end.size(); ++rank) {
    if (rank != end.rank() && is_gone(end, rank)) return end.mark_lost();
  }
  throw error(errc::invalid_argument,
              "shrink: the group is whole, and nobody has left it: there is nobody to leave out");
}

/// What one rank does about it.
class succession {
public:
  succession(rank_end& end, const call_options& how)
      : end_(end), timeout_(how.timeout.value_or(end.memory().shape().timeout)) {}

  void announce() {
    std::uint32_t none = 0;
    const survival_word here{.now = survival_word::state::waits};
    line(end_.rank()).survives.compare_exchange_strong(none, here.pack(), consistent);
    end_.raise_all();
    const auto is_begun = [&] {
      const auto found = now();
      return (found.now != succession_word::phase::none && !is_left_over(found)) || all_are_there(end_);
    };
    static_cast<void>(end_.wait_here(deadline::after(timeout_), is_begun));
  }

  /// False when nobody has settled it in time, or without this rank.
  bool settle() {
    // A leader may have waited longer than this rank, and waits in each round for those whom he has chosen.
    auto patience = clock::now();
    for (int rounds = 0; rounds < 3; ++rounds) patience = later(patience, timeout_);
    if (!end_.wait_here(deadline(patience), [&] { return go_on(); })) return false;
    const auto mine = survival(end_, end_.rank());
    return block_ && mine.now == survival_word::state::holds && mine.is_of(now().round);
  }
  [[nodiscard]] bool is_settled() const noexcept { return now().now == succession_word::phase::settled; }

  [[nodiscard]] std::size_t place() const { return survival(end_, end_.rank()).place; }
  [[nodiscard]] shared_block take() { return std::move(block_); }

private:
  [[nodiscard]] detail::rank_line& line(std::size_t rank) const noexcept { return end_.memory().line(rank); }
  [[nodiscard]] succession_word now() const noexcept {
    return succession_word::unpack(end_.memory().succession().load(consistent));
  }
  void say(succession_word::phase phase, std::uint32_t round) {
    end_.memory().succession().store(succession_word{.now = phase, .round = round, .leader = end_.rank()}.pack(),
                                     consistent);
    end_.raise_all();
  }

  // This rank led in an earlier call, which failed: for want of memory, say.
  [[nodiscard]] bool is_left_over(const succession_word& found) const noexcept {
    const bool is_under_way =
        found.now == succession_word::phase::claimed || found.now == succession_word::phase::offered;
    return is_under_way && found.leader == end_.rank();
  }

  bool go_on() {
    const auto found = now();
    if (found.now == succession_word::phase::settled) return true;
    if (try_to_claim(found)) return lead(found.round + 1), true;
    if (found.now == succession_word::phase::offered) follow(found);
    return false;
  }

  // What names no rank, since somebody has overwritten it, is followed as one that is gone.
  [[nodiscard]] bool has_leader(const succession_word& found) const {
    return found.now != succession_word::phase::none && found.leader < end_.size() && !is_gone(end_, found.leader);
  }

  // The first of those who are there, while there is no leader; of whom the others think that he leads, he himself.
  bool try_to_claim(const succession_word& found) {
    if (!is_left_over(found)) {
      if (has_leader(found)) return false;
      for (std::size_t rank = 0; rank < end_.rank(); ++rank) {
        if (is_there(end_, rank)) return false;
      }
    }
    auto expected = found.pack();
    const succession_word mine{.now = succession_word::phase::claimed, .round = found.round + 1, .leader = end_.rank()};
    return end_.memory().succession().compare_exchange_strong(expected, mine.pack(), consistent);
  }

  void lead(std::uint32_t round) {
    auto members = all_of([&](std::size_t rank) { return is_there(end_, rank); });
    for (;; ++round) {
      offer(members, round);
      const auto is_waited_for = [&](std::size_t rank) { return !has_it(rank, round) && !is_gone(end_, rank); };
      const auto all_have_it = [&] { return std::none_of(members.begin(), members.end(), is_waited_for); };
      if (end_.wait_here(deadline::after(timeout_), all_have_it)) break;
      std::erase_if(members, is_waited_for);
    }
    say(succession_word::phase::settled, round);
  }

  void offer(const std::vector<std::size_t>& members, std::uint32_t round) {
    block_ = detail::make_group_memory(end_, members);
    end_.memory().successor().store(end_.where()->blocks().name_of(block_), consistent);
    for (std::size_t place = 0; place < members.size(); ++place) {
      const auto rank = members[place];
      const auto state = rank == end_.rank() ? survival_word::state::holds : survival_word::state::chosen;
      line(rank).survives.store(survival_word{.now = state, .round = round, .place = place}.pack(), consistent);
    }
    say(succession_word::phase::offered, round);
  }

  [[nodiscard]] bool has_it(std::size_t rank, std::uint32_t round) const {
    const auto found = survival(end_, rank);
    return found.now == survival_word::state::holds && found.is_of(round);
  }

  // What is not there any more was made by a leader who is dead: another one will claim. And what belongs to the next
  // round already is not used in this one, which nobody settles any more.
  void follow(const succession_word& found) {
    const auto mine = survival(end_, end_.rank());
    if (mine.now != survival_word::state::chosen || !mine.is_of(found.round) || found.leader >= end_.size()) return;
    const auto name = end_.memory().successor().load(consistent);
    try {
      block_ = detail::hold_group_memory(end_, name);
    } catch (const error&) {
      return;
    }
    auto expected = mine.pack();
    auto holds = mine;
    holds.now = survival_word::state::holds;
    if (line(end_.rank()).survives.compare_exchange_strong(expected, holds.pack(), consistent)) {
      end_.notify(found.leader);
    }
  }

  template <class Predicate>
  [[nodiscard]] std::vector<std::size_t> all_of(Predicate is_in) const {
    std::vector<std::size_t> found;
    for (std::size_t rank = 0; rank < end_.size(); ++rank) {
      if (is_in(rank)) found.push_back(rank);
    }
    return found;
  }

  rank_end& end_;
  const std::chrono::nanoseconds timeout_;
  shared_block block_;
};

}  // namespace

group group::shrink(const call_options& how) {
  auto& end = *joined().end;
  require_losses(end);
  joined().queued.finish();  // they end, since the group is broken; and touch nobody's tensors after this
  joined().calls.devices().drop();
  succession all(end, how);
  all.announce();
  if (!all.settle()) {
    throw group_error(
        errc::timed_out,
        text("shrink: rank ", end.rank(),
             all.is_settled() ? " came too late: the others went on without it" : " waited in vain for the others"),
        {.operation = "shrink", .missing = {}, .lost = {}});
  }
  group made(std::make_shared<impl>(end.where(), all.take(), all.place()));
  try {
    made.barrier(how);  // nobody is at a call of the old group any more
  } catch (const group_error& failure) {
    if (failure.code() == errc::cancelled) throw;
    return made.shrink(how);
  }
  return made;
}

}  // namespace muster
