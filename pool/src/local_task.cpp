// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/local_task.hpp>

#include <algorithm>
#include <climits>
#include <optional>
#include <string>
#include <utility>

#include <muster/async/detail/callback_executor.hpp>
#include <muster/base/detail/futex.hpp>
#include <muster/base/spin.hpp>
#include <muster/memory/detail/wait/look.hpp>
#include <muster/pool/detail/local_core.hpp>
#include <muster/pool/detail/local_worker.hpp>

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

// ---- a task

void untyped_local_task::run(local_worker& here) noexcept {
  if (progress_.try_begin()) execute(here);
}

void untyped_local_task::withdraw(const error_info& why) noexcept {
  if (progress_.try_begin()) fail(why);
}

bool untyped_local_task::wait_for_end(deadline until) {
  if (progress_.is_done()) return true;
  if (auto* const here = core_.inside(route_); here != nullptr && progress_.try_begin()) {
    execute(*here);  // no thread has begun it, and perhaps no other ever could
    return true;
  }
  const auto what_it_waits_for_may_be_behind_us = callback_pause::until(until);
  const auto* const here = until.is_never() ? core_.sleeper() : nullptr;
  if (here == nullptr) return progress_.wait(core_, route_, until);
  while (!progress_.wait_at(core_, *here, route_)) {
    const auto why = core_.circle_error(*here);
    if (progress_.try_begin()) fail(why);
  }
  return true;
}

bool untyped_local_task::give_up(cancellation how) {
  if (progress_.is_done()) return false;
  if (progress_.try_begin()) {
    // Begun here, it must end here: also without memory for the text.
    fail(error_info::described(errc::cancelled, [] { return std::string("cancelled before a thread had begun it"); }));
    return true;
  }
  if (how != cancellation::withdraw) stop_.request();
  return false;
}

bool untyped_local_task::is_run_here() const noexcept {
  const auto* const here = core_.inside();
  return here != nullptr && progress_.is_run_by(here->id);
}

void untyped_local_task::tell_of_end(std::unique_ptr<end_notice> notice) {
  {
    const scoped_lock lock(mutex_);
    notice_.swap(notice);
  }
  if (!progress_.ask_to_be_told()) tell();
}

void untyped_local_task::execute(local_worker& here) noexcept {
  const local_worker::task_scope scope(here, stop_);
  progress_.note_runner(here.id);
  call_and_keep();
  finish();
}

void untyped_local_task::fail(const error_info& why) noexcept {
  keep_failure(why);
  finish();
}

void untyped_local_task::finish() noexcept {
  auto& core = core_;
  if (has_place_) core.free_place();
  if (progress_.finish()) tell();
  core.end_unit();
}

// tell_of_end() may be called again at the same time and find the task done: then it tells its notice itself, or finds
// that it was told here.
void untyped_local_task::tell() noexcept {
  std::unique_ptr<end_notice> notice;
  {
    const scoped_lock lock(mutex_);
    notice.swap(notice_);
  }
  end_notice::tell(std::move(notice));
}

}  // namespace muster::detail
