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

// Made by a rank that may have died since.
shared_block hold(rank_end& end, std::uint64_t name, const detail::waiting_for& what) {
  try {
    return detail::hold_group_memory(end, name);
  } catch (const error&) {
    end.await_loss(what);
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

// In three calls: who belongs together; where the first of each has made their memory; everybody has it.
std::optional<group> group::split(int color, int key, const call_options& how) {
  return self_->make([&]() -> std::optional<group> {
    auto& end = *self_->end;
    const auto wishes = self_->calls.exchange_numbers(
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
    try {
      if (color >= 0 && leader == end.rank()) {
        std::vector<std::size_t> ranks(members.size());
        std::transform(members.begin(), members.end(), ranks.begin(), [](const applicant& each) { return each.rank; });
        block = detail::make_group_memory(end, ranks);
        name = end.where()->blocks().name_of(block);
      }
    } catch (const error&) {
      failure = std::current_exception();
    }
    const auto names = self_->calls.exchange_numbers({name, 0}, how);
    if (color >= 0 && leader != end.rank() && names[leader][0] != 0) {
      block = hold(end, names[leader][0],
                   {.operation = "split", .sequence = end.sequence(), .timeout = how.timeout, .whom = leader});
    }
    static_cast<void>(self_->calls.exchange_numbers({}, how));
    self_->made += 2;
    if (failure) std::rethrow_exception(failure);
    if (color < 0) return std::nullopt;
    if (!block) {
      throw error(errc::out_of_memory, text("split: rank ", leader, " had no memory for the group of color ", color));
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
    return group_error::particulars{.operation = "subset", .missing = found.missing(), .lost = found.lost()};
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

group group::subset(std::span<const std::size_t> ranks, const call_options& how) {
  auto& end = *self_->end;
  check_subset(ranks, end);
  const auto tag = tag_of(ranks);
  const auto until = deadline::after(how.timeout.value_or(end.memory().shape().timeout));
  const auto wait = [&](const std::shared_ptr<detail::transfer>& message) {
    if (!message->wait(until)) {
      message->cancel();
      throw group_error(errc::timed_out, text(message->describe(), " timed out in rank ", end.rank()),
                        {.operation = message->name(), .missing = message->missing(), .lost = {}});
    }
    if (const auto failure = message->failure()) std::rethrow_exception(failure);
  };
  const auto new_rank = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), end.rank()) - ranks.begin());
  return as_subset([&] {
    auto number = tensor::zeros<std::uint64_t>({1}, memory::local);
    shared_block block;
    if (new_rank != 0) {
      wait(self_->mail->receive(&number, ranks[0], tag));
      block =
          hold(end, number.item<std::uint64_t>(), {.operation = "subset", .timeout = how.timeout, .whom = ranks[0]});
      wait(self_->mail->send(number, ranks[0], tag));
    } else {
      block = detail::make_group_memory(end, ranks);
      number.fill(end.where()->blocks().name_of(block));
      for (const auto each : ranks.subspan(1)) wait(self_->mail->send(number, each, tag));
      for (const auto each : ranks.subspan(1)) wait(self_->mail->receive(&number, each, tag));  // it has the memory
    }
    return group(std::make_shared<impl>(end.where(), std::move(block), new_rank));
  });
}

}  // namespace muster
