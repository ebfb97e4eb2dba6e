// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_owner.hpp>

#include <exception>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

kv_answer applied_in(std::uint64_t version) { return {.what = kv_answer::verdict::applied, .version = version}; }

kv_answer failed_by(bool is_loss, std::string why) {
  return {.what = kv_answer::verdict::failed, .is_loss = is_loss, .why = std::move(why)};
}

std::string list_of(const std::vector<std::size_t>& ranks) {
  std::string all;
  for (const auto each : ranks) all += text(all.empty() ? "" : ", ", each);
  return all;
}

/// Of an owner whose record another one has replaced: it looks again at what there is.
struct record_has_changed : std::exception {};

}  // namespace

kv_owner::state& kv_owner::state_of(const store_key& key) {
  const auto found = states_.find(key);
  if (found != states_.end()) return found->second;
  auto record = values_.record(key);
  state made{.round = {std::move(record.value), how_.workers, how_.enough}, .version = record.version};
  return states_.try_emplace(key, std::move(made)).first->second;
}

void kv_owner::push(const store_key& key, kv_push what, kv_reply reply) {
  if (values_.owner(key) != self_) return reply({.what = kv_answer::verdict::no_owner}, nullptr);
  if (lacks_updater()) return reply({.what = kv_answer::verdict::lacks_updater}, nullptr);
  const auto now = values_.find(key);
  if (!now) throw error(errc::invalid_argument, text("there is no value ", key, ": init it first"));
  what.gradient.require_like(*now, key, what.rank);
  auto& of = state_of(key);
  of.others.push_back({.what = std::move(what), .reply = std::move(reply)});
  settle(key, of);
}

kv_answer kv_owner::withdraw(const store_key& key, std::size_t rank, std::uint64_t number) {
  auto& of = state_of(key);
  settle(key, of);
  const auto is_it = [&](const waiting& each) { return each.what.rank == rank && each.what.number == number; };
  const auto found = of.given.find(rank);
  if (found != of.given.end() && is_it(found->second)) {
    of.round.drop(rank);
    of.given.erase(found);
  }
  std::erase_if(of.others, is_it);
  if (number <= of.round.record().ranks[rank].applied) return applied_in(values_.version(key));
  return failed_by(false, "it was taken back");
}

void kv_owner::set_updater(kv_updater by, std::uint64_t mark) {
  if (mark <= updater_mark_) return;
  updater_ = std::move(by);
  updater_mark_ = mark;
}

// One whose mark is higher than the store's is about to be announced.
bool kv_owner::lacks_updater() {
  const auto wanted = values_.wanted_updater();
  if (updater_mark_ > wanted.version) return false;
  if (wanted.value) return updater_mark_ != wanted.version;
  updater_ = nullptr;
  return false;
}

void kv_owner::look_at_workers() {
  for (auto& [key, of] : states_) {
    if (!of.given.empty() || !of.others.empty()) settle(key, of);
  }
}

// Until nothing changes any more: what ends a round may let others in. Where it cannot be gone on with, as there is no
// memory, all that wait are told, and the next push begins with what is in the store.
void kv_owner::settle(const store_key& key, state& of) {
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    try {
      settle_once(key, of, goes_on);
    } catch (const record_has_changed&) {
      reload(key, of);
      goes_on = true;
    } catch (const owner_leaves&) {
      give_up(of);
    } catch (...) {
      fail_all(of, capture_current_exception());
      reload(key, of);
    }
  }
}

void kv_owner::settle_once(const store_key& key, state& of, bool& goes_on) {
  const auto workers = workers_();
  const bool has_any = !of.given.empty() || !of.others.empty();
  if (kind_ == kv_kind::sync && has_any) {
    if (const auto lost = of.round.find_loss(workers)) {
      fail_round(key, of, workers, failed_by(true, text("worker ", *lost, " has died before its push")), nullptr);
      goes_on = true;
    }
  }
  for (auto each = of.others.begin(); each != of.others.end();) {
    const auto one = each++;
    if (!sort_one(key, of, *one, workers)) continue;
    of.others.erase(one);
    goes_on = true;
  }
  if (kind_ == kv_kind::sync && of.round.is_complete(workers)) {
    apply_round(key, of, workers);
    goes_on = true;
  }
}

