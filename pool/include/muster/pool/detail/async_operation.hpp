// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/system_executor.hpp>

#include <muster/pool/detail/delivery.hpp>
#include <muster/pool/future.hpp>

namespace muster::detail {

/// Where the pool runs callbacks, on its thread or on the program's loop, as an executor of Asio: that of handlers that
/// have none of their own.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe.
class callback_thread {
public:
  explicit callback_thread(std::shared_ptr<callback_executor> thread) noexcept : thread_(std::move(thread)) {}

  /// Runs `what` there soon; without a thread (the pool is gone) on Asio's system executor. Never inside this call.
  template <class F>
  void execute(F&& what) const {
    // A job is copyable, a handler need not be.
    auto held = std::make_shared<std::decay_t<F>>(std::forward<F>(what));
    auto job = [held] { std::move (*held)(); };
    if (thread_ == nullptr || !thread_->try_post(job)) boost::asio::post(boost::asio::system_executor(), job);
  }

  [[nodiscard]] static constexpr boost::asio::execution::blocking_t query(
      boost::asio::execution::blocking_t /*which*/) noexcept {
    return boost::asio::execution::blocking.never;
  }
  [[nodiscard]] callback_thread require(boost::asio::execution::blocking_t::never_t /*is it*/) const { return *this; }

  friend bool operator==(const callback_thread& a, const callback_thread& b) noexcept = default;

private:
  std::shared_ptr<callback_executor> thread_;
};

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

/// An executor, and work outstanding on it. (Boost's guard keeps the executor twice.)
///
/// Thread safety: distinct objects: safe.
template <class Executor, bool IsOfTheStandardModel = boost::asio::execution::is_executor<Executor>::value>
class working_executor {
public:
  explicit working_executor(const Executor& executor)
      : executor_(boost::asio::prefer(executor, boost::asio::execution::outstanding_work.tracked)) {}
  [[nodiscard]] const auto& get() const noexcept { return executor_; }

  /// Whether a handler may be called by the thread that runs `loop`, inside of another handler, as dispatch would do.
  [[nodiscard]] bool may_run_inside(const boost::asio::io_context& loop) const noexcept {
    if constexpr (is_polymorphic) {
      const auto* const found = executor_.template target<tracked_loop>();
      return found != nullptr && is_of(*found, loop);
    } else if constexpr (std::is_same_v<tracked, tracked_loop>) {
      return is_of(executor_, loop);
    } else {
      return false;
    }
  }

private:
  template <class E>
  using tracked_of =
      std::decay_t<decltype(boost::asio::prefer(std::declval<E>(), boost::asio::execution::outstanding_work.tracked))>;
  using tracked = tracked_of<Executor>;
  using tracked_loop = tracked_of<boost::asio::io_context::executor_type>;
  static constexpr bool is_polymorphic =
      requires(const tracked& executor) { executor.template target<tracked_loop>(); };

  static bool is_of(const tracked_loop& executor, const boost::asio::io_context& loop) noexcept {
    using boost::asio::execution::blocking;
    return &boost::asio::query(executor, boost::asio::execution::context) == &loop &&
           boost::asio::query(executor, blocking) == blocking.possibly;
  }

  tracked executor_;
};
template <class Executor>
class working_executor<Executor, false> {
public:
  explicit working_executor(const Executor& executor) : work_(executor) {}
  [[nodiscard]] Executor get() const { return work_.get_executor(); }
  [[nodiscard]] static constexpr bool may_run_inside(const boost::asio::io_context& /*loop*/) noexcept { return false; }

private:
  boost::asio::executor_work_guard<Executor> work_;
};

/// An asynchronous wait under way: keeps the handler, and work on its executor.
///
/// Thread safety: complete() is called once, by any thread.
template <class Form, class Handler, class How>
class async_operation : public delivery {
public:
  async_operation(Handler handler, const callback_thread& otherwise)
      : executor_(boost::asio::get_associated_executor(handler, otherwise)),
        handler_(std::move(handler)),
        otherwise_(otherwise) {}

  static void complete(std::unique_ptr<async_operation> self, How how) {
    self->how_ = std::move(how);
    delivery_scope::put_aside_or_send(std::move(self));
  }

