// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/start_notice.hpp>

#include <utility>

namespace muster::detail {

outcome<void> start_notice::outcome_of(const std::optional<error_info>& why) {
  return why ? outcome<void>::of_error(error_info::copy_of(*why)) : outcome<void>::of_value();
}

void start_notice::end(std::optional<error_info> why) {
  std::vector<waiter> told;
  std::optional<outcome<void>> how;
  {
    const scoped_lock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    why_ = std::move(why);
    how = outcome_of(why_);
    told.swap(waiting_);
  }
  for (const auto& each : told) each->complete(*how);
}

start_notice::waiter start_notice::add() {
  auto made = std::make_shared<local_state<void>>();
  const scoped_lock lock(mutex_);
  if (ended_) {
    made->complete(outcome_of(why_));
  } else {
    waiting_.push_back(made);
  }
  return made;
}

}  // namespace muster::detail
