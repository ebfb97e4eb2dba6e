// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/local_waits.hpp>

#include <array>

namespace muster::detail {

void local_waits::enter(std::size_t worker, local_wait& what) {
  const scoped_lock lock(mutex_);
  waiting_[worker] = &what;
  while (break_circle(worker, false) || break_circle(worker, true)) continue;  // a map may be part of several
}

void local_waits::leave(std::size_t worker) {
  const scoped_lock lock(mutex_);
  waiting_[worker] = nullptr;
}

// False when there is no circle, or none that could be broken. Goes by breadth, and allocates nothing.
bool local_waits::break_circle(std::size_t closing, bool rest) {
  std::array<std::size_t, most_workers> reached{};
  std::array<std::size_t, most_workers> before{};  // by whom each was reached
  local_worker_set seen;
  std::size_t count = 0;
  reached[count++] = closing;
  for (std::size_t next = 0; next < count; ++next) {
    const auto at = reached[next];
    if (waiting_[at] == nullptr) continue;
    auto found = waiting_[at]->needed() & ~seen;
    if (found[closing]) {
      if (waiting_[closing]->end_hope(rest)) return true;
      for (auto back = at; back != closing; back = before[back]) {
        if (waiting_[back]->end_hope(rest)) return true;
      }
      found.reset(closing);  // others may lead there by another way
    }
    seen |= found;
    for (std::size_t worker = 0; worker < waiting_.size(); ++worker) {
      if (!found[worker]) continue;
      before[worker] = at;
      reached[count++] = worker;
    }
  }
  return false;
}

}  // namespace muster::detail
