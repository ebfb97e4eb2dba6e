// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <muster/async/cancellation.hpp>
#include <muster/async/detail/end_call.hpp>
#include <muster/async/detail/future_handle.hpp>
#include <muster/async/detail/future_source.hpp>
#include <muster/async/detail/outcome.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/serialize/max_value_bytes.hpp>
#include <muster/serialize/result.hpp>

namespace muster {

template <class R>
class future;

namespace detail {

template <class T>
struct future_traits {
  static constexpr bool is_future = false;
  using value = T;
};
template <class R>
struct future_traits<future<R>> {
  static constexpr bool is_future = true;
  using value = R;
};

/// Whether an argument is a future: then the call waits for its value.
template <class T>
inline constexpr bool is_future = future_traits<std::remove_cvref_t<T>>::is_future;

/// Access for the functions that make futures and take them apart.
struct future_access {
  template <class R>
  static future<R> of_handle(future_handle handle) {
    return future<R>(std::move(handle));
  }
  template <class R>
  static future<R> of_source(std::shared_ptr<future_home> home, std::shared_ptr<future_source<R>> source) {
    return future<R>(detail::handle_of<R>(std::move(home), std::move(source)));
  }
  template <class R>
  [[nodiscard]] static const std::shared_ptr<future_home>& home_of(const future<R>& which) {
    return which.handle_.home();
  }
  template <class R>
  [[nodiscard]] static const future_handle& handle_of(const future<R>& which) {
    return which.handle_;
  }
  /// What it is, which is the caller's from now on.
  template <class R>
  [[nodiscard]] static future_handle take_handle(future<R>& which) {
    return std::move(which.handle_);
  }
  /// Calls `then`, a step of the library's, with how it ended, on the pool's thread for those. The future is used up.
  /// All that this needs is allocated inside this call: when it throws, the future is as it was.
  template <class R, class Then>
  static void when_done(future<R>&& which, Then then) {
    which.require_valid();
    end_call::begin(std::make_unique<end_function<R, Then>>(std::move(then)), which.handle_, end_place::steps);
  }
  /// The same with a function of the program's, which runs where its callbacks do.
  template <class R, class Then>
  static void call_back(future<R>&& which, Then then) {
    which.require_valid();
    end_call::begin(std::make_unique<end_function<R, Then>>(std::move(then)), which.handle_, end_place::callbacks);
  }
  /// Throws errc::invalid_argument when it refers to nothing: for functions that use up several, before they use up
  /// one.
  template <class R>
  static void require_valid(const future<R>& which) {
    which.require_valid();
  }
  /// Throws errc::invalid_argument also where ends are noticed only by a thread of the library's that waits for them.
  template <class R>
  static void require_noticed(const future<R>& which) {
    which.handle_.require_noticed();
  }
  /// As future::cancel, also when the future is used up; callable by any thread, at any time. Keeps the pool's core.
  template <class R>
  [[nodiscard]] static std::function<void(cancellation)> canceller_of(const future<R>& which) {
    return which.handle_.canceller();
  }
  /// As future::wait_until, also when the future is used up; callable by any thread, at any time. Nothing for a task in
  /// a worker process, which no thread of this one can run. Keeps the pool's core.
  template <class R>
  [[nodiscard]] static std::function<void(deadline)> waiter_of(const future<R>& which) {
    return which.handle_.waiter();
  }
  /// Waits until it is done, unless the calling thread is inside of it: for destructors that wait for what they own.
  template <class R>
  static void await_others(future<R>& which) {
    if (!which.handle_.runs_here()) which.wait();
  }
  /// Tells `observer` once it is done, or drops it when the future is given up. The future stays as it is.
  template <class R>
  static void observe(future<R>& which, std::unique_ptr<end_notice> observer) {
    which.require_valid();
    which.handle_.notify(std::move(observer));
  }
};

}  // namespace detail

/// The value that a task will have, or the reason why there is none.
///
/// Move-only; `get` and its like use it up. Destroying it neither waits nor cancels: the task runs to its end, and its
/// result is dropped. It may outlive its pool.
/// Process safety: as its pool's.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Visibility: what the worker did in shared memory before its task returned is visible after get() or wait().
template <class R>
class [[nodiscard]] future {
public:
  using value_type = R;

  /// Refers to nothing.
  future() noexcept = default;

  /// Whether it refers to something; false after get() and its like.
  [[nodiscard]] bool valid() const noexcept { return handle_.valid(); }

  /// Waits, and returns the value or throws: the task's own exception if its type is registered or standard, else as
  /// its nearest base that is, or as remote_exception (exception_type.hpp); worker_died; task_error with the errc that
  /// says why there is no value; or what moving the value threw. Unblocked by: the end of the task, in whatever way;
  /// the pool's destruction at the latest. In a task, for a call to its own pool: this_pool.hpp. Throws
  /// errc::invalid_argument when it is not valid().
  R get() { return take().get(); }

  /// As get, but the failure is data.
  [[nodiscard]] result<R> get_result() { return take().to_result(); }

