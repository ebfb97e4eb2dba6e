// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/wait/contention.hpp>

namespace muster {

void contention::begin(clock::time_point now) noexcept {
  end_ = now + shortest;
  last_end_ = now + longest;
  is_on_ = true;
}

// With its partner, which is to run as well.
bool contention::is_over(clock::time_point now, bool (&is_any_idle)(long) noexcept) noexcept {
  if (now < end_) return false;
  is_on_ = now < last_end_ && !is_any_idle(2);
  end_ = now + pause;
  return !is_on_;
}

}  // namespace muster
