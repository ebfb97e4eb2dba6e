// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_members.hpp>

#include <string>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/rpc/detail/rpc_core.hpp>
#include <muster/serialize/exceptions.hpp>

#include "kv_names.hpp"

namespace muster::detail {

namespace {

void look_at(kv_owner& owner) { owner.look_at_workers(); }

std::size_t owners_of(const kv_options& how) { return how.owners != 0 ? how.owners : how.workers + how.spare_owners; }

bool has_ended(member_state state) { return state == member_state::left || state == member_state::lost; }

std::vector<std::size_t> places_of(const rpc_group& group, std::size_t count) {
  std::vector<std::size_t> all;
  for (std::size_t rank = 0; rank < count; ++rank) all.push_back(*group.core()->table().find(member_of_rank(rank)));
  return all;
}

}  // namespace

kv_members::kv_members(const kv_ticket& ticket, std::size_t rank, const store& values,
                       std::shared_ptr<kv_placed> placed, kv_owner::command_runner command)
    : workers_(ticket.options().workers),
      owners_(owners_of(ticket.options())),
      values_(values),
      group_(ticket.members(), member_of_rank(rank)),
      places_(places_of(group_, workers_ + ticket.options().spare_owners)) {
  if (rank < owners_) {
    const auto list = [this] {
      try {
        return workers();
      } catch (const error&) {
        throw owner_leaves();
      }
    };
    own_ = group_.publish(owner_of_rank(rank), kv_owner(kv_values(values_, std::move(placed)), as_owner(rank),
                                                        ticket.kind(), ticket.options(), list, std::move(command)));
  }
  group_.on_change([this](const rpc_change&) {
    wake_waiters(values_);
    try {
      if (own_) static_cast<void>(own_->call_async(look_at));
    } catch (const error&) {  // NOLINT(bugprone-empty-catch): this member leaves
    }
  });
}

std::shared_ptr<future_home> kv_members::home() const { return home_of(group_.core()); }

kv_worker kv_members::find(std::size_t rank) const {
  const auto& core = group_.core();
  const auto found = member_view::of(core->table(), places_[rank]);
  return {.state = found.told_as(core->where()), .incarnation = found.incarnation};
}

std::vector<kv_worker> kv_members::workers() const {
  std::vector<kv_worker> all;
  for (std::size_t rank = 0; rank < workers_; ++rank) all.push_back(find(rank));
  return all;
}

std::vector<std::size_t> kv_members::living() const {
  std::vector<std::size_t> all;
  const auto found = workers();
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    if (found[rank].state == member_state::joined) all.push_back(rank);
  }
  return all;
}

kv_ownership kv_members::as_owner(std::size_t rank) const {
  const auto found = find(rank);
  const bool is_it = found.incarnation != 0 && !has_ended(found.state);
  return {.rank = rank, .incarnation = found.incarnation + (is_it ? 0U : 1U)};
}

bool kv_members::is_gone(const kv_ownership& which) const {
  const auto found = find(which.rank);
  return found.incarnation > which.incarnation || has_ended(found.state);
}

std::optional<remote_ref<kv_owner>> kv_members::find_owner(const kv_ownership& which, deadline until) const {
  std::optional<remote_ref<kv_owner>> found;
  const auto is_over = [&] {
    found = published_by(which);
    return found || is_gone(which);
  };
  if (wait_for_change(values_, key_of_all('o'), is_over, until)) return found;
  throw task_error(error_info(errc::timed_out, text("rank ", which.rank, ", which owns keys, was not there in time")));
}

std::optional<remote_ref<kv_owner>> kv_members::published_by(const kv_ownership& which) const {
  const auto name = owner_of_rank(which.rank);
  if (!group_.is_published(name)) return std::nullopt;
  try {
    auto found = group_.find<kv_owner>(name);
    if (found.incarnation() == which.incarnation) return found;
  } catch (const error& failure) {
    if (failure.code() != errc::invalid_argument) throw;  // else it has left meanwhile
  }
  return std::nullopt;
}

std::vector<remote_ref<kv_owner>> kv_members::owners(deadline until) const {
  std::vector<remote_ref<kv_owner>> all;
  for (std::size_t rank = 0; rank < owners_; ++rank) {
    if (has_ended(find(rank).state)) continue;
    if (auto owner = find_owner(as_owner(rank), until)) all.push_back(*std::move(owner));
  }
  return all;
}

}  // namespace muster::detail
