// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/local_task.hpp>

#include <climits>

#include <muster/base/futex.hpp>
#include <muster/base/spin.hpp>

namespace muster::detail {

bool local_progress::finish() noexcept {
  // Acquire: who asked to be told has written before what he is to be told with.
  const auto before = state_.fetch_or(done, std::memory_order_acq_rel);
  if ((before & awaited) != 0) futex_wake(futex_address(state_), INT_MAX, futex_scope::within_process);
  return (before & told) != 0;
}

bool local_progress::wait(std::chrono::nanoseconds spin, deadline until) noexcept {
  const auto look = [this] { return is_done(); };
  if (spin_until(until.is_never() ? spin : std::min<std::chrono::nanoseconds>(spin, until.when() - clock::now()),
                 look)) {
    return true;
  }
  for (;;) {
    const auto before = state_.fetch_or(awaited, std::memory_order_acq_rel);
    if ((before & done) != 0) return true;
    if (!futex_wait(futex_address(state_), before | awaited, futex_scope::within_process, until)) return is_done();
  }
}

}  // namespace muster::detail
