// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/local_task.hpp>

#include <algorithm>
#include <climits>
#include <optional>

#include <muster/base/futex.hpp>
#include <muster/base/spin.hpp>
#include <muster/memory/wait/look.hpp>

namespace muster::detail {

bool local_progress::finish() noexcept {
  // Acquire: who asked to be told has written before what he is to be told with.
  const auto before = state_.fetch_or(done, std::memory_order_acq_rel);
  if ((before & awaited) != 0) futex_wake(futex_address(state_), INT_MAX, futex_scope::within_process);
  return (before & told) != 0;
}

/// A task, as what a worker of its pool waits for.
class local_task_wait final : public local_wait {
public:
  local_task_wait(local_progress& progress, lane_route route) : progress_(progress), route_(route) {}

  local_worker_set needed() override {
    const auto state = progress_.state_.load(std::memory_order_acquire);
    local_worker_set all;
    if ((state & (local_progress::done | local_progress::hopeless)) != 0) return all;
    if ((state & local_progress::begun) == 0) return route_.is_shared() ? all : all.set(route_.worker());
    // Without one somebody withdraws it, or its runner waits for nothing yet.
    const int runner = progress_.runner_.load(std::memory_order_relaxed);
    return runner < 0 ? all : all.set(static_cast<std::size_t>(runner));
  }

  // It may be withdrawn in this moment: then who waits finds it begun, and waits on.
  bool end_hope(bool /*rest*/) override {
    auto& state = progress_.state_;
    if ((state.load(std::memory_order_acquire) & local_progress::begun) != 0) return false;
    const auto before = state.fetch_or(local_progress::hopeless, std::memory_order_acq_rel);
    if ((before & local_progress::awaited) != 0) {
      futex_wake(futex_address(state), INT_MAX, futex_scope::within_process);
    }
    return true;
  }

private:
  local_progress& progress_;
  const lane_route route_;
};

// The next to act is its runner; before it has begun, the worker it is for, or any.
bool local_progress::spin(local_core& core, lane_route route, deadline until) noexcept {
  const auto ask = [&] {
    std::optional<std::size_t> next;
    if (const int runner = runner_.load(std::memory_order_relaxed); runner >= 0) {
      next = static_cast<std::size_t>(runner);
    } else if (!route.is_shared()) {
      next = route.worker();
    }
    return core.ask(next);
  };
  core.tell_caller_place();  // also where it is done at once: the runner may be the one to step aside
  return look_until(until.left(core.spin_budget()), [this] { return is_done(); }, ask);
}

bool local_progress::wait(local_core& core, lane_route route, deadline until) noexcept {
  return spin(core, route, until) || sleep(until);
}

bool local_progress::wait_at(local_core& core, const local_worker& here, lane_route route) {
  if (spin(core, route, deadline::never())) return true;
  {
    local_task_wait what(*this, route);
    const local_waits::scope entered(core.waits(), static_cast<std::size_t>(here.id), what);
    if (sleep(deadline::never())) return true;
  }
  state_.fetch_and(~hopeless, std::memory_order_relaxed);
  return false;
}

bool local_progress::sleep(deadline until) noexcept {
  for (;;) {
    const auto before = state_.fetch_or(awaited, std::memory_order_acq_rel);
    if ((before & done) != 0) return true;
    if ((before & hopeless) != 0) return false;
    if (!futex_wait(futex_address(state_), before | awaited, futex_scope::within_process, until)) return is_done();
  }
}

}  // namespace muster::detail
