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

/// Decodes a reply, in the thread that wants the value. What is thrown on the way is how the task ended. Values that
/// are made in this process need not be transportable; a future of such a type never holds a task. `Reply`: task_reply
/// or nested_reply.
template <class R, class Reply>
[[nodiscard]] outcome<R> decode_reply(const Reply& reply) noexcept {
  try {
    if (!reply.succeeded()) return outcome<R>::of_error(reply.error());
    if constexpr (std::is_void_v<R>) {
      return outcome<R>::of_value();
    } else if constexpr (!sendable_value<R>) {
      return outcome<R>::of_error(error_info(errc::not_serializable, "values of this type do not come from tasks"));
    } else {
      reply_attachments attachments(reply.shared());
      return outcome<R>::of_made([&] { return codec<R>::decode_value(reply.bytes(), &attachments); });
    }
  } catch (const error& failure) {
    return outcome<R>::of_error(
        error_info::described(errc::not_serializable, [&] { return std::string(failure.what()); }));
  } catch (...) {  // of a serialize function, or for want of memory
    return outcome<R>::of_exception(std::current_exception());
  }
}

/// Calls `Then` with how a task in a worker process ended, on `where`. It is made when the callback is registered, and
/// takes the reply itself, so that the thread that observes the end, often the supervisor, only passes a pointer on.
///
/// Thread safety: distinct objects: safe.
template <class R, class Then>
class task_end_call final : public reply_sink, public deferred_call {
public:
  task_end_call(std::shared_ptr<pool_core> core, callback_executor& where, Then then)
      : core_(std::move(core)), where_(where), then_(std::move(then)) {}

  /// The task belongs to `self` from now on.
  static void begin(std::unique_ptr<task_end_call> self, task_record& record) noexcept {
    auto& tasks = self->core_->tasks();
    tasks.begin_listening();
    tasks.hand_over(record, *self.release());
  }

  void keep(task_reply&& reply) noexcept override { reply_ = std::move(reply); }

  // The caller keeps the dispatcher. Once posted, this object may be destroyed.
  void ended() noexcept override {
    auto& tasks = core_->tasks();
    where_.post(deferred_ptr(this));
    tasks.end_listening();
  }

  void run() override { then_(decode_reply<R>(reply_)); }

private:
  const std::shared_ptr<pool_core> core_;  // the reply may be in its memory
  callback_executor& where_;               // of the core
  Then then_;
  task_reply reply_;
};

/// Calls `Then` with how a future_source ended, on `where`, as task_end_call does.
///
/// Thread safety: distinct objects: safe.
template <class R, class Then>
class source_end_call final : public end_notice, public deferred_call {
public:
  source_end_call(std::shared_ptr<future_home> home, callback_executor& where, std::shared_ptr<future_source<R>> source,
                  Then then)
      : home_(std::move(home)),
        listening_(home_->listen()),
        where_(where),
        source_(std::move(source)),
        then_(std::move(then)) {}

  void run() override { then_(take_outcome(*source_)); }

private:
  void tell() noexcept override {
    const auto home = home_;
    const auto until_it_is_posted = std::move(listening_);
    where_.post(deferred_ptr(this));
  }

  const std::shared_ptr<future_home> home_;
  std::shared_ptr<void> listening_;
  callback_executor& where_;  // of the home
  const std::shared_ptr<future_source<R>> source_;
  Then then_;
};

/// Calls `Then` in the thread that observes the end: for what belongs to no pool, and has ended already.
///
/// Thread safety: distinct objects: safe.
template <class Then>
class immediate_notice final : public end_notice {
public:
  explicit immediate_notice(Then then) : then_(std::move(then)) {}

private:
  void tell() noexcept override {
    const std::unique_ptr<immediate_notice> self(this);
    then_();
  }

  Then then_;
};

/// Learns that a future is done, from the thread that observes it. Exactly one of its two functions is called, once.
class end_observer : public completion_sink {
public:
  virtual void noticed() noexcept = 0;
  void settled(task_record& /*not ours*/) noexcept final { noticed(); }

protected:
  ~end_observer() = default;
};

