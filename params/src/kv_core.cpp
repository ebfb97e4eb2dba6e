// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_core.hpp>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/serialize/exceptions.hpp>

#include "kv_names.hpp"

namespace muster::detail {

namespace {

/// Of an owner that leaves: it cannot tell any more which workers are there.
struct owner_leaves : std::exception {};

kv_answer push_at(kv_owner& owner, const store_key& key, std::size_t rank, std::uint64_t count, const tensor& value) {
  try {
    return owner.push(key, rank, count, value);
  } catch (const owner_leaves&) {
    return {.what = kv_answer::verdict::leaving};
  }
}

void look_at(kv_owner& owner) { owner.look_at_workers(); }

const kv_ticket& require_any(const kv_ticket& ticket, std::size_t rank) {
  if (!ticket) throw error(errc::invalid_argument, "an empty kv_ticket was used: it is for no store");
  const auto all = ticket.options().workers + ticket.options().spare_owners;
  if (rank < all) return ticket;
  throw error(errc::invalid_argument,
              text("rank ", rank, " of a key-value store of ", ticket.options().workers, " workers and ",
                   ticket.options().spare_owners, " spare owners: ranks are 0 to ", all - 1));
}

kv_kind require_alone(kv_kind kind) {
  if (kind == kv_kind::local) return kind;
  throw error(errc::invalid_argument, text("a key-value store of kind ", kind,
                                           " needs a kv_ticket, which the program makes and gives to its workers"));
}

std::chrono::nanoseconds left_of(deadline until) { return std::max(until.left(forever), std::chrono::nanoseconds(1)); }

}  // namespace

kv_core::kv_core(const kv_ticket& ticket, std::size_t rank)
    : kind_(require_any(ticket, rank).kind()), how_(ticket.options()), rank_(rank), values_(ticket.values()) {
  loads_.resize(owner_count());
  group_.emplace(ticket.members(), member_of_rank(rank));
  if (rank < owner_count()) {
    own_ = group_->publish(owner_of_rank(rank),
                           kv_owner(values_, kind_, how_, [this](std::size_t of) { return state_for_owner(of); }));
  }
  group_->on_change([this](const rpc_change&) { look_at_change(); });
}

kv_core::kv_core(kv_kind kind)
    : kind_(require_alone(kind)), how_(), rank_(0), values_(store_ticket(store_options())), loads_(1) {
  local_.emplace(values_, kind_, how_, [](std::size_t) { return member_state::joined; });
}

// Leaving ends the callbacks, which use all that is declared before the group.
kv_core::~kv_core() {
  if (group_) group_->leave();
}

std::size_t kv_core::owner_count() const noexcept {
  return how_.owners != 0 ? how_.owners : how_.workers + how_.spare_owners;
}

member_state kv_core::state_of(std::size_t rank) const {
  const auto name = member_of_rank(rank);
  for (const auto& each : group_->states()) {
    if (each.name == name) return each.state;
  }
  return member_state::left;
}

member_state kv_core::state_for_owner(std::size_t rank) const {
  try {
    return state_of(rank);
  } catch (const error&) {
    throw owner_leaves();
  }
}

std::vector<std::size_t> kv_core::living() const {
  std::vector<std::size_t> all;
  for (std::size_t rank = 0; rank < how_.workers; ++rank) {
    if (!group_ || state_of(rank) == member_state::joined) all.push_back(rank);
  }
  return all;
}

void kv_core::look_at_change() {
  changes_.fetch_add(1, std::memory_order_seq_cst);
  wake_waiters(values_);
  try {
    if (own_) static_cast<void>(own_->call_async(look_at));
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): this member leaves
  }
}

