// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/keepsake.hpp>

#include <utility>

namespace muster {

void keepsake_list::add(std::unique_ptr<keepsake> what) {
  const scoped_lock lock(mutex_);
  kept_.push_back(std::move(what));
}

// One at a time, and destroyed without the lock: what a keepsake lets go of may itself be a reason to tidy.
void keepsake_list::tidy() noexcept {
  const auto take_one = [this]() -> std::unique_ptr<keepsake> {
    const scoped_lock lock(mutex_);
    for (auto& each : kept_) {
      if (!each->is_done()) continue;
      auto done = std::exchange(each, std::move(kept_.back()));
      kept_.pop_back();
      return done;
    }
    return nullptr;
  };
  while (take_one() != nullptr) continue;
}

std::size_t keepsake_list::size() const {
  const scoped_lock lock(mutex_);
  return kept_.size();
}

}  // namespace muster