/// Tells an observer of the end of a source, or that the source has dropped it.
///
/// Thread safety: distinct objects: safe.
class observer_notice final : public end_notice {
public:
  explicit observer_notice(end_observer& observer) noexcept : observer_(&observer) {}
  observer_notice(const observer_notice&) = delete;
  observer_notice& operator=(const observer_notice&) = delete;
  ~observer_notice() override {
    if (observer_ != nullptr) observer_->abandoned();
  }

private:
  void tell() noexcept override {
    const std::unique_ptr<observer_notice> self(this);
    std::exchange(observer_, nullptr)->noticed();
  }

  end_observer* observer_;
};

/// Access for the functions that make futures and take them apart.
struct future_access {
  template <class R>
  static future<R> of_task(std::shared_ptr<pool_core> core, task_record& record) {
    return future<R>(std::move(core), &record, nullptr);
  }
  template <class R>
  static future<R> of_source(std::shared_ptr<future_home> home, std::shared_ptr<future_source<R>> source) {
    return future<R>(std::move(home), nullptr, std::move(source));
  }
  template <class R>
  static const std::shared_ptr<future_home>& home_of(const future<R>& which) {
    return which.home_;
  }
  /// Calls `then`, a step of the library's, with how it ended, on the pool's thread for those. The future is used up.
  /// All that this needs is allocated inside this call: when it throws, the future is as it was.
  template <class R, class Then>
  static void when_done(future<R>&& which, Then then);
  /// The same with a function of the program's, which runs where its callbacks do.
  template <class R, class Then>
  static void call_back(future<R>&& which, Then then);
  /// Its source, which is the caller's from now on; null where it is a task in a worker process.
  template <class R>
  [[nodiscard]] static std::shared_ptr<future_source<R>> take_source(future<R>& which) {
    return std::exchange(which.source_, nullptr);
  }
  /// The task in a worker process that it is, which is the caller's from now on; null where it is none.
  template <class R>
  [[nodiscard]] static std::pair<std::shared_ptr<pool_core>, task_record*> take_task(future<R>& which) {
    if (which.record_ == nullptr) return {};
    return {std::static_pointer_cast<pool_core>(std::move(which.home_)), std::exchange(which.record_, nullptr)};
  }
  template <class R>
  [[nodiscard]] static std::shared_ptr<callback_executor> thread_of(const future<R>& which) {
    return which.home_ != nullptr ? which.home_->shared_callbacks() : nullptr;
  }
  /// Throws errc::invalid_argument when it refers to nothing: for functions that use up several, before they use up
  /// one.
  template <class R>
  static void require_valid(const future<R>& which) {
    which.require_valid();
  }
  /// As future::cancel, also when the future is used up; callable by any thread, at any time. Keeps the pool's core.
  template <class R>
  [[nodiscard]] static std::function<void(cancellation)> canceller_of(const future<R>& which);
  /// As future::wait_until, also when the future is used up; callable by any thread, at any time. Nothing for a task in
  /// a worker process, which no thread of this one can run. Keeps the pool's core.
  template <class R>
  [[nodiscard]] static std::function<void(deadline)> waiter_of(const future<R>& which) {
    if (which.source_ == nullptr) return nullptr;
    return [home = which.home_, source = which.source_](deadline until) { static_cast<void>(source->wait(until)); };
  }
  /// Waits until it is done, unless the calling thread is inside of it: for destructors that wait for what they own.
  template <class R>
  static void await_others(future<R>& which) {
    if (which.source_ == nullptr || !which.source_->runs_here()) which.wait();
  }
  /// Tells `observer`, which deletes itself then, once it is done or dropped. The future stays as it is.
  template <class R, class Observer>
  static void observe(future<R>& which, std::unique_ptr<Observer> observer);

private:
  template <class R, class Then>
  static void run_at_end(future<R>&& which, callback_executor& where, Then then);
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
  future(future&& other) noexcept
      : home_(std::move(other.home_)),
        record_(std::exchange(other.record_, nullptr)),
        source_(std::move(other.source_)) {}
  future& operator=(future&& other) noexcept {
    future(std::move(other)).swap(*this);
    return *this;
  }
  ~future() {
    if (home_ != nullptr && !home_->is_here()) [[unlikely]]
      detail::leave_to_parent(std::move(home_), std::move(source_));
    else if (record_ != nullptr)
      tasks().detach(*record_);
  }