// Each says in the store how often it has come: the spare owners do not.
void kv_core::barrier(std::chrono::nanoseconds timeout) {
  const auto count_of = [&](std::size_t rank) { return std::string{own_byte, 'b'} + std::to_string(rank); };
  const auto own = values_.push(count_of(rank_), rank_).version;
  wake_waiters(values_);
  std::string missing;
  const auto has_come = [&](std::size_t rank) {
    if (values_.version(count_of(rank)) >= own) return true;
    const auto found = state_of(rank);
    if (found == member_state::lost) {
      throw task_error(error_info(errc::peer_lost, text("worker ", rank, " has died before a barrier")));
    }
    return found == member_state::left;
  };
  const auto have_come = [&] {
    missing.clear();
    for (std::size_t rank = 0; rank < how_.workers; ++rank) {
      if (!has_come(rank)) missing += text(missing.empty() ? "" : ", ", rank);
    }
    return missing.empty();
  };
  const auto until = deadline::after(timeout.count() != 0 ? timeout : how_.timeout);
  if (!group_ || wait_for_change(values_, count_of(rank_), have_come, until)) return;
  throw task_error(
      error_info(errc::timed_out, text("a barrier of a key-value store waited in vain for workers ", missing)));
}

// The one that has least to do.
std::size_t kv_core::choose_owner(std::size_t bytes) {
  const scoped_lock lock(mutex_);
  const auto least = std::min_element(loads_.begin(), loads_.end());
  *least += bytes;
  return static_cast<std::size_t>(least - loads_.begin());
}

void kv_core::init(const store_key& key, const tensor& value) {
  {
    const scoped_lock lock(mutex_);
    if (!known_.insert(key).second) {
      throw error(errc::invalid_argument, text("the key ", key, " was initialized twice by worker ", rank_));
    }
  }
  if (rank_ == 0 && !values_.contains(key)) {
    const auto owner = choose_owner(value.nbytes());
    static_cast<void>(values_.push_all({{key, value, 0}, {key_beside(key, 'o'), owner}}));
    return;
  }
  if (values_.wait_for(key, 1, how_.timeout)) return;
  throw task_error(error_info(errc::timed_out, text("worker ", rank_, " waited in vain for the value ", key,
                                                    ": rank 0 has not initialized it")));
}

void kv_core::set_rule(const update_rule& rule) {
  rule.require();
  const std::string key{own_byte, 'r'};
  for (;;) {
    const auto now = values_.try_pull<update_rule>(key);
    if (now && now->value == rule) return;
    if (values_.push(key, rule, {.expected = now ? now->version : 0})) return;
  }
}

void kv_core::set_own_updater(kv_updater by) {
  const scoped_lock lock(mutex_);
  if (local_) local_->set_updater(std::move(by));
}

std::vector<remote_ref<kv_owner>> kv_core::owners() const {
  std::vector<remote_ref<kv_owner>> all;
  for (std::size_t rank = 0; group_ && rank < owner_count(); ++rank) {
    const auto found = state_of(rank);
    if (found == member_state::left || found == member_state::lost) continue;
    if (auto owner = find_owner(rank, deadline::after(how_.timeout))) all.push_back(*std::move(owner));
  }
  return all;
}

// All are sent before any is waited for.
void kv_core::push(std::span<const store_key> keys, std::span<const tensor> values) {
  if (keys.size() != values.size()) {
    throw error(errc::invalid_argument, text(keys.size(), " keys and ", values.size(), " values were pushed"));
  }
  const auto until = deadline::after(how_.timeout);
  std::vector<sent> all;
  for (std::size_t each = 0; each < keys.size(); ++each) {
    const scoped_lock lock(mutex_);
    all.push_back({.key = &keys[each], .value = &values[each], .count = ++pushes_[keys[each]]});
  }
  for (auto& each : all) send(each, until);
  if (kind_ != kv_kind::sync) return;
  for (auto& each : all) await(each, until);
}

// One that joins publishes its part next; one that is not there is not waited for.
std::optional<remote_ref<kv_owner>> kv_core::find_owner(std::size_t rank, deadline until) const {
  const auto name = owner_of_rank(rank);
  const auto is_over = [&] {
    const auto found = state_of(rank);
    return group_->is_published(name) || found == member_state::left || found == member_state::lost;
  };
  for (;;) {
    if (!wait_for_change(values_, std::string{own_byte, 'o'}, is_over, until)) {
      throw task_error(error_info(errc::timed_out, text("rank ", rank, ", which owns keys, was not there in time")));
    }
    if (!group_->is_published(name)) return std::nullopt;
    try {
      return group_->find<kv_owner>(name);
    } catch (const error& failure) {
      if (failure.code() != errc::invalid_argument) throw;  // else it has left meanwhile
    }
  }
}

