// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/call_ledger.hpp>

#include <utility>

#include <muster/rpc/detail/call_word.hpp>

namespace muster::detail {

// The words of calls that a dead incarnation of the member had under way are free.
call_ledger::call_ledger(group_table::call_lines of_member, call_repeater& again)
    : lines_(of_member), again_(again), calls_(of_member.size()) {
  free_slots_.reserve(lines_.size());
  for (std::size_t slot = lines_.size(); slot-- != 0;) {
    auto& word = lines_[slot].word;
    call_word::release(word, call_word::generation_of(word.load(std::memory_order_relaxed)) + 1);
    free_slots_.push_back(static_cast<std::uint32_t>(slot));
  }
}

call_ptr call_ledger::open(const call_terms& terms) {
  const scoped_lock lock(mutex_);
  if (closed_ || free_slots_.empty()) return nullptr;
  const std::size_t slot = free_slots_.back();
  lines_[slot].waits_for.store(0, std::memory_order_relaxed);
  auto made = std::make_shared<pending_call>(terms, slot, call_word::queue(lines_[slot].word));
  free_slots_.pop_back();
  ++tally_.made;
  return calls_[slot] = std::move(made);
}

void call_ledger::settle(const reply_head& head, taken_message reply) {
  aftermath after;
  {
    const scoped_lock lock(mutex_);
    if (head.slot >= calls_.size() || calls_[head.slot] == nullptr) return;
    auto& which = *calls_[head.slot];
    if (which.rests_ || which.generation() != head.generation) return;
    call_word::release(lines_[head.slot].word, head.generation);
    if (which.terms_.retry != nullptr && which.terms_.retry->tries_again_after(head.kind, reply)) {
      which.had_begun_ |= head.kind != reply_kind::lost;
      rest(which, after);
    } else {
      which.kind_ = head.kind;
      if (head.kind == reply_kind::lost) ++tally_.lost;
      which.reply_ = std::move(reply);
      finish(which, after);
    }
  }
  settle(after);
}

void call_ledger::make_no_more(pending_call& which, aftermath& after) {
  if (which.terms_.retry != nullptr) after.kept.push_back(std::move(which.terms_.retry));
}

void call_ledger::finish(pending_call& which, aftermath& after) {
  free_slots_.push_back(static_cast<std::uint32_t>(which.slot()));
  if (which.notice_ != nullptr) {
    after.told.push_back(std::move(which.notice_));
    notices_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (which.terms_.kept != nullptr) after.kept.push_back(std::move(which.terms_.kept));
  make_no_more(which, after);
  after.ended.push_back(std::exchange(calls_[which.slot()], nullptr));
  which.done_.store(true, std::memory_order_release);
}

// Its word is free. An attempt of before may have begun.
bool call_ledger::end_now(pending_call& which, const reason& why, aftermath& after) {
  which.failure_ = why(which.had_begun_);
  finish(which, after);
  return !which.had_begun_;
}

void call_ledger::rest(pending_call& which, aftermath& after) {
  which.rests_ = true;
  after.again.emplace_back(calls_[which.slot()], which.terms_.retry);
}

bool call_ledger::try_to_rest(pending_call& which, const loss& how, bool had_begun, aftermath& after) {
  if (!how.is_lost || which.terms_.retry == nullptr || closed_) return false;
  if (!which.terms_.retry->tries_again_after_loss(had_begun)) return false;
  rest(which, after);
  return true;
}

// False where it has begun, and goes on, or is made again. Else: whether it had not begun.
bool call_ledger::end_with(pending_call& which, const loss& how, const reason& why, aftermath& after) {
  if (which.rests_ && how.is_lost) return false;
  auto& counted = how.is_lost ? tally_.lost : tally_.given_up;
  if (which.rests_) return ++counted, end_now(which, why, after);
  auto& word = lines_[which.slot()].word;
  const bool withdrawn = call_word::withdraw(word, which.generation());
  if (!withdrawn && !how.cannot_end) return false;
  if (!withdrawn) call_word::release(word, which.generation());
  which.had_begun_ |= !withdrawn;
  if (try_to_rest(which, how, !withdrawn, after)) return false;
  ++counted;
  return end_now(which, why, after);
}

void call_ledger::lose(pending_call& which, std::uint32_t generation, const reason& why) {
  aftermath after;
  {
    const scoped_lock lock(mutex_);
    if (calls_[which.slot()].get() != &which || which.generation() != generation) return;
    end_with(which, {.is_lost = true}, why, after);
  }
  settle(after);
}

void call_ledger::fail(pending_call& which, const reason& why) {
  aftermath after;
  {
    const scoped_lock lock(mutex_);
    if (calls_[which.slot()].get() != &which) return;
    end_with(which, {.cannot_end = true}, why, after);
  }
  settle(after);
}

void call_ledger::end_all(const std::function<bool(const pending_call&)>& which, const loss& how,
                          const reason_of_call& why) {
  aftermath after;
  {
    const scoped_lock lock(mutex_);
    for (auto& each : calls_) {
      if (each == nullptr || !which(*each)) continue;
      auto& one = *each;
      end_with(one, how, [&](bool had_begun) { return why(one, had_begun); }, after);
    }
  }
  settle(after);
}

void call_ledger::lose_all(const std::function<bool(const pending_call&)>& is_lost, bool cannot_end,
                           const reason_of_call& why) {
  end_all(is_lost, {.is_lost = true, .cannot_end = cannot_end}, why);
}

void call_ledger::fail_all(const std::function<bool(const pending_call&)>& is_over, const reason_of_call& why) {
  end_all(is_over, {.cannot_end = true}, why);
}

std::optional<std::uint32_t> call_ledger::begin_again(pending_call& which, const call_peer& to) {
  const scoped_lock lock(mutex_);
  if (calls_[which.slot()].get() != &which) return std::nullopt;
  auto& line = lines_[which.slot()];
  line.waits_for.store(0, std::memory_order_relaxed);
  const auto generation = call_word::queue(line.word);
  which.generation_.store(generation, std::memory_order_relaxed);
  which.terms_.peer = to;
  which.rests_ = false;
  return generation;
}

void call_ledger::close(const reason_of_call& why) {
  {
    const scoped_lock lock(mutex_);
    closed_ = true;
  }
  fail_all([](const pending_call&) { return true; }, why);
}

bool call_ledger::cancel(pending_call& which, bool gives_up, const reason& why) {
  aftermath after;
  bool withdrawn = false;
  {
    const scoped_lock lock(mutex_);
    if (calls_[which.slot()].get() != &which) return false;
    withdrawn = end_with(which, {.cannot_end = gives_up}, why, after);
    if (!which.is_done()) {
      call_word::ask_to_stop(lines_[which.slot()].word);
      make_no_more(which, after);
    }
  }
  settle(after);
  return withdrawn;
}

void call_ledger::notify(pending_call& which, std::unique_ptr<end_notice> notice) {
  std::unique_ptr<end_notice> before;
  {
    const scoped_lock lock(mutex_);
    if (!which.is_done()) {
      before = std::exchange(which.notice_, std::move(notice));
      if (before == nullptr) notices_.fetch_add(1, std::memory_order_release);
      return;
    }
  }
  end_notice::tell(std::move(notice));
}

deadline call_ledger::next_due() const {
  const scoped_lock lock(mutex_);
  auto first = deadline::never();
  for (const auto& each : calls_) {
    if (each != nullptr && each->notice_ != nullptr && each->until().when() < first.when()) first = each->until();
  }
  return first;
}

deadline call_ledger::first_due() const {
  const scoped_lock lock(mutex_);
  auto first = deadline::never();
  for (const auto& each : calls_) {
    if (each != nullptr && each->until().when() < first.when()) first = each->until();
  }
  return first;
}

std::size_t call_ledger::size() const {
  const scoped_lock lock(mutex_);
  return calls_.size() - free_slots_.size();
}

call_tally call_ledger::tally() const {
  const scoped_lock lock(mutex_);
  auto found = tally_;
  found.under_way = calls_.size() - free_slots_.size();
  return found;
}

void call_ledger::settle(aftermath& after) noexcept {
  for (auto& each : after.told) end_notice::tell(std::move(each));
  for (auto& [call, how] : after.again) again_.repeat(std::move(call), std::move(how));
}

}  // namespace muster::detail
