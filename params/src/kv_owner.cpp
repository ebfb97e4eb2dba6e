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

}  // namespace

kv_owner::state& kv_owner::state_of(const store_key& key) {
  const auto found = states_.find(key);
  if (found != states_.end()) return found->second;
  return states_.try_emplace(key, state{.round = {values_.record(key), how_.workers, how_.enough}}).first->second;
}

void kv_owner::push(const store_key& key, kv_push what, kv_reply reply) {
  if (lacks_updater()) return reply({.what = kv_answer::verdict::lacks_updater}, nullptr);
  const auto now = values_.find(key);
  if (!now) throw error(errc::invalid_argument, text("there is no value ", key, ": init it first"));
  what.gradient.require_like(*now, key, what.rank);
  auto& of = state_of(key);
  of.others.push_back({.what = std::move(what), .reply = std::move(reply)});
  settle(key, of);
}

void kv_owner::set_updater(kv_updater by, std::uint64_t mark) {
  if (mark < updater_mark_) return;
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

// Until nothing changes any more: what ends a round may let others in.
void kv_owner::settle(const store_key& key, state& of) {
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    const auto workers = workers_();
    if (kind_ == kv_kind::sync) {
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
}

// Whether it does not wait here any more.
bool kv_owner::sort_one(const store_key& key, state& of, waiting& one, const std::vector<kv_worker>& workers) {
  const auto [rank, number] = std::pair(one.what.rank, one.what.number);
  const auto& record = of.round.record();
  switch (of.round.look(rank, number)) {
    case kv_round::verdict::later: return false;
    case kv_round::verdict::applied: one.reply(applied_in(values_.version(key)), nullptr); return true;
    case kv_round::verdict::failed:
      if (record.ranks[rank].is_pending) {
        of.round.note(of.round.after_telling(rank));
        values_.note(key, record);
      }
      one.reply(failed_by(record.is_loss, record.why), nullptr);
      return true;
    case kv_round::verdict::late:
      of.round.note(of.round.after_late(rank, number));
      values_.note(key, record);
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
  if (how_.staleness && of.round.is_ahead(one.what.rank, *how_.staleness, workers)) return false;
  const auto record = of.round.after_push(one.what.rank, one.what.number);
  try {
    const auto version = values_.apply(key, std::span(&one.what.gradient, 1), record, updater_);
    of.round.begin(values_.record(key));
    one.reply(applied_in(version), nullptr);
  } catch (...) {
    const auto failure = capture_current_exception();
    of.round.note(of.round.after_failed_push(one.what.rank, one.what.number, failure.message()));
    values_.note(key, of.round.record());
    one.reply(failed_by(false, failure.message()), &failure);
  }
  return true;
}

void kv_owner::apply_round(const store_key& key, state& of, const std::vector<kv_worker>& workers) {
  std::vector<kv_gradient> gradients;
  for (const auto& [rank, each] : of.given) gradients.push_back(each.what.gradient);
  try {
    const auto version = values_.apply(key, gradients, of.round.after_round(workers), updater_);
    of.round.begin(values_.record(key));
    for (const auto& [rank, each] : std::exchange(of.given, {})) each.reply(applied_in(version), nullptr);
  } catch (...) {
    const auto failure = capture_current_exception();
    fail_round(key, of, workers, failed_by(false, failure.message()), &failure);
  }
}

void kv_owner::fail_round(const store_key& key, state& of, const std::vector<kv_worker>& workers, const kv_answer& why,
                          const error_info* failure) {
  of.round.begin(of.round.after_failure(workers, why.is_loss, why.why));
  values_.note(key, of.round.record());
  for (const auto& [rank, each] : std::exchange(of.given, {})) each.reply(why, failure);
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
