// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>

#include <muster/base/clock.hpp>
#include <muster/pool/detail/local_state.hpp>
#include <muster/pool/detail/pool_core.hpp>
#include <muster/serialize/codec.hpp>
#include <muster/serialize/result.hpp>

namespace muster {

template <class R>
class future;

namespace detail {

/// Decodes a reply, in whichever thread wants the value. Values that are made in this process need not be
/// transportable; a future of such a type never holds a task. `Reply`: task_reply or nested_reply.
template <class R, class Reply>
[[nodiscard]] outcome<R> decode_reply(const Reply& reply) {
  if (!reply.succeeded()) return outcome<R>::of_error(reply.error());
  if constexpr (std::is_void_v<R>) {
    return outcome<R>::of_value();
  } else if constexpr (!transportable<R>) {
    return outcome<R>::of_error(error_info(errc::not_serializable, "values of this type do not come from tasks"));
  } else {
    try {
      return outcome<R>::of_value(std::get<0>(codec<R>::decode(reply.bytes())));
    } catch (const error& failure) {
      return outcome<R>::of_error(error_info(errc::not_serializable, failure.what()));
    } catch (...) {  // of a serialize function
      return outcome<R>::of_exception(std::current_exception());
    }
  }
}

/// Told of a task's end, it decodes the reply on the callback thread and hands it on. Deletes itself.
template <class R>
class reply_continuation final : public completion_sink {
public:
  using receiver = std::function<void(outcome<R>)>;
  reply_continuation(std::shared_ptr<pool_core> core, receiver then) : core_(std::move(core)), then_(std::move(then)) {}

  void settled(task_record& record) noexcept override {
    auto reply = std::make_shared<task_reply>(core_->tasks().take(record));
    core_->callbacks().post([reply = std::move(reply), then = std::move(then_)] { then(decode_reply<R>(*reply)); });
    delete this;
  }

private:
  const std::shared_ptr<pool_core> core_;
  receiver then_;
};

/// Told that a future is done, by whichever thread noticed. Exactly one of its two functions is called, once.
class end_observer : public completion_sink {
public:
  virtual void noticed() noexcept = 0;
  void settled(task_record& /*not ours*/) noexcept final { noticed(); }

protected:
  ~end_observer() = default;
};

/// Access for the functions that make futures and take them apart.
struct future_access {
  template <class R>
  static future<R> of_task(std::shared_ptr<pool_core> core, task_record& record) {
    return future<R>(std::move(core), &record, nullptr);
  }
  template <class R>
  static future<R> of_source(std::shared_ptr<pool_core> core, std::shared_ptr<future_source<R>> source) {
    return future<R>(std::move(core), nullptr, std::move(source));
  }
  template <class R>
  static const std::shared_ptr<pool_core>& core_of(const future<R>& which) {
    return which.core_;
  }
  /// Calls `then` on the callback thread with how it ended. The future is used up.
  template <class R>
  static void when_done(future<R>&& which, std::function<void(outcome<R>)> then);
  /// Tells `observer` once it is done, or gives it up. The future stays as it is.
  template <class R>
  static void observe(future<R>& which, end_observer& observer);
};

}  // namespace detail

/// The value that a task will have, or the reason why there is none.
///
/// Move-only; `get` and its like use it up. Destroying it neither waits nor cancels: the task runs to its end, and its
/// result is dropped. It may outlive its pool.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Visibility: what the worker did in shared memory before its task returned is visible after get() or wait().
template <class R>
class [[nodiscard]] future {
public:
  using value_type = R;

  /// Refers to nothing.
  future() noexcept = default;
  future(future&& other) noexcept
      : core_(std::move(other.core_)),
        record_(std::exchange(other.record_, nullptr)),
        source_(std::move(other.source_)) {}
  future& operator=(future&& other) noexcept {
    future(std::move(other)).swap(*this);
    return *this;
  }
  ~future() {
    if (record_ != nullptr) core_->tasks().detach(*record_);
  }

  /// Whether it refers to something; false after get() and its like.
  [[nodiscard]] bool valid() const noexcept { return record_ != nullptr || source_ != nullptr; }

  /// Waits, and returns the value or throws: the task's own exception if its type is known here, remote_exception if it
  /// is not, worker_died, or task_error with the errc that says why there is no value.
  /// Unblocked by: the end of the task, in whatever way; the pool's destruction at the latest.
  /// In a task, for a call to its own pool: this_pool.hpp.
  /// Throws errc::invalid_argument when it is not valid().
  R get() { return take().get(); }

  /// As get, but the failure is data.
  [[nodiscard]] result<R> get_result() { return take().to_result(); }

  /// Waits until there is a value or an error. Unblocked as get().
  void wait() { static_cast<void>(wait_until(deadline::never())); }
  /// False when the time passed first.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> time) {
    return wait_until(deadline::after(time));
  }
  [[nodiscard]] bool wait_until(deadline until) {
    require_valid();
    return record_ != nullptr ? core_->tasks().wait(*record_, until) : source_->wait(until);
  }
  [[nodiscard]] bool ready() const {
    require_valid();
    return record_ != nullptr ? core_->tasks().is_done(*record_) : source_->is_done();
  }

