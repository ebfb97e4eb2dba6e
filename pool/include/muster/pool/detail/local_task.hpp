// SPDX-License-Identifier: BSL-1.0
#pragma once

// A task of a pool of threads: the future's source and the queue's job in one object, made by one allocation.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <muster/async/cancellation.hpp>
#include <muster/async/detail/end_notice.hpp>
#include <muster/async/detail/future_source.hpp>
#include <muster/async/detail/outcome.hpp>
#include <muster/async/future.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/pool/detail/invocation.hpp>
#include <muster/pool/detail/lane_route.hpp>
#include <muster/pool/detail/local_access.hpp>
#include <muster/pool/detail/local_job.hpp>
#include <muster/pool/detail/owned_value.hpp>
#include <muster/pool/detail/stop_flag.hpp>
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

/// A task of a pool of threads, but for its types.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: borrows the core until it is done.
class untyped_local_task : public local_job {
public:
  untyped_local_task(local_core& core, lane_route route) noexcept : core_(core), route_(route) {}

  // As a job.
  void run(local_worker& here) noexcept final;
  void withdraw(const error_info& why) noexcept final;

  /// It has a place under max_pending, which it gives back. Requires: it has not been posted.
  void take_place() noexcept { has_place_ = true; }

protected:
  // As the source of a future.
  bool wait_for_end(deadline until);
  [[nodiscard]] bool has_ended() const noexcept { return progress_.is_done(); }
  bool give_up(cancellation how);
  [[nodiscard]] bool is_run_here() const noexcept;
  void tell_of_end(std::unique_ptr<end_notice> notice) MUSTER_EXCLUDES(mutex_);

private:
  /// Calls what is to be called, keeps how it ended, and destroys the callable and its arguments.
  virtual void call_and_keep() noexcept = 0;
  /// Keeps that error instead.
  virtual void keep_failure(const error_info& why) noexcept = 0;

  void execute(local_worker& here) noexcept;
  void fail(const error_info& why) noexcept;
  void finish() noexcept;
  void tell() noexcept MUSTER_EXCLUDES(mutex_);

  local_core& core_;
  local_progress progress_;
  const lane_route route_;
  bool has_place_ = false;
  stop_flag stop_;
  mutex mutex_;
  std::unique_ptr<end_notice> notice_ MUSTER_GUARDED_BY(mutex_);  // written before ask_to_be_told()
};

/// A task whose result is an `R`, whatever is called for it.
///
/// Thread safety and lifetime: as untyped_local_task.
template <class R>
class local_task : public future_source<R>, public untyped_local_task {
public:
  using untyped_local_task::untyped_local_task;

  bool wait(deadline until) override { return wait_for_end(until); }
  [[nodiscard]] bool is_done() const override { return has_ended(); }
  outcome<R> take() override { return std::move(*outcome_); }
  bool cancel(cancellation how) override { return give_up(how); }
  [[nodiscard]] bool runs_here() const noexcept override { return is_run_here(); }
  void when_done(std::unique_ptr<end_notice> notice) override { tell_of_end(std::move(notice)); }

protected:
  /// Calls what is to be called.
  virtual R call() = 0;
  /// Destroys the callable and its arguments, before anybody learns of the end.
  virtual void forget_call() noexcept = 0;

private:
  void call_and_keep() noexcept override {
    auto how = outcome<R>::of_call([this]() -> R { return call(); });
    forget_call();
    outcome_.emplace(std::move(how));
  }
  void keep_failure(const error_info& why) noexcept override {
    forget_call();
    outcome_.emplace(outcome<R>::of_error(error_info::copy_of(why)));
  }

  std::optional<outcome<R>> outcome_;  // written by the thread that began it, before the end is published
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
  using result = typename call::result;
  require_texts("argument", args...);
  auto task = std::make_shared<call>(*core, route, std::move(f), std::forward<Args>(args)...);
  auto made = future_access::of_source<result>(home_of(core), task);
  const auto admitted = begin_unit(*core, limited);
  if (admitted != local_admission::overflow) {
    if (admitted == local_admission::with_place) task->take_place();
    post(*core, std::move(task), route);
    return made;
  }
  auto failed = std::make_shared<local_state<result>>();
  failed->complete(outcome<result>::of_error(overflow_error()));
  return future_access::of_source<result>(home_of(core), std::move(failed));
}

/// A unit that was accepted before it is known what it will call.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class local_unit {
public:
  /// Throws what begin_unit throws.
  explicit local_unit(std::shared_ptr<local_core> core) : core_(std::move(core)) {
    static_cast<void>(begin_unit(*core_, false));  // not limited: it is accepted, or throws
  }
  local_unit(const local_unit&) = delete;
  local_unit& operator=(const local_unit&) = delete;
  ~local_unit() {
    if (owed_) end_unit(*core_);
  }

  /// Requires: called once.
  template <class F, class... Args>
  auto submit(lane_route route, F f, Args&&... args) {
    using call = local_call<F, sent_as<Args>...>;
    auto task = std::make_shared<call>(*core_, route, std::move(f), std::forward<Args>(args)...);
    auto made = future_access::of_source<typename call::result>(home_of(core_), task);
    owed_ = false;
    post(*core_, std::move(task), route);
    return made;
  }

private:
  const std::shared_ptr<local_core> core_;
  bool owed_ = true;
};

}  // namespace muster::detail
