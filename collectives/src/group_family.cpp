// SPDX-License-Identifier: BSL-1.0
// Groups that come of groups.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/collectives/detail/call_header.hpp>
#include <muster/collectives/detail/group_memory.hpp>

#include "broken_word.hpp"
#include "group_family.hpp"
#include "group_impl.hpp"

namespace muster {

using detail::rank_end;

shared_block detail::make_group_memory(rank_end& from, std::span<const std::size_t> ranks) {
  const auto& before = from.memory().shape();
  auto shape = group_shape::of(ranks.size(), before.inline_bytes, before.timeout, before.spin, before.is_crowded);
  shape.is_ordered = before.is_ordered;
  auto block = from.where()->blocks().allocate_shared(shape.total_bytes());
  const auto made = group_memory::make(block.bytes(), shape);
  for (std::size_t index = 0; index < ranks.size(); ++index) {
    made.line(index).member.store(from.memory().line(ranks[index]).member.load(std::memory_order_acquire),
                                  std::memory_order_relaxed);
  }
  return block;
}

shared_block detail::hold_group_memory(rank_end& end, std::uint64_t name) {
  auto block = end.where()->blocks().borrow(name);
  end.where()->blocks().keep(block);
  return block;
}

namespace {

// Made by a rank that may have died since: then it is gone.
shared_block hold(rank_end& end, std::uint64_t name, const detail::waiting_for& what) {
  try {
    return detail::hold_group_memory(end, name);
  } catch (const error& failure) {
    if (failure.code() == errc::corrupted) end.await_loss(what);
    throw;
  }
}

struct applicant {
  std::int64_t key = 0;
  std::size_t rank = 0;
  auto operator<=>(const applicant&) const = default;
};

}  // namespace

// ---- split

// In three calls: who belongs together; where the first of each has made their memory; whether everybody has it.
std::optional<group> group::split(int color, int key, const call_options& how) {
  return joined().make([&]() -> std::optional<group> {
    auto& end = *joined().end;
    const auto wishes = joined().calls.exchange_numbers(
        {static_cast<std::uint64_t>(std::int64_t{color}), static_cast<std::uint64_t>(std::int64_t{key})}, how);
    std::vector<applicant> members;
    for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
      if (static_cast<std::int64_t>(wishes[rank][0]) != color) continue;
      members.push_back({.key = static_cast<std::int64_t>(wishes[rank][1]), .rank = rank});
    }
    std::sort(members.begin(), members.end());
    const auto leader = members.front().rank;
    shared_block block;
    std::uint64_t name = 0;
    std::exception_ptr failure;
    const auto try_to = [&](auto get_block) {
      try {
        get_block();
      } catch (const group_error&) {  // the group is broken: nobody waits for this rank
        throw;
      } catch (const error&) {
        failure = std::current_exception();
      }
    };
    if (color >= 0 && leader == end.rank()) {
      try_to([&] {
        std::vector<std::size_t> ranks(members.size());
        std::transform(members.begin(), members.end(), ranks.begin(), [](const applicant& each) { return each.rank; });
        block = detail::make_group_memory(end, ranks);
        name = end.where()->blocks().name_of(block);
      });
    }
    const auto names = joined().calls.exchange_numbers({name, 0}, how);
    if (color >= 0 && leader != end.rank() && names[leader][0] != 0) {
      try_to([&] {
        block = hold(end, names[leader][0],
                     {.operation = "split", .sequence = end.sequence(), .timeout = how.timeout, .whom = leader});
      });
    }
    const auto lacks = joined().calls.exchange_numbers({failure ? 1U : 0U, 0}, how);
    joined().made += 2;
    if (failure) std::rethrow_exception(failure);
    if (color < 0) return std::nullopt;
    for (const auto& each : members) {
      if (lacks[each.rank][0] == 0) continue;
      throw error(errc::out_of_memory, text("split: rank ", each.rank, " had no room for the group of color ", color));
    }
    const auto self =
        std::find_if(members.begin(), members.end(), [&](const applicant& each) { return each.rank == end.rank(); });
    return group(
        std::make_shared<impl>(end.where(), std::move(block), static_cast<std::size_t>(self - members.begin())));
  });
}

// ---- subset