  /// Withdraws the task if no worker has begun it: the result is true, and get() throws errc::cancelled. Otherwise asks
  /// it to stop, which it may heed (this_task::stop_requested()), and the result is false.
  bool cancel() {
    require_valid();
    return record_ != nullptr ? core_->tasks().cancel(*record_) : source_->cancel();
  }

  /// A future for what `next` makes of the value. `next` runs in this process on the pool's callback thread, never
  /// inside this call (unless the pool is gone already); a failure skips it and goes on to the returned future.
  /// The future is used up. Throws errc::invalid_argument when it is not valid().
  template <class F>
  [[nodiscard]] auto then(F next);

  /// Calls `on_value` with the value (with nothing, for void) or `on_error` with the error_info, once, on the pool's
  /// callback thread, never inside this call (unless the pool is gone already). What they throw is logged and harms
  /// nothing. They may call the pool, get() included. The future is used up.
  template <class OnValue, class OnError>
  void on_complete(OnValue on_value, OnError on_error);

  /// A std::future for the same value. The future is used up. Cost: a hop over the callback thread.
  [[nodiscard]] std::future<R> std();

  void swap(future& other) noexcept {
    std::swap(core_, other.core_);
    std::swap(record_, other.record_);
    std::swap(source_, other.source_);
  }

private:
  friend struct detail::future_access;

  future(std::shared_ptr<detail::pool_core> core, task_record* record, std::shared_ptr<detail::future_source<R>> source)
      : core_(std::move(core)), record_(record), source_(std::move(source)) {}

  void require_valid() const {
    if (!valid())
      throw error(errc::invalid_argument,
                  "this future refers to nothing: it was moved from, or get() was called before");
  }

  detail::outcome<R> take() {
    static_cast<void>(wait_until(deadline::never()));
    if (record_ == nullptr) return std::exchange(source_, nullptr)->take();
    const auto reply = core_->tasks().take(*std::exchange(record_, nullptr));
    return detail::decode_reply<R>(reply);
  }

  std::shared_ptr<detail::pool_core> core_;
  task_record* record_ = nullptr;                     // a task in a worker …
  std::shared_ptr<detail::future_source<R>> source_;  // … or something that is made here
};

template <class R>
void detail::future_access::when_done(future<R>&& which, std::function<void(outcome<R>)> then) {
  which.require_valid();
  const auto core = which.core_;
  if (which.record_ != nullptr) {
    auto* continuation = new reply_continuation<R>(core, std::move(then));  // deletes itself when it is told
    core->tasks().subscribe(*std::exchange(which.record_, nullptr), *continuation);
    return;
  }
  auto source = std::exchange(which.source_, nullptr);
  if (core == nullptr) {  // when_all of nothing: it is done, and belongs to no pool
    then(source->take());
    return;
  }
  source->when_done(
      [core, source, then = std::move(then)] { core->callbacks().post([source, then] { then(source->take()); }); });
}

template <class R>
void detail::future_access::observe(future<R>& which, end_observer& observer) {
  which.require_valid();
  if (which.record_ != nullptr) {
    which.core_->tasks().subscribe(*which.record_, observer);
  } else {
    which.source_->when_done([&observer] { observer.noticed(); });
  }
}

template <class R>
template <class F>
auto future<R>::then(F next) {
  using U = typename std::conditional_t<std::is_void_v<R>, std::invoke_result<F>, std::invoke_result<F, R>>::type;
  auto state = std::make_shared<detail::local_state<U>>();
  const auto core = core_;
  detail::future_access::when_done<R>(
      std::move(*this), [state, next = std::make_shared<F>(std::move(next))](detail::outcome<R> how) {
        if (!how.has_value()) {
          state->complete(how.template failure_as<U>());
        } else if constexpr (std::is_void_v<R>) {
          state->complete(detail::outcome<U>::of_call(*next));
        } else {
          state->complete(detail::outcome<U>::of_call([&]() -> U { return (*next)(std::move(how).get()); }));
        }
      });
  return detail::future_access::of_source<U>(core, std::move(state));
}

template <class R>
template <class OnValue, class OnError>
void future<R>::on_complete(OnValue on_value, OnError on_error) {
  auto both = std::make_shared<std::pair<OnValue, OnError>>(std::move(on_value), std::move(on_error));
  detail::future_access::when_done<R>(std::move(*this), [both](detail::outcome<R> how) {
    if (!how.has_value()) {
      both->second(how.error());
    } else if constexpr (std::is_void_v<R>) {
      both->first();
    } else {
      both->first(std::move(how).get());
    }
  });
}

template <class R>
std::future<R> future<R>::std() {
  auto promise = std::make_shared<std::promise<R>>();
  auto made = promise->get_future();
  detail::future_access::when_done<R>(std::move(*this), [promise](detail::outcome<R> how) {
    try {
      if constexpr (std::is_void_v<R>) {
        std::move(how).get();
        promise->set_value();
      } else {
        promise->set_value(std::move(how).get());
      }
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  });
  return made;
}

}  // namespace muster
