// SPDX-License-Identifier: BSL-1.0
// What a crew does about damage in shared memory. docs/design/integrity.md.
#include <algorithm>

#include <muster/base/text.hpp>

#include "crew_impl.hpp"

namespace muster {

namespace {

// How long a damaged word may hold somebody up, about; and how often a busy pool pays for a look at its old tasks.
constexpr auto audit_interval = std::chrono::milliseconds(500);

}  // namespace

void crew::impl::watch() noexcept { hub().ask_for(watch_call_); }

void crew::impl::begin_audits() noexcept {
  guard([this] {
    if (!std::exchange(watching_, true)) next_audit();
  });
}

void crew::impl::next_audit() {
  audit_timer_.expires_after(audit_interval);
  audit_timer_.async_wait(handler([this] { audit(); }));
}

void crew::impl::audit() {
  const auto found = client_.audit();
  if (found.repeated) {
    replace_all();
  } else {
    for (const auto index : found.suspects) kill_suspect(*workers_[index]);
  }
  give_orders();
  watching_ = found.more || is_leaving() || replacing_;
  if (watching_) next_audit();
}

// The supervisor's word against the board's: what was ordered is ordered again.
void crew::impl::give_orders() {
  for (const auto& each : workers_) {
    if (each->pid == 0) continue;
    const auto order = order_for(*each);
    const auto right = static_cast<std::uint32_t>(order);
    const bool changed = board_.line(each->index).order.exchange(right, std::memory_order_acq_rel) != right;
    if (changed || order != worker_order::work) board_.wake_always(each->index);
  }
}

worker_order crew::impl::order_for(const worker& who) const {
  if (order_ != worker_order::work) return order_;
  if (who.index >= size_) return worker_order::retire;
  return who.leaves ? worker_order::leave : worker_order::work;
}

bool crew::impl::is_leaving() const {
  return std::any_of(workers_.begin(), workers_.end(), [this](const auto& each) {
    return each->pid != 0 && (each->life.now() == worker_lifecycle::state::stopping || each->index >= size_);
  });
}

void crew::impl::kill_suspect(worker& who) {
  if (who.pid == 0) return;
  log(log_level::warning, text(name_of(who.index), " (process ", who.pid,
                               ") is killed: what only it writes in shared memory was overwritten"));
  who.life.excuse();
  kill(who);
  const scoped_lock lock(mutex_);
  count(who, &crew_statistics::suspected);
}

void crew::impl::replace_all() {
  if (replacing_ || giving_up_) return;
  log(log_level::warning,
      text("all workers of '", options_.name, "' are replaced: what they share was overwritten again and again"));
  replacing_ = true;
  {
    const scoped_lock lock(mutex_);
    ++statistics_.replacements;
  }
  for (auto* const each : {&workers_, &successors_}) {
    for (auto& who : *each) {
      if (!who) continue;
      who->life.excuse();
      kill(*who);
    }
  }
  start_again_when_all_are_gone();  // there may be none at the moment
}

void crew::impl::start_again_when_all_are_gone() {
  if (!all_are_gone()) return;
  replacing_ = false;
  client_.crew_replaced();
  give_orders();
  for (auto& each : workers_) {
    if (each->pid == 0 && each->life.now() == worker_lifecycle::state::starting) spawn(*each);
  }
}

}  // namespace muster
