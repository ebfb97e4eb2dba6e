// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/wait/step_aside.hpp>

#include <sched.h>

#include <algorithm>

#include <muster/base/detail/current_cpu.hpp>
#include <muster/base/detail/idle_processor.hpp>

namespace muster {

namespace {

unsigned first_of(const cpu_set_t& some) noexcept {
  unsigned cpu = 0;
  while (!CPU_ISSET(cpu, &some)) ++cpu;
  return cpu;
}

// False where it may run nowhere else, or on a machine of more processors than a set of the usual size holds.
bool leave_this_processor(place_word& own) noexcept {
  cpu_set_t all;
  if (::sched_getaffinity(0, sizeof all, &all) != 0) return false;
  const auto here = current_cpu();
  auto others = all;
  if (here < CPU_SETSIZE) CPU_CLR(here, &others);
  if (CPU_COUNT(&others) == 0) return false;
  // To move takes as long as a wake-up, and the partner, which shares this processor, looks for this thread meanwhile.
  tell_move(own, first_of(others));
  const bool moved = ::sched_setaffinity(0, sizeof others, &others) == 0;
  if (moved) ::sched_setaffinity(0, sizeof all, &all);
  tell_place(own);
  return moved;
}

}  // namespace

bool step_aside::has_room(clock::time_point now, bool is_partner_awake) noexcept {
  if (now - asked_ < shortest_pause) return false;
  asked_ = now;
  return seems_processor_idle(is_partner_awake ? 2 : 1);
}

void step_aside::meet(place_word& own, bool is_partner_awake) noexcept {
  if (++met_ < patience) return;
  met_ = 0;
  const auto now = clock::now();
  if (now - last_ < pause_) return;
  // A move to where others are busy may cost a slice of theirs.
  if (contention::of_this_thread().was_lately(now) && now - last_ < longest_pause && !has_room(now, is_partner_awake))
    return;
  pause_ = apart_ < enough ? std::min(2 * pause_, longest_pause) : shortest_pause;
  apart_ = 0;
  last_ = now;
  if (leave_this_processor(own)) ++moves_;
}

}  // namespace muster
