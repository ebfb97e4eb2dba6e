// SPDX-License-Identifier: BSL-1.0
#pragma once

// A task of a pool of threads: the future's source and the queue's job in one object, made by one allocation.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <muster/base/mutex.hpp>
#include <muster/pool/detail/invocation.hpp>
#include <muster/pool/detail/local_core.hpp>
#include <muster/pool/detail/local_state.hpp>
#include <muster/pool/detail/owned_value.hpp>
#include <muster/pool/future.hpp>
#include <muster/serialize/callable.hpp>

namespace muster::detail {

/// How far a task of a pool of threads is, in one word that its future sleeps on.
///
/// Thread safety: safe; one waiter at a time, and one who is told.
class local_progress {
public:
  /// True for the one who is to run it, or to end it otherwise.
  [[nodiscard]] bool try_begin() noexcept { return (state_.fetch_or(begun, std::memory_order_acq_rel) & begun) == 0; }
  [[nodiscard]] bool is_done() const noexcept { return (state_.load(std::memory_order_acquire) & done) != 0; }

  /// Publishes everything before it to whoever sees is_done(). True when somebody is to be told.
  [[nodiscard]] bool finish() noexcept;
  /// Asks for finish() to say so. False when it is done already, and will not say it any more.
  [[nodiscard]] bool ask_to_be_told() noexcept {
    return (state_.fetch_or(told, std::memory_order_acq_rel) & done) == 0;
  }
  /// Waits for finish(); false when `until` passed first.
  bool wait(local_core& core, lane_route route, deadline until) noexcept;

  /// Who runs it, for those who wait for it. By whoever it is, after try_begin().
  void note_runner(int worker) noexcept { runner_.store(worker, std::memory_order_relaxed); }
  /// Whether that worker, which asks, has begun it and not ended it.
  [[nodiscard]] bool is_run_by(int worker) const noexcept {
    return runner_.load(std::memory_order_relaxed) == worker && !is_done();
  }
  /// By a worker of its pool: waits for finish(). False when that cannot come, as local_waits says: then who waits
  /// tries to begin it, ends it with an error, and waits again.
  [[nodiscard]] bool wait_at(local_core& core, const local_worker& here, lane_route route);

private:
  friend class local_task_wait;

  static constexpr std::uint32_t begun = 1;
  static constexpr std::uint32_t done = 2;
  static constexpr std::uint32_t awaited = 4;
  static constexpr std::uint32_t told = 8;
  static constexpr std::uint32_t hopeless = 16;

  bool spin(local_core& core, lane_route route, deadline until) noexcept;
  bool sleep(deadline until) noexcept;

  std::atomic<std::uint32_t> state_ = 0;  // futex
  // Relaxed: it matters once that worker waits, which it says under the mutex of local_waits.
  std::atomic<int> runner_ = -1;
};

/// A task whose result is an `R`, whatever is called for it.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: borrows the core until it is done.
template <class R>
class local_task : public future_source<R>, public local_job {
public:
  local_task(local_core& core, lane_route route) noexcept : core_(core), route_(route) {}

  // As a job.
  void run(local_worker& here) noexcept override {
    if (progress_.try_begin()) execute(here);
  }
  void withdraw(const error_info& why) noexcept override {
    if (progress_.try_begin()) fail(why);
  }

  /// It has a place under max_pending, which it gives back. Requires: it has not been posted.
  void take_place() noexcept { has_place_ = true; }