  /// Whether it refers to something; false after get() and its like.
  [[nodiscard]] bool valid() const noexcept { return record_ != nullptr || source_ != nullptr; }

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
  /// False when the time passed first.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> time) {
    return wait_until(deadline::after(time));
  }
  [[nodiscard]] bool wait_until(deadline until) {
    require_valid();
    return record_ != nullptr ? tasks().wait(*record_, until) : source_->wait(until);
  }
  [[nodiscard]] bool ready() const {
    require_valid();
    return record_ != nullptr ? tasks().is_done(*record_) : source_->is_done();
  }

  /// Withdraws the task if no worker has begun it: the result is true, and get() throws errc::cancelled. Otherwise asks
  /// it to stop, which it may heed (this_task::stop_requested()), and the result is false. A map is given up in any
  /// case. `how` says to go less or further; with cancellation::kill the task of a process ends with errc::cancelled
  /// once its worker is dead, unless it was done before; what it had done in the world stays done.
  bool cancel(cancellation how = cancellation::ask) {
    require_valid();
    return record_ != nullptr ? tasks().cancel(*record_, how) : source_->cancel(how);
  }

  /// A future for what `next` makes of the value. `next` runs in this process on the pool's callback thread, never
  /// inside this call (unless the pool is gone already); a failure skips it and goes on to the returned future.
  /// Callbacks run one after the other. One may wait for any future: while it waits for what other callbacks make,
  /// those run, on another thread; at most 255 can wait so, then get() throws errc::overflow. Not so where the pool was
  /// given a loop: who waits there for a callback of that loop keeps it from running it; co_await instead. The future
  /// is used up. Throws errc::invalid_argument when it is not valid(), EAGAIN when there is no thread for callbacks and
  /// none can be had; then it is as it was. Cancelling the returned future cancels this task.
  template <class F>
  [[nodiscard]] auto then(F next);

  /// Calls `on_value` with the value (with nothing, for void) or `on_error` with the error_info, once, on the pool's
  /// callback thread, never inside this call (unless the pool is gone already). What they throw is logged and harms
  /// nothing. They may call the pool and wait, as then() says. The future is used up.
  template <class OnValue, class OnError>
  void on_complete(OnValue on_value, OnError on_error);

  /// Waits as an asynchronous operation of Boost.Asio, of signature void(std::exception_ptr, R), or
  /// void(std::exception_ptr) for void: takes any completion token. The future is used up.
  /// Needs muster/pool/async.hpp, where completion and cancellation are described.
  template <class Token>
  auto operator()(Token&& token);
  /// The same, of signature void(result<R>): failures are data. Without a token it can be co_awaited as it is.
  template <class Token>
  auto as_result(Token&& token);
  [[nodiscard]] auto as_result();

  /// A std::future for the same value. The future is used up. Cost: a hop over a thread of the pool's. Throws as
  /// then(). What it is does not know of callbacks: one that waits for it holds up those behind it, and where one of
  /// these makes the value, as in `f.then(g).std().get()`, for ever; there, get() without std().
  [[nodiscard]] std::future<R> std();

  void swap(future& other) noexcept {
    std::swap(home_, other.home_);
    std::swap(record_, other.record_);
    std::swap(source_, other.source_);
  }

