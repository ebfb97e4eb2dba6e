// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <muster/async/detail/callback_thread.hpp>
#include <muster/async/detail/callbacks.hpp>
#include <muster/async/detail/delivery.hpp>
#include <muster/async/detail/working_executor.hpp>
#include <muster/async/future.hpp>
#include <muster/base/detail/fork_count.hpp>

namespace muster::detail {

/// What ends an asynchronous wait for a future: runs on the handler's executor, once, and decodes the value there.
///
/// `Form` makes the handler's arguments of the outcome, which `How` gives.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class Form, class Handler, class How>
class async_completion {
public:
  async_completion(Handler handler, How how) : handler_(std::move(handler)), how_(std::move(how)) {}

  using allocator_type = boost::asio::associated_allocator_t<Handler>;
  [[nodiscard]] allocator_type get_allocator() const noexcept {
    return boost::asio::get_associated_allocator(handler_);
  }

  void operator()() && {
    // Signals are not thread-safe: it is emptied where the program emits it.
    auto slot = boost::asio::get_associated_cancellation_slot(handler_);
    if (slot.is_connected()) slot.clear();
    Form::call(std::move(handler_), std::move(how_)());
  }
  void operator()() & { std::move (*this)(); }

private:
  Handler handler_;
  How how_;
};

/// An asynchronous wait under way: keeps the handler, and work on its executor.
///
/// Its end is noticed by a thread that may be the supervisor, so that nothing is allocated then but by Asio, which may
/// fail: the wait is kept until Asio has it, and is posted again by the pool's thread for its own steps. `How` gives
/// the outcome, once, and steps(), that thread.
/// Thread safety: complete() is called once, by any thread.
template <class Form, class Handler, class How>
class async_operation : public delivery, public deferred_call {
public:
  async_operation(Handler handler, const callback_thread& otherwise, How how)
      : executor_(boost::asio::get_associated_executor(handler, otherwise)),
        handler_(std::move(handler)),
        otherwise_(otherwise),
        how_(std::move(how)) {
    if constexpr (needs_callbacks) otherwise_.prepare(*this);
  }

  static void complete(std::unique_ptr<async_operation> self) noexcept {
    delivery_scope::put_aside_or_send(std::move(self));
  }

  /// Runs `what` on the handler's executor soon, never inside this call, and in this process only. Requires: complete()
  /// has not been called.
  template <class F>
  void post(F what) {
    auto executor = executor_->get();  // `what` may destroy this object meanwhile
    auto here = [made_in = made_in_, what = std::move(what)]() mutable {
      if (made_in.is_here()) what();
    };
    if constexpr (can_post) {
      boost::asio::post(executor, std::move(here));
    } else {
      const auto otherwise = otherwise_;
      otherwise.execute([executor = std::move(executor), here = std::move(here)]() mutable {
        boost::asio::dispatch(executor, std::move(here));
      });
    }
  }

  [[nodiscard]] How& how() noexcept { return how_; }

private:
  using executor_type = boost::asio::associated_executor_t<Handler, callback_thread>;
  using completion_type = async_completion<Form, Handler, How>;
  using working = working_executor<executor_type>;

  static constexpr bool has_own_executor = !std::is_same_v<executor_type, callback_thread>;
  // any_completion_executor of Boost 1.81 cannot be asked not to block: it is only called where that does no harm.
  static constexpr bool can_post =
      !boost::asio::execution::is_executor<executor_type>::value ||
      boost::asio::can_require<executor_type, boost::asio::execution::blocking_t::never_t>::value;
  static constexpr bool needs_callbacks = !has_own_executor || !can_post;

  struct not_needed {
    explicit not_needed(const callback_thread& /*which*/) noexcept {}
  };

  // What Asio posts: one of the operation's owners.
  class posted {
  public:
    explicit posted(async_operation& operation) noexcept : operation_(&operation) {
      operation.owners_.fetch_add(1, std::memory_order_relaxed);
    }
    posted(posted&& other) noexcept : operation_(std::exchange(other.operation_, nullptr)) {}
    posted& operator=(posted&&) = delete;
    ~posted() {
      if (operation_ != nullptr) operation_->release();
    }

    using allocator_type = boost::asio::associated_allocator_t<Handler>;
    [[nodiscard]] allocator_type get_allocator() const noexcept {
      return boost::asio::get_associated_allocator(*operation_->handler_);
    }
    // In a forked child that goes on with the loop the handler is not called: it is the parent's.
    void operator()() {
      if (!operation_->made_in_.is_here()) return;
      auto completion = operation_->take_completion();
      operation_->executor_.reset();  // the last owner may be a thread that must not touch the executor any more
      std::exchange(operation_, nullptr)->release();
      std::move(completion)();
    }

  private:
    async_operation* operation_;
  };

  // Uses one owner up.
  class owned {
  public:
    explicit owned(async_operation& operation) noexcept : operation_(operation) {}
    owned(const owned&) = delete;
    owned& operator=(const owned&) = delete;
    ~owned() { operation_.release(); }

  private:
    async_operation& operation_;
  };

  void send() noexcept final {
    if constexpr (needs_callbacks) {
      otherwise_.post(deferred_ptr(this));
    } else {
      const owned until_posted(*this);
      if (!try_to_post()) post_later();
    }
  }

  // False when Asio has failed, which it does before it has taken the operation.
  [[nodiscard]] bool try_to_post() noexcept {
    try {
      const auto executor = executor_->get();  // a copy: the handler may run before post() returns
      boost::asio::post(executor, posted(*this));
      return true;
    } catch (...) {
      return false;
    }
  }