  // As the source of a future.
  bool wait(deadline until) override {
    if (progress_.is_done()) return true;
    if (auto* const here = core_.inside(route_); here != nullptr && progress_.try_begin()) {
      execute(*here);  // nobody has begun it, and perhaps nobody else ever could
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
  [[nodiscard]] bool is_done() const override { return progress_.is_done(); }
  outcome<R> take() override { return std::move(*outcome_); }

  bool cancel(cancellation how) override {
    if (progress_.is_done()) return false;
    if (progress_.try_begin()) {
      // Begun here, it must end here: also without memory for the text.
      fail(
          error_info::described(errc::cancelled, [] { return std::string("cancelled before a thread had begun it"); }));
      return true;
    }
    if (how != cancellation::withdraw) stop_.request();
    return false;
  }

  [[nodiscard]] bool runs_here() const noexcept override {
    const auto* const here = core_.inside();
    return here != nullptr && progress_.is_run_by(here->id);
  }

  void when_done(std::unique_ptr<end_notice> notice) override MUSTER_EXCLUDES(mutex_) {
    {
      const scoped_lock lock(mutex_);
      notice_.swap(notice);
    }
    if (!progress_.ask_to_be_told()) tell();
  }

protected:
  /// Calls what is to be called.
  virtual R call() = 0;
  /// Destroys the callable and its arguments, before anybody learns of the end.
  virtual void forget_call() noexcept = 0;

private:
  void execute(local_worker& here) noexcept {
    const local_worker::task_scope scope(here, stop_);
    progress_.note_runner(here.id);
    auto how = outcome<R>::of_call([this]() -> R { return call(); });
    forget_call();
    finish(std::move(how));
  }

  void fail(const error_info& why) noexcept {
    forget_call();
    finish(outcome<R>::of_error(error_info::copy_of(why)));
  }

  void finish(outcome<R> how) noexcept {
    outcome_.emplace(std::move(how));
    if (has_place_) core_.free_place();
    if (progress_.finish()) tell();
    core_.end_unit();
  }

  // when_done() may be called again at the same time and find the task done: then it tells its notice itself, or finds
  // that it was told here.
  void tell() noexcept MUSTER_EXCLUDES(mutex_) {
    std::unique_ptr<end_notice> notice;
    {
      const scoped_lock lock(mutex_);
      notice.swap(notice_);
    }
    end_notice::tell(std::move(notice));
  }

  local_core& core_;
  local_progress progress_;
  const lane_route route_;
  bool has_place_ = false;
  stop_flag stop_;
  std::optional<outcome<R>> outcome_;  // written by whoever began it, before progress_.finish()
  mutex mutex_;
  std::unique_ptr<end_notice> notice_ MUSTER_GUARDED_BY(mutex_);  // written before ask_to_be_told()
};

/// A callable with its bound values, taken apart.
template <class F>
struct local_callable {
  using bound_values = std::tuple<>;
  F callable;
  [[no_unique_address]] bound_values bound;
  explicit local_callable(F&& whole) : callable(std::move(whole)) { require_callable(callable); }
};
template <class F, class... Bound>
struct local_callable<bind_front_t<F, Bound...>> {
  using bound_values = std::tuple<Bound...>;
  F callable;
  bound_values bound;
  explicit local_callable(bind_front_t<F, Bound...>&& whole)
      : callable(std::move(whole.callable)), bound(std::move(whole.bound)) {}
};

/// Calls it as a worker process would: bound values as const references, arguments as rvalues. `ForElement`: as one of
/// several, see call_for_element().
template <bool ForElement = false, class F, class... Args>
decltype(auto) call_locally(local_callable<F>& what, Args&&... args) {
  return [&]<std::size_t... B>(std::index_sequence<B...>) -> decltype(auto) {
    if constexpr (std::is_member_pointer_v<decltype(what.callable)>) {
      return std::invoke(what.callable, std::as_const(std::get<B>(what.bound))..., std::forward<Args>(args)...);
    } else if constexpr (ForElement) {
      return call_for_element(what.callable, std::as_const(std::get<B>(what.bound))..., std::forward<Args>(args)...);
    } else {
      return call_with(what.callable, std::as_const(std::get<B>(what.bound))..., std::forward<Args>(args)...);
    }
  }(std::make_index_sequence<std::tuple_size_v<typename local_callable<F>::bound_values>>{});
}

/// A callable that cannot be copied, for all tasks that call it, also at the same time.
template <class F>
class shared_callable {
public:
  explicit shared_callable(F&& whole) : of_(std::make_shared<local_callable<F>>(std::move(whole))) {}

  template <class... Args>
  decltype(auto) operator()(Args&&... args) const {
    return call_locally(*of_, std::forward<Args>(args)...);
  }

private:
  std::shared_ptr<local_callable<F>> of_;
};

/// A callable of which several tasks get a copy.
template <class F>
[[nodiscard]] auto to_repeat(F callable) {
  if constexpr (std::is_copy_constructible_v<F>) {
    return callable;
  } else {
    return shared_callable<F>(std::move(callable));
  }
}

/// The call of `F` with `Args`, which it owns.
template <class F, class... Args>
class local_call final : public local_task<task_result<F, Args...>> {
public:
  using result = task_result<F, Args...>;

  template <class... Given>
  local_call(local_core& core, lane_route route, F&& f, Given&&... args)
      : local_task<result>(core, route), parts_(std::in_place, std::move(f), std::forward<Given>(args)...) {}

private:
  struct parts {
    template <class... Given>
    explicit parts(F&& f, Given&&... given)
        : callable(std::move(f)), args(to_own<Args>(std::forward<Given>(given))...) {}
    local_callable<F> callable;
    std::tuple<Args...> args;
  };

  result call() override {
    return [this]<std::size_t... A>(std::index_sequence<A...>) -> result {
      return call_locally(parts_->callable, std::move(std::get<A>(parts_->args))...);
    }(std::index_sequence_for<Args...>{});
  }
  void forget_call() noexcept override { parts_.reset(); }

  std::optional<parts> parts_;
};

/// One call as a task of a pool of threads. `limited`: it counts against thread_pool_options::max_pending.
template <class F, class... Args>
auto submit_local(const std::shared_ptr<local_core>& core, lane_route route, bool limited, F f, Args&&... args) {
  using call = local_call<F, sent_as<Args>...>;
  require_texts("argument", args...);
  auto task = std::make_shared<call>(*core, route, std::move(f), std::forward<Args>(args)...);
  auto made = future_access::of_source<typename call::result>(core, task);
  const auto admitted = core->begin_unit(limited);
  if (admitted != local_core::admission::overflow) {
    if (admitted == local_core::admission::with_place) task->take_place();
    core->post(std::move(task), route);
    return made;
  }
  auto failed = std::make_shared<local_state<typename call::result>>();
  failed->complete(outcome<typename call::result>::of_error(local_core::overflow_error()));
  return future_access::of_source<typename call::result>(core, std::move(failed));
}

/// A unit that was accepted before it is known what it will call.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class local_unit {
public:
  /// Throws what begin_unit throws.
  explicit local_unit(std::shared_ptr<local_core> core) : core_(std::move(core)) {
    static_cast<void>(core_->begin_unit(false));  // not limited: it is accepted, or throws
  }
  local_unit(const local_unit&) = delete;
  local_unit& operator=(const local_unit&) = delete;
  ~local_unit() {
    if (owed_) core_->end_unit();
  }

  /// Requires: called once.
  template <class F, class... Args>
  auto submit(lane_route route, F f, Args&&... args) {
    using call = local_call<F, sent_as<Args>...>;
    auto task = std::make_shared<call>(*core_, route, std::move(f), std::forward<Args>(args)...);
    auto made = future_access::of_source<typename call::result>(core_, task);
    owed_ = false;
    core_->post(std::move(task), route);
    return made;
  }

private:
  const std::shared_ptr<local_core> core_;
  bool owed_ = true;
};

}  // namespace muster::detail