  /// Waits until there is a value or an error. Unblocked as get().
  void wait() { static_cast<void>(wait_until(deadline::never())); }
  /// Waits for a limited time. Returns false when the time passed first; the task goes on then.
  ///@{
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> time) {
    return wait_until(deadline::after(time));
  }
  [[nodiscard]] bool wait_until(deadline until) {
    require_valid();
    return handle_.wait(until);
  }
  ///@}
  /// Returns whether there is a value or an error, without waiting. Throws errc::invalid_argument when this future is
  /// not valid().
  [[nodiscard]] bool ready() const {
    require_valid();
    return handle_.is_done();
  }

  /// Withdraws the task if no worker has begun it: the result is true, and get() throws errc::cancelled. Otherwise asks
  /// it to stop, which it may heed (this_task::stop_requested()), and the result is false. A map is given up in any
  /// case. `how` says to go less or further; with cancellation::kill the task of a process ends with errc::cancelled
  /// once its worker is dead, unless it was done before; what it had done in the world stays done.
  bool cancel(cancellation how = cancellation::ask) {
    require_valid();
    return handle_.cancel(how);
  }

  /// A future for what `next` makes of the value. `next` runs in this process on the pool's callback thread, never
  /// inside this call (unless the pool is gone already); a failure skips it and goes on to the returned future.
  /// Callbacks run one after the other. One may wait for any future: while it waits for what other callbacks make,
  /// those run, on another thread; at most 255 can wait so, then get() throws errc::overflow. Not so where the pool was
  /// given a loop: a thread of that loop that waits for a callback keeps the loop from running it; co_await instead.
  /// The future is used up. Throws errc::invalid_argument when it is not valid(), EAGAIN when there is no thread for
  /// callbacks and none can be had; then it is as it was. Cancelling the returned future cancels this task.
  template <class F>
  [[nodiscard]] auto then(F next);

  /// Calls `on_value` with the value (with nothing, for void) or `on_error` with the error_info, once, on the pool's
  /// callback thread, never inside this call (unless the pool is gone already). What they throw is logged and harms
  /// nothing. They may call the pool and wait, as then() says. The future is used up.
  template <class OnValue, class OnError>
  void on_complete(OnValue on_value, OnError on_error);

  /// Waits as an asynchronous operation of Boost.Asio, of signature void(std::exception_ptr, R), or
  /// void(std::exception_ptr) for void: takes any completion token. The future is used up.
  /// Needs muster/async/asio.hpp, where completion and cancellation are described.
  template <class Token>
  auto operator()(Token&& token);
  /// The same, of signature void(result<R>): failures are data. Without a token it can be co_awaited as it is.
  ///@{
  template <class Token>
  auto as_result(Token&& token);
  [[nodiscard]] auto as_result();
  ///@}

  /// A std::future for the same value. The future is used up. Cost: a hop over a thread of the pool's. Throws as
  /// then(). What it is does not know of callbacks: one that waits for it holds up those behind it, and where one of
  /// these makes the value, as in `f.then(g).std().get()`, for ever; there, get() without std(). Needs
  /// muster/async/std_future.hpp.
  template <class Value = R>
  [[nodiscard]] auto std();

  void swap(future& other) noexcept { handle_.swap(other.handle_); }

private:
  friend struct detail::future_access;

  explicit future(detail::future_handle handle) noexcept : handle_(std::move(handle)) {}

  void require_valid() const { handle_.require_valid(); }

  detail::outcome<R> take() {
    static_cast<void>(wait_until(deadline::never()));
    return detail::take_outcome<R>(std::move(handle_));
  }

  detail::future_handle handle_;
};

template <class R>
template <class F>
auto future<R>::then(F next) {
  using U = typename std::conditional_t<std::is_void_v<R>, std::invoke_result<F>, std::invoke_result<F, R>>::type;
  detail::require_fitting<F>();
  if constexpr (!std::is_void_v<U>) detail::require_fitting<U>();
  require_valid();
  auto state = std::make_shared<detail::local_state<U>>(detail::future_access::canceller_of(*this),
                                                        detail::future_access::waiter_of(*this));
  const auto home = handle_.home();
  detail::future_access::call_back<R>(
      std::move(*this), [state, next = std::move(next)](detail::outcome<R> how) mutable {
        if (!how.has_value()) {
          state->complete(how.template failure_as<U>());
        } else if constexpr (std::is_void_v<R>) {
          state->complete(detail::outcome<U>::of_call(next));
        } else {
          state->complete(detail::outcome<U>::of_call([&]() -> U { return next(std::move(how).get()); }));
        }
      });
  return detail::future_access::of_source<U>(home, std::move(state));
}

template <class R>
template <class OnValue, class OnError>
void future<R>::on_complete(OnValue on_value, OnError on_error) {
  detail::require_fitting<OnValue>();
  detail::require_fitting<OnError>();
  // NOLINTBEGIN(performance-unnecessary-value-param): of void there is nothing to move out
  detail::future_access::call_back<R>(
      std::move(*this),
      [on_value = std::move(on_value), on_error = std::move(on_error)](detail::outcome<R> how) mutable {
        if (!how.has_value()) {
          on_error(how.error());
        } else if constexpr (std::is_void_v<R>) {
          on_value();
        } else {
          on_value(std::move(how).get());
        }
      });
  // NOLINTEND(performance-unnecessary-value-param)
}

}  // namespace muster