private:
  friend struct detail::future_access;

  future(std::shared_ptr<detail::future_home> home, task_record* record,
         std::shared_ptr<detail::future_source<R>> source)
      : home_(std::move(home)), record_(record), source_(std::move(source)) {}

  void require_valid() const {
    if (!valid())
      throw error(errc::invalid_argument,
                  "this future refers to nothing: it was moved from, or get() was called before");
    if (home_ != nullptr) home_->require_here();
  }

  // Requires: it refers to a task in a worker process, which only a pool_core has.
  [[nodiscard]] dispatcher& tasks() const noexcept { return static_cast<detail::pool_core&>(*home_).tasks(); }

  detail::outcome<R> take() {
    static_cast<void>(wait_until(deadline::never()));
    if (record_ == nullptr) return std::exchange(source_, nullptr)->take();
    const auto reply = tasks().take(*std::exchange(record_, nullptr));
    return detail::decode_reply<R>(reply);
  }

  std::shared_ptr<detail::future_home> home_;
  task_record* record_ = nullptr;                     // a task in a worker process …
  std::shared_ptr<detail::future_source<R>> source_;  // … or something that is made here
};

template <class R, class Then>
void detail::future_access::run_at_end(future<R>&& which, callback_executor& where, Then then) {
  if (which.record_ != nullptr) {
    using call = task_end_call<R, Then>;
    auto made = std::make_unique<call>(std::static_pointer_cast<pool_core>(which.home_), where, std::move(then));
    where.prepare(*made);
    call::begin(std::move(made), *std::exchange(which.record_, nullptr));
  } else {
    const auto source = which.source_;
    auto made = std::make_unique<source_end_call<R, Then>>(which.home_, where, source, std::move(then));
    where.prepare(*made);
    source->when_done(std::move(made));
    which.source_ = nullptr;
  }
}

template <class R, class Then>
void detail::future_access::when_done(future<R>&& which, Then then) {
  which.require_valid();
  if (which.home_ != nullptr) return run_at_end(std::move(which), which.home_->steps(), std::move(then));
  // when_all of nothing: it is done, and belongs to no pool.
  auto now = [source = which.source_, then = std::move(then)]() mutable { then(take_outcome(*source)); };
  std::exchange(which.source_, nullptr)->when_done(std::make_unique<immediate_notice<decltype(now)>>(std::move(now)));
}

template <class R, class Then>
void detail::future_access::call_back(future<R>&& which, Then then) {
  which.require_valid();
  if (which.home_ == nullptr) return when_done(std::move(which), std::move(then));
  run_at_end(std::move(which), which.home_->callbacks(), std::move(then));
}

template <class R>
std::function<void(cancellation)> detail::future_access::canceller_of(const future<R>& which) {
  if (which.record_ == nullptr)
    return [home = which.home_, source = which.source_](cancellation how) { source->cancel(how); };
  return [core = std::static_pointer_cast<pool_core>(which.home_), record = which.record_,
          id = which.record_->id()](cancellation how) { core->tasks().cancel_if_still(*record, id, how); };
}

template <class R, class Observer>
void detail::future_access::observe(future<R>& which, std::unique_ptr<Observer> observer) {
  which.require_valid();
  if (which.record_ != nullptr) {
    which.tasks().subscribe(*which.record_, *observer.release());
  } else {
    auto notice = std::make_unique<observer_notice>(*observer);
    static_cast<void>(
        observer.release());  // NOLINT(bugprone-unused-return-value): the notice tells it, and it deletes itself
    which.source_->when_done(std::move(notice));
  }
}

template <class R>
template <class F>
auto future<R>::then(F next) {
  using U = typename std::conditional_t<std::is_void_v<R>, std::invoke_result<F>, std::invoke_result<F, R>>::type;
  detail::require_fitting<F>();
  if constexpr (!std::is_void_v<U>) detail::require_fitting<U>();
  require_valid();
  auto state = std::make_shared<detail::local_state<U>>(detail::future_access::canceller_of(*this),
                                                        detail::future_access::waiter_of(*this));
  const auto home = home_;
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

// Not by a promise, which moves the value inside of std::call_once: what the move throws would come out of that, and
// ThreadSanitizer's never ends then. A task catches it before.
template <class R>
std::future<R> future<R>::std() {
  using task = std::packaged_task<R(detail::outcome<R>&)>;
  task read([](detail::outcome<R>& how) -> R { return std::move(how).get(); });
  auto made = read.get_future();
  detail::future_access::when_done<R>(std::move(*this),
                                      [read = std::move(read)](detail::outcome<R> how) mutable { read(how); });
  return made;
}

}  // namespace muster