  /// Runs `what` on the handler's executor soon, never inside this call. Requires: complete() has not been called.
  template <class F>
  void post(F what) {
    auto executor = executor_.get();  // `what` may destroy this object meanwhile
    if constexpr (can_post) {
      boost::asio::post(executor, std::move(what));
    } else {
      const auto otherwise = otherwise_;
      otherwise.execute([executor = std::move(executor), what = std::move(what)]() mutable {
        boost::asio::dispatch(executor, std::move(what));
      });
    }
  }

protected:
  [[nodiscard]] How& how() noexcept { return how_; }

private:
  using executor_type = boost::asio::associated_executor_t<Handler, callback_thread>;
  using completion_type = async_completion<Form, Handler, How>;
  using working = working_executor<executor_type>;

  // any_completion_executor of Boost 1.81 cannot be asked not to block: it is only called where that does no harm.
  static constexpr bool can_post =
      !boost::asio::execution::is_executor<executor_type>::value ||
      boost::asio::can_require<executor_type, boost::asio::execution::blocking_t::never_t>::value;

  struct not_needed {
    explicit not_needed(const callback_thread& /*which*/) noexcept {}
  };

  void send() final {
    auto executor = std::move(executor_);
    if constexpr (can_post) {
      boost::asio::post(executor.get(), finish());
    } else {
      const auto otherwise = otherwise_;
      otherwise.execute([executor = std::move(executor), completion = finish()]() mutable {
        boost::asio::dispatch(executor.get(), std::move(completion));
      });
    }
  }

  void deliver(boost::asio::io_context& loop) final {
    const auto executor = std::move(executor_);
    if (executor.may_run_inside(loop)) {
      finish()();
    } else {
      boost::asio::dispatch(executor.get(), finish());
    }
  }

  // Deletes the operation.
  completion_type finish() {
    const std::unique_ptr<async_operation> self(this);
    return {std::move(handler_), std::move(how_)};
  }

  working executor_;
  Handler handler_;
  [[no_unique_address]] std::conditional_t<can_post, not_needed, callback_thread> otherwise_;
  How how_;
};

/// How a task ended: decodes its reply, once.
template <class R>
struct reply_ending {
  std::shared_ptr<pool_core> core;  // whose memory the reply may be in
  task_reply reply;

  outcome<R> operator()() && { return decode_reply<R>(reply); }
};

/// An asynchronous wait for a task: what a future's wait is, without anything in between.
///
/// Thread safety: as async_operation.
template <class R, class Form, class Handler>
class async_task_operation final : public async_operation<Form, Handler, reply_ending<R>>, public reply_sink {
public:
  async_task_operation(Handler handler, const callback_thread& otherwise, std::shared_ptr<pool_core> core)
      : async_operation<Form, Handler, reply_ending<R>>(std::move(handler), otherwise) {
    this->how().core = std::move(core);
  }

  /// It belongs to the task from now on.
  static void begin(std::unique_ptr<async_task_operation> self, task_record& record) {
    const auto core = self->how().core;  // the operation may end meanwhile, and be the last that has it
    core->tasks().begin_listening();
    core->tasks().hand_over(record, *self.release());
  }

  void keep(task_reply&& reply) noexcept override { this->how().reply = std::move(reply); }

  // Whoever tells it keeps the dispatcher alive.
  void ended() noexcept override {
    auto& tasks = this->how().core->tasks();
    delivery_scope::put_aside_or_send(std::unique_ptr<delivery>(this));
    tasks.end_listening();  // now that it has its place in the loop
  }
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

  explicit initiate_wait(const future<R>& what) : otherwise_(future_access::thread_of(what)) {}
  [[nodiscard]] executor_type get_executor() const noexcept { return otherwise_; }

  template <class Handler>
  void operator()(Handler&& handler, future<R> what) const {
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) {
      slot.assign([cancel = future_access::canceller_of(what)](boost::asio::cancellation_type type) {
        if (type != boost::asio::cancellation_type::none) cancel(cancellation_for(type));
      });
    }
    if (auto [core, record] = future_access::take_task(what); record != nullptr) {
      using operation = async_task_operation<R, Form, std::decay_t<Handler>>;
      return operation::begin(std::make_unique<operation>(std::forward<Handler>(handler), otherwise_, std::move(core)),
                              *record);
    }
    using operation = async_operation<Form, std::decay_t<Handler>, ending<R>>;
    // What is called with the end is copyable, an operation is not.
    auto waiting = std::make_shared<std::unique_ptr<operation>>(
        std::make_unique<operation>(std::forward<Handler>(handler), otherwise_));
    future_access::when_ended<R>(
        std::move(what), [waiting](ending<R> how) { operation::complete(std::move(*waiting), std::move(how)); });
  }

private:
  callback_thread otherwise_;
};

}  // namespace muster::detail