kv_answer kv_core::ask(const sent& which, deadline until) {
  if (!group_) {
    const scoped_lock lock(mutex_);
    return local_->push(*which.key, rank_, which.count, *which.value);
  }
  const auto owner = find_owner(which.owner, until);
  if (!owner) return {.what = kv_answer::verdict::leaving};
  try {
    return owner->with({.deadline = left_of(until)}).call(push_at, *which.key, rank_, which.count, *which.value);
  } catch (const member_lost&) {
    return {.what = kv_answer::verdict::leaving};
  }
}

// Until an owner has taken it: the one that the store names, which is another when that has died.
void kv_core::send(sent& which, deadline until) {
  for (;;) {
    const auto owner = values_.try_pull<std::size_t>(key_beside(*which.key, 'o'));
    if (!owner) throw error(errc::invalid_argument, text("there is no value ", *which.key, ": init it first"));
    which.owner = owner->value;
    const auto changes = changes_.load(std::memory_order_seq_cst);
    if (group_ && state_of(which.owner) != member_state::joined) {
      take_over(*which.key, which.owner);
      continue;
    }
    which.answer = ask(which, until);
    if (which.answer.what == kv_answer::verdict::leaving) continue;
    if (which.answer.what != kv_answer::verdict::ahead) return;
    const auto is_to_ask = [&] {
      return values_.version(*which.key) > which.answer.version || changes_.load(std::memory_order_seq_cst) != changes;
    };
    if (!wait_for_change(values_, *which.key, is_to_ask, until)) throw_late(which);
  }
}

void kv_core::await(sent& which, deadline until) {
  const auto failures = key_beside(*which.key, 'f');
  for (;;) {
    if (which.answer.what == kv_answer::verdict::failed) throw_failed(*which.key);
    const auto is_over = [&] {
      return values_.version(*which.key) >= which.answer.version || values_.version(failures) >= which.answer.failure ||
             (group_ && state_of(which.owner) != member_state::joined);
    };
    if (!wait_for_change(values_, *which.key, is_over, until)) throw_late(which);
    if (values_.version(*which.key) >= which.answer.version) return;
    if (values_.version(failures) >= which.answer.failure) throw_failed(*which.key);
    send(which, until);
  }
}

// Of several that find an owner dead the first one says which is next.
void kv_core::take_over(const store_key& key, std::size_t from) {
  const auto note = key_beside(key, 'o');
  const auto now = values_.try_pull<std::size_t>(note);
  if (!now || now->value != from) return;
  for (std::size_t each = 1; each <= owner_count(); ++each) {
    const auto next = (from + each) % owner_count();
    if (state_of(next) != member_state::joined) continue;
    static_cast<void>(values_.push(note, next, {.expected = now->version}));
    return;
  }
  throw task_error(error_info(
      errc::peer_lost, text("the owner of the key ", key, ", rank ", from, ", is not there, and no other owner is")));
}

void kv_core::throw_failed(const store_key& key) const {
  const auto found = values_.try_pull<kv_failure>(key_beside(key, 'f'));
  const auto why = found ? found->value : kv_failure{.why = "its round had no effect"};
  throw task_error(error_info(why.is_loss ? errc::peer_lost : errc::invalid_argument,
                              text("the push of ", key, " by worker ", rank_, " had no effect: ", why.why)));
}

void kv_core::throw_late(const sent& which) const {
  std::string missing;
  for (std::size_t rank = 0; rank < how_.workers; ++rank) {
    if (rank != rank_ && state_of(rank) != member_state::left) missing += text(missing.empty() ? "" : ", ", rank);
  }
  throw task_error(error_info(
      errc::timed_out, text("the push of ", *which.key, " by worker ", rank_,
                            " has not been applied in time: not all of the workers ", missing, " have pushed it")));
}

}  // namespace muster::detail
