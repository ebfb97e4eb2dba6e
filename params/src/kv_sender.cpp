// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_sender.hpp>

#include <algorithm>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/params/detail/kv_wire.hpp>
#include <muster/serialize/exceptions.hpp>

#include "kv_names.hpp"

namespace muster::detail {

namespace {

rpc_call_options within(deadline until) {
  return {.deadline = std::max(until.left(forever), std::chrono::nanoseconds(1))};
}

std::string describe(kv_owner& owner) { return owner.describe_rounds(); }

kv_answer withdraw_at(kv_owner& owner, const store_key& key, std::size_t rank, std::uint64_t number) {
  return owner.withdraw(key, rank, number);
}

constexpr auto soon = std::chrono::seconds(1);

}  // namespace

kv_sender::kv_sender(const kv_members& members, const store& values, std::size_t rank)
    : members_(members), values_(values), rank_(rank), first_(first_number(members.find(rank).incarnation)) {}

void kv_sender::set_updater_giver(updater_giver give) {
  const scoped_lock lock(mutex_);
  giver_ = std::move(give);
}

std::uint64_t kv_sender::next_number(const store_key& key) {
  const scoped_lock lock(mutex_);
  return numbers_.try_emplace(key, first_).first->second++;
}

void kv_sender::require_there(const store_key& key) const {
  if (!values_.contains(key)) throw error(errc::invalid_argument, text("there is no value ", key, ": init it first"));
}

kv_sending kv_sender::begin(const store_key& key, kv_gradient gradient, deadline until) {
  require_there(key);
  kv_sending made{
      .key = key, .what = {.rank = rank_, .number = next_number(key), .gradient = std::move(gradient)}, .until = until};
  send(made);
  return made;
}

// To the owner that the store names, which is another when that one has died.
void kv_sender::send(kv_sending& which) {
  for (;;) {
    const auto owner = values_.try_pull<kv_ownership>(key_beside(which.key, 'o'));
    if (!owner) throw error(errc::invalid_argument, text("there is no value ", which.key, ": init it first"));
    which.owner = owner->value;
    const auto to = members_.find_owner(which.owner, which.until);
    if (!to) {
      take_over(which.key, which.owner);
      continue;
    }
    try {
      which.call = send_push(*to, within(which.until), which.key, which.what);
      return;
    } catch (const task_error& failure) {
      if (failure.code() != errc::peer_lost) throw;
    }
  }
}

// Of several that find an owner gone the first one says which is next.
void kv_sender::take_over(const store_key& key, const kv_ownership& from) {
  const auto note = key_beside(key, 'o');
  const auto now = values_.try_pull<kv_ownership>(note);
  if (!now || now->value != from) return;
  const auto owners = members_.owner_count();
  for (std::size_t each = 1; each <= owners; ++each) {
    const auto next = (from.rank + each) % owners;
    if (members_.find(next).state != member_state::joined) continue;
    static_cast<void>(values_.push(note, members_.as_owner(next), {.expected = now->version}));
    return;
  }
  throw task_error(error_info(errc::peer_lost, text("the owner of the key ", key, ", rank ", from.rank,
                                                    ", is not there, and no other owner is")));
}

// One that does not come in time does not count any more, if its owner can be told soon.
kv_answer kv_sender::withdraw(const kv_sending& which) const {
  const auto rounds = describe_rounds();
  const auto until = deadline::after(soon);
  kv_answer found{.what = kv_answer::verdict::failed};
  try {
    const auto to = members_.find_owner(which.owner, until);
    if (to) found = to->with(within(until)).call(withdraw_at, which.key, which.what.rank, which.what.number);
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): it does not answer
  }
  if (found.what == kv_answer::verdict::applied) return found;
  throw task_error(error_info(
      errc::timed_out, text("the push of ", which.key, " by worker ", rank_, " has not been applied in time", rounds)));
}

// Nothing when the owner is not there any more.
std::optional<kv_answer> kv_sender::answer_of(const kv_sending& which, outcome<kv_answer> how) const {
  try {
    return std::move(how).get();
  } catch (const task_error& failure) {
    if (failure.code() == errc::timed_out) return withdraw(which);
    if (failure.code() != errc::peer_lost) throw;
    return std::nullopt;
  }
}

std::optional<std::uint64_t> kv_sender::judge(const kv_sending& which, outcome<kv_answer> how) {
  const auto answer = answer_of(which, std::move(how));
  if (!answer) return std::nullopt;
  if (answer->what == kv_answer::verdict::applied) return answer->version;
  if (answer->what == kv_answer::verdict::failed) throw_failed(which, *answer);
  if (answer->what == kv_answer::verdict::lacks_updater) give_updater(which);
  return std::nullopt;
}

std::uint64_t kv_sender::finish(kv_sending& which) {
  for (;;) {
    auto how = outcome<kv_answer>::of_call([&] { return which.call->get(); });
    if (const auto version = judge(which, std::move(how))) return *version;
    send(which);
  }
}

void kv_sender::give_updater(const kv_sending& which) {
  updater_giver give;
  {
    const scoped_lock lock(mutex_);
    give = giver_;
  }
  const auto to = members_.find_owner(which.owner, which.until);
  if (!to) return;
  if (give) return give(*to);
  throw error(errc::invalid_argument, text("the updater of the key ", which.key, " went with its owner, and worker ",
                                           rank_, " has none: each worker calls set_updater"));
}

void kv_sender::throw_failed(const kv_sending& which, const kv_answer& why) const {
  throw task_error(error_info(why.is_loss ? errc::peer_lost : errc::invalid_argument,
                              text("the push of ", which.key, " by worker ", rank_, " had no effect: ", why.why)));
}

// What the owners say that they wait for, as far as they say it soon.
std::string kv_sender::describe_rounds() const {
  std::string rounds;
  const auto until = deadline::after(soon);
  try {
    for (const auto& each : members_.owners(until)) {
      const auto found = each.with(within(until)).call(describe);
      if (!found.empty()) rounds += text(rounds.empty() ? ": " : "; ", found);
    }
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): they are not there, or do not answer
  }
  return rounds;
}

}  // namespace muster::detail
