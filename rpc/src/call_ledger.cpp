// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/call_ledger.hpp>

#include <utility>

#include <muster/rpc/detail/call_word.hpp>

namespace muster::detail {

// What a dead incarnation of the member had under way is nobody's any more.
call_ledger::call_ledger(words of_member) : words_(of_member), calls_(of_member.size()) {
  free_slots_.reserve(words_.size());
  for (std::size_t slot = words_.size(); slot-- != 0;) {
    auto& word = words_[slot];
    call_word::release(word, call_word::generation_of(word.load(std::memory_order_relaxed)) + 1);
    free_slots_.push_back(static_cast<std::uint32_t>(slot));
  }
}

call_ptr call_ledger::open(const call_peer& peer, deadline until) {
  const scoped_lock lock(mutex_);
  if (free_slots_.empty()) return nullptr;
  const std::size_t slot = free_slots_.back();
  auto made = std::make_shared<pending_call>(peer, slot, call_word::queue(words_[slot]), until);
  free_slots_.pop_back();
  return calls_[slot] = std::move(made);
}

void call_ledger::settle(const reply_head& head, taken_message reply) {
  notices told;
  {
    const scoped_lock lock(mutex_);
    if (head.slot >= calls_.size() || calls_[head.slot] == nullptr) return;
    const auto which = calls_[head.slot];
    if (which->generation() != head.generation) return;
    which->kind_ = head.kind;
    which->reply_ = std::move(reply);
    call_word::release(words_[head.slot], head.generation);
    finish(*which, told);
  }
  tell(told);
}

// True when it had not begun.
bool call_ledger::end(pending_call& which) {
  auto& word = words_[which.slot()];
  if (call_word::withdraw(word, which.generation())) return true;
  call_word::release(word, which.generation());
  return false;
}

void call_ledger::finish(pending_call& which, notices& told) {
  free_slots_.push_back(static_cast<std::uint32_t>(which.slot()));
  if (which.notice_ != nullptr) {
    told.push_back(std::move(which.notice_));
    notices_.fetch_sub(1, std::memory_order_relaxed);
  }
  which.done_.store(true, std::memory_order_release);
  calls_[which.slot()] = nullptr;
}

bool call_ledger::end_with(pending_call& which, const reason& why, notices& told) {
  const bool had_begun = !end(which);
  which.failure_ = why(had_begun);
  finish(which, told);
  return !had_begun;
}

void call_ledger::fail(pending_call& which, const reason& why) { give_up(which, true, why); }

void call_ledger::give_up(pending_call& which, bool cannot_end, const reason& why) {
  notices told;
  {
    const scoped_lock lock(mutex_);
    const auto kept = calls_[which.slot()];
    if (kept.get() != &which) return;
    const bool withdrawn = call_word::withdraw(words_[which.slot()], which.generation());
    if (!withdrawn && !cannot_end) return;
    if (!withdrawn) call_word::release(words_[which.slot()], which.generation());
    which.failure_ = why(!withdrawn);
    finish(which, told);
  }
  tell(told);
}

void call_ledger::fail_all(const std::function<bool(const pending_call&)>& is_lost,
                           const std::function<std::exception_ptr(const pending_call&, bool had_begun)>& why) {
  notices told;
  {
    const scoped_lock lock(mutex_);
    for (std::size_t slot = 0; slot < calls_.size(); ++slot) {
      const auto each = calls_[slot];
      if (each == nullptr || !is_lost(*each)) continue;
      end_with(
          *each, [&](bool had_begun) { return why(*each, had_begun); }, told);
    }
  }
  tell(told);
}

bool call_ledger::cancel(pending_call& which, bool gives_up, const reason& why) {
  notices told;
  bool withdrawn = false;
  {
    const scoped_lock lock(mutex_);
    const auto kept = calls_[which.slot()];
    if (kept.get() != &which) return false;
    auto& word = words_[which.slot()];
    withdrawn = call_word::withdraw(word, which.generation());
    if (!withdrawn) call_word::ask_to_stop(word);
    if (withdrawn || gives_up) {
      which.failure_ = why(!withdrawn);
      if (!withdrawn) call_word::release(word, which.generation());
      finish(which, told);
    }
  }
  tell(told);
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
    if (each != nullptr && each->notice_ != nullptr && each->until_.when() < first.when()) first = each->until_;
  }
  return first;
}

std::size_t call_ledger::size() const {
  const scoped_lock lock(mutex_);
  return calls_.size() - free_slots_.size();
}

void call_ledger::tell(notices& all) noexcept {
  for (auto& each : all) end_notice::tell(std::move(each));
}

}  // namespace muster::detail