// Whether it does not wait here any more.
bool kv_owner::sort_one(const store_key& key, state& of, waiting& one, const std::vector<kv_worker>& workers) {
  const auto [rank, number] = std::pair(one.what.rank, one.what.number);
  switch (of.round.look(rank, number)) {
    case kv_round::verdict::later: return false;
    case kv_round::verdict::applied: one.reply(applied_in(values_.version(key)), nullptr); return true;
    case kv_round::verdict::failed:
      if (of.round.record().ranks[rank].failed != number) note(key, of, of.round.after_telling(rank, number));
      one.reply(failed_by(of.round.record().is_loss, of.round.record().why), nullptr);
      return true;
    case kv_round::verdict::late:
      note(key, of, of.round.after_late(rank, number));
      one.reply(applied_in(values_.version(key)), nullptr);
      return true;
    case kv_round::verdict::open: break;
  }
  if (kind_ != kv_kind::sync) return apply_alone(key, of, one, workers);
  of.round.give(rank, number);
  of.given.insert_or_assign(rank, std::move(one));
  return true;
}

bool kv_owner::apply_alone(const store_key& key, state& of, waiting& one, const std::vector<kv_worker>& workers) {
  const auto [rank, number] = std::pair(one.what.rank, one.what.number);
  if (how_.staleness && of.round.is_ahead(rank, *how_.staleness, workers)) return false;
  pulled<kv_record> record{.value = of.round.after_push(rank, number, workers), .version = of.version};
  std::optional<std::uint64_t> version;
  try {
    version = values_.apply(key, std::span(&one.what.gradient, 1), record, updater_);
  } catch (...) {
    const auto failure = capture_current_exception();
    note(key, of, of.round.after_failed_push(rank, number, failure.message()));
    one.reply(failed_by(false, failure.message()), &failure);
    return true;
  }
  if (!version) throw record_has_changed();
  of.round.begin(std::move(record.value));
  of.version = record.version;
  one.reply(applied_in(*version), nullptr);
  return true;
}

void kv_owner::apply_round(const store_key& key, state& of, const std::vector<kv_worker>& workers) {
  std::vector<kv_gradient> gradients;
  for (const auto& [rank, each] : of.given) gradients.push_back(each.what.gradient);
  pulled<kv_record> record{.value = of.round.after_round(workers), .version = of.version};
  std::optional<std::uint64_t> version;
  try {
    version = values_.apply(key, gradients, record, updater_);
  } catch (...) {
    const auto failure = capture_current_exception();
    return fail_round(key, of, workers, failed_by(false, failure.message()), &failure);
  }
  if (!version) throw record_has_changed();
  of.round.begin(std::move(record.value));
  of.version = record.version;
  for (const auto& [rank, each] : std::exchange(of.given, {})) each.reply(applied_in(*version), nullptr);
}

void kv_owner::fail_round(const store_key& key, state& of, const std::vector<kv_worker>& workers, const kv_answer& why,
                          const error_info* failure) {
  note(key, of, of.round.after_failure(workers, why.is_loss, why.why));
  of.round.begin(of.round.record());
  for (const auto& [rank, each] : std::exchange(of.given, {})) each.reply(why, failure);
}

// In the store first: what it says is so, whatever happens here.
void kv_owner::note(const store_key& key, state& of, kv_record record) {
  pulled<kv_record> made{.value = std::move(record), .version = of.version};
  if (!values_.note(key, made)) throw record_has_changed();
  of.round.note(std::move(made.value));
  of.version = made.version;
}

void kv_owner::fail_all(state& of, const error_info& why) noexcept {
  const auto answer = failed_by(false, why.message());
  for (const auto& [rank, each] : std::exchange(of.given, {})) each.reply(answer, &why);
  for (const auto& each : std::exchange(of.others, {})) each.reply(answer, &why);
}

// Another owner goes on with them.
void kv_owner::give_up(state& of) {
  for (const auto& [rank, each] : std::exchange(of.given, {}))
    each.reply({.what = kv_answer::verdict::no_owner}, nullptr);
  for (const auto& each : std::exchange(of.others, {})) each.reply({.what = kv_answer::verdict::no_owner}, nullptr);
}

// What was given is looked at again.
void kv_owner::reload(const store_key& key, state& of) {
  if (values_.owner(key) != self_) give_up(of);
  auto record = values_.record(key);
  for (auto& [rank, each] : of.given) of.others.push_front(std::move(each));
  of.given.clear();
  of.round = kv_round(std::move(record.value), how_.workers, how_.enough);
  of.version = record.version;
}

std::string kv_owner::describe_rounds() const {
  std::string all;
  const auto workers = workers_();
  for (const auto& [key, of] : states_) {
    if (of.given.empty()) continue;
    std::vector<std::size_t> given;
    for (const auto& [rank, each] : of.given) given.push_back(rank);
    all += text(all.empty() ? "" : "; ", "the round of ", key, " has the pushes of workers ", list_of(given),
                " and waits for workers ", list_of(of.round.missing(workers)));
  }
  return all;
}

}  // namespace muster::detail
