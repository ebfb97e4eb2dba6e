// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/wait/step_aside.hpp>

#include <sched.h>

#include <algorithm>

#include <muster/base/current_cpu.hpp>

namespace muster {

namespace {

// False where it may run nowhere else, or on a machine of more processors than a set of the usual size holds.
bool leave_this_processor() noexcept {
  cpu_set_t all;
  if (::sched_getaffinity(0, sizeof all, &all) != 0) return false;
  const auto here = current_cpu();
  auto others = all;
  if (here < CPU_SETSIZE) CPU_CLR(here, &others);
  if (CPU_COUNT(&others) == 0 || ::sched_setaffinity(0, sizeof others, &others) != 0) return false;
  ::sched_setaffinity(0, sizeof all, &all);
  return true;
}

}  // namespace

void step_aside::met() noexcept {
  if (++met_ < patience) return;
  met_ = 0;
  const auto now = clock::now();
  if (now - last_ < pause_) return;
  pause_ = now - last_ < 4 * pause_ ? std::min(2 * pause_, longest_pause) : shortest_pause;
  last_ = now;
  if (leave_this_processor()) ++moves_;
}

}  // namespace muster