namespace {

void check_subset(std::span<const std::size_t> ranks, const rank_end& end) {
  const std::set<std::size_t> distinct(ranks.begin(), ranks.end());
  const bool is_possible = !ranks.empty() && distinct.size() == ranks.size() && *distinct.rbegin() < end.size();
  if (is_possible && distinct.contains(end.rank())) return;
  throw error(errc::invalid_argument,
              text("subset: of ", ranks.size(), " ranks, called by rank ", end.rank(), " of a group of ", end.size(),
                   ": the ranks must be in the group, each once, and the caller must be one of them"));
}

// Beyond the tags that users have.
std::uint64_t tag_of(std::span<const std::size_t> ranks) {
  constexpr std::uint64_t internal = std::uint64_t{1} << 63U;
  detail::fingerprint mixed;
  for (const auto each : ranks) mixed.add(each);
  return internal | mixed.value() >> 1U;
}

// What became of one of its messages became of the subset; whoever made that knows of no messages.
template <class Make>
auto as_subset(Make make) {
  const auto about = [](const group_error& found) {
    return group_error::particulars{
        .operation = "subset", .missing = found.missing(), .lost = found.lost(), .broken_by = found.broken_by()};
  };
  try {
    return make();
  } catch (const peer_lost& found) {
    throw peer_lost(text("subset: ", found.what()), about(found));
  } catch (const group_error& found) {
    throw group_error(static_cast<errc>(found.code().value()), text("subset: ", found.what()), about(found));
  }
}

}  // namespace

namespace {

/// The messages by which the ranks of a subset meet: the first of them, who leads, names the memory that it has made,
/// and each of the others, the name that it has heard.
///
/// An attempt that a leader has given up leaves names behind, and answers: a follower hears the next one where the
/// memory is gone, or void, and the leader does not take an older name for an answer.
///
/// Thread safety: belongs to the thread that made it.
class meeting {
public:
  meeting(rank_end& end, detail::mailbox& mail, std::span<const std::size_t> ranks, const call_options& how)
      : end_(end),
        mail_(mail),
        ranks_(ranks),
        tag_(tag_of(ranks)),
        until_(deadline::after(how.timeout.value_or(end.memory().shape().timeout))) {}

  [[nodiscard]] shared_block lead() {
    auto block = detail::make_group_memory(end_, ranks_);
    const auto name = end_.where()->blocks().name_of(block);
    try {
      for (const auto each : ranks_.subspan(1)) say(each, name);
      for (const auto each : ranks_.subspan(1)) {
        while (hear(each) != name) continue;
      }
    } catch (const peer_lost&) {
      make_void(block, detail::broken_word::cause::lost);
      throw;
    } catch (...) {
      make_void(block, detail::broken_word::cause::timeout);
      throw;
    }
    return block;
  }

  [[nodiscard]] shared_block follow() {
    for (;;) {
      const auto name = hear(ranks_[0]);
      auto block = find(name);
      if (!block) continue;
      say(ranks_[0], name);
      return block;
    }
  }

private:
  void say(std::size_t to, std::uint64_t name) {
    const auto number = tensor::full<std::uint64_t>({1}, name, memory::local);
    end(*mail_.send(number, to, tag_));
  }
  [[nodiscard]] std::uint64_t hear(std::size_t from) {
    const auto number = tensor::zeros<std::uint64_t>({1}, memory::local);
    end(*mail_.receive(&number, from, tag_));
    return number.item<std::uint64_t>();
  }
  void end(detail::transfer& message) {
    if (!message.wait(until_) && (message.cancel() || !message.has_ended())) {
      throw group_error(errc::timed_out, text(message.describe(), " timed out in rank ", end_.rank()),
                        {.operation = message.name(), .missing = message.missing(), .lost = {}});
    }
    if (const auto failure = message.failure()) std::rethrow_exception(failure);
  }

  // Nothing where its leader has given it up; if that is dead, the next wait for it says so.
  [[nodiscard]] shared_block find(std::uint64_t name) {
    try {
      auto block = detail::hold_group_memory(end_, name);
      const bool is_void = detail::group_memory::attach(block.bytes()).broken().load(std::memory_order_acquire) != 0;
      return is_void ? shared_block() : block;
    } catch (const error& failure) {
      if (failure.code() != errc::corrupted) throw;
      return {};
    }
  }
  // Those who have it already find a group that is broken, and may sleep in it.
  static void make_void(const shared_block& block, detail::broken_word::cause why) {
    const auto made = detail::group_memory::attach(block.bytes());
    std::uint64_t whole = 0;
    made.broken().compare_exchange_strong(whole, detail::broken_word{.why = why, .rank = 0, .sequence = 0}.pack());
    rank_end::raise_all(made);
  }

  rank_end& end_;
  detail::mailbox& mail_;
  const std::span<const std::size_t> ranks_;
  const std::uint64_t tag_;
  const deadline until_;
};

}  // namespace

group group::subset(std::span<const std::size_t> ranks, const call_options& how) {
  auto& end = *joined().end;
  check_subset(ranks, end);
  const auto new_rank = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), end.rank()) - ranks.begin());
  return as_subset([&] {
    meeting others(end, *joined().mail, ranks, how);
    auto block = new_rank == 0 ? others.lead() : others.follow();
    return group(std::make_shared<impl>(end.where(), std::move(block), new_rank));
  });
}

}  // namespace muster
