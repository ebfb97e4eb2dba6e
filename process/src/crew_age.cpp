// SPDX-License-Identifier: BSL-1.0
// Workers that have become as old as they may. One that is idle is woken by its order; one that is busy finishes first.
#include "crew_impl.hpp"

namespace muster {

void crew::impl::begin_to_age(worker& who) {
  if (options_.max_age.count() <= 0 || who.pid == 0) return;
  const auto part = std::uniform_real_distribution<double>(0, options_.age_jitter)(chance_);
  const auto less = std::chrono::duration<double, std::nano>(static_cast<double>(options_.max_age.count()) * part);
  const auto age = options_.max_age - std::chrono::duration_cast<std::chrono::nanoseconds>(less);
  who.age_timer.expires_at(deadline::after(age).when());
  who.age_timer.async_wait(handler(who, [this, &who] {
    who.too_old = true;
    succeed(who);
  }));
}

}  // namespace muster