  void post_later() noexcept {
    owners_.fetch_add(1, std::memory_order_relaxed);
    deferred_ptr self(this);
    if constexpr (needs_callbacks) {
      otherwise_.post(std::move(self));
    } else {
      if (auto* const steps = how_.steps(); steps != nullptr && detail::try_post(*steps, self)) return;
      // The pool has ended, and there is neither memory nor a thread: the handler must be called all the same.
      while (!try_to_post()) std::this_thread::yield();
    }
  }

  // On the thread that `otherwise_` is, or on that for steps.
  void run() final {
    if constexpr (!has_own_executor) {
      take_completion()();
    } else if constexpr (!can_post) {
      const auto executor = executor_->get();
      boost::asio::dispatch(executor, take_completion());
    } else if constexpr (can_post) {
      if (!try_to_post()) post_later();
    }
  }
  void dispose() noexcept final { release(); }

  // Not dispatched: an executor that may call handlers where it is asked to would do so on the thread of the loop.
  void deliver(boost::asio::io_context& loop) final {
    if (!executor_->may_run_inside(loop)) return send();
    posted self(*this);
    release();
    self();
  }

  // Nothing of the program's stays behind.
  completion_type take_completion() {
    completion_type completion(std::move(*handler_), std::move(how_));
    handler_.reset();
    return completion;
  }

  void release() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  std::optional<working> executor_;
  std::optional<Handler> handler_;
  [[no_unique_address]] std::conditional_t<needs_callbacks, callback_thread, not_needed> otherwise_;
  How how_;
  const fork_stamp made_in_ = fork_stamp::of_this_process();
  std::atomic<unsigned> owners_ = 1;
};

/// How a future ended: takes its outcome, once.
template <class R>
struct future_ending {
  future_handle of;

  outcome<R> operator()() && { return take_outcome<R>(std::move(of)); }
  [[nodiscard]] callback_executor* steps() const noexcept {
    return of.home() != nullptr ? &of.home()->steps() : nullptr;
  }
};

/// An asynchronous wait for a future.
///
/// Thread safety: as async_operation.
template <class R, class Form, class Handler>
class async_future_operation final : public async_operation<Form, Handler, future_ending<R>>, public end_notice {
public:
  async_future_operation(Handler handler, const callback_thread& otherwise)
      : async_operation<Form, Handler, future_ending<R>>(std::move(handler), otherwise, {}) {}
  ~async_future_operation() override {
    if (listening_ != nullptr) listening_->end_listening();
  }

  static void begin(std::unique_ptr<async_future_operation> self, future_handle of) {
    if (of.home() != nullptr) {
      of.home()->begin_listening();
      self->listening_ = of.home();
    }
    auto& kept = self->how().of;
    kept = std::move(of);
    kept.notify(std::move(self));
  }

private:
  void tell() noexcept override {
    const auto home = std::move(listening_);
    delivery_scope::put_aside_or_send(std::unique_ptr<delivery>(this));
    if (home != nullptr) home->end_listening();  // now that it has its place in the loop
  }

  std::shared_ptr<future_home> listening_;  // on its loop
};

/// The handler's arguments of futures that are waited for as they are: an exception or null, and the value.
template <class R>
struct value_or_exception {
  static_assert(std::is_default_constructible_v<R>,
                "muster: the handler of a failed call gets a value too, so this type needs a default constructor; or "
                "wait for as_result()");
  using signature = void(std::exception_ptr, R);
  template <class Handler>
  static void call(Handler&& handler, outcome<R> how) {
    if (how.has_value()) {
      std::forward<Handler>(handler)(std::exception_ptr(), std::move(how).get());
    } else {
      std::forward<Handler>(handler)(how.exception(), R());
    }
  }
};
template <>
struct value_or_exception<void> {
  using signature = void(std::exception_ptr);
  template <class Handler>
  static void call(Handler&& handler, const outcome<void>& how) {
    std::forward<Handler>(handler)(how.has_value() ? std::exception_ptr() : how.exception());
  }
};

/// The one argument of those that are waited for by as_result().
template <class R>
struct whole_result {
  using signature = void(result<R>);
  template <class Handler>
  static void call(Handler&& handler, outcome<R> how) {
    std::forward<Handler>(handler)(std::move(how).to_result());
  }
};

/// How far Asio's types of cancellation go: the furthest that was asked for.
[[nodiscard]] inline cancellation cancellation_for(boost::asio::cancellation_type type) noexcept {
  using boost::asio::cancellation_type;
  if ((type & cancellation_type::terminal) != cancellation_type::none) return cancellation::kill;
  if ((type & cancellation_type::partial) != cancellation_type::none) return cancellation::ask;
  return cancellation::withdraw;
}

/// Begins an asynchronous wait.
///
/// Thread safety: distinct objects: safe.
template <class R, class Form>
class initiate_wait {
public:
  using executor_type = callback_thread;

  explicit initiate_wait(const future<R>& what)
      : otherwise_(future_access::home_of(what) != nullptr ? future_access::home_of(what)->shared_callbacks()
                                                           : nullptr) {}
  [[nodiscard]] executor_type get_executor() const noexcept { return otherwise_; }

  template <class Handler>
  void operator()(Handler&& handler, future<R> what) const {
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) {
      slot.assign([cancel = future_access::canceller_of(what)](boost::asio::cancellation_type type) {
        if (type != boost::asio::cancellation_type::none) cancel(cancellation_for(type));
      });
    }
    using operation = async_future_operation<R, Form, std::decay_t<Handler>>;
    operation::begin(std::make_unique<operation>(std::forward<Handler>(handler), otherwise_),
                     future_access::take_handle(what));
  }

private:
  callback_thread otherwise_;
};

}  // namespace muster::detail
