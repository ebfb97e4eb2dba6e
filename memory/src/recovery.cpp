// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/recovery.hpp>

namespace muster {

recovery_registry::registration::~registration() {
  if (registry_ == nullptr) return;
  const scoped_lock lock(registry_->mutex_);
  registry_->actions_.erase(key_);
}

recovery_registry::registration recovery_registry::add(recovery_stage stage, action what) {
  const scoped_lock lock(mutex_);
  const registration::key key(stage, next_++);
  actions_.emplace(key, std::move(what));
  return {*this, key};
}

void recovery_registry::run(participant_id dead) {
  const scoped_lock lock(mutex_);
  for (const auto& [key, what] : actions_) what(dead);
}

}  // namespace muster
