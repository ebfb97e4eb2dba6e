// SPDX-License-Identifier: BSL-1.0
#pragma once

// Calls with futures as arguments: they are submitted once all of those have their values.

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/base/mutex.hpp>
#include <muster/pool/future.hpp>
#include <muster/serialize/transportable.hpp>

namespace muster::detail {

/// What a call gets for an argument: the value of a future, or the argument.
template <class T>
struct awaited_argument {
  using type = std::conditional_t<is_future<T>, typename future_traits<std::remove_cvref_t<T>>::value, T>;
  static_assert(!std::is_void_v<type>,
                "muster: a future<void> has no value that could be an argument: use its then(), or when_all()");
};
template <class T>
using awaited = typename awaited_argument<T>::type;

/// A call that waits for its arguments. `Submit` makes a future<R> of the values. If the pool ends before they have
/// come, so does the call.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
template <class R, class Submit, class... Values>
class dependent_call : public std::enable_shared_from_this<dependent_call<R, Submit, Values...>> {
public:
  dependent_call(std::shared_ptr<future_home> home, Submit submit)
      : home_(std::move(home)), submit_(std::in_place, std::move(submit)) {}

  template <class... Given>
  [[nodiscard]] std::shared_ptr<local_state<R>> begin(Given&&... given) {
    (require_valid(given), ...);
    require_texts("argument", given...);
    const auto weak = this->weak_from_this();
    state_ = std::make_shared<local_state<R>>(
        [weak](cancellation how) {
          if (const auto self = weak.lock()) self->cancel(how);
        },
        [weak](deadline until) {
          if (const auto self = weak.lock()) self->wait(until);
        });
    auto state = state_;
    (remember(given), ...);
    [&]<std::size_t... Index>(std::index_sequence<Index...>) {
      (take<Index>(std::forward<Given>(given)), ...);
    }(std::index_sequence_for<Given...>{});
    registered_ = home_->waiting().add([weak](const error_info& why) {
      if (const auto self = weak.lock()) self->give_up(why);
    });
    if (!registered_) give_up(home_->waiting().reason());
    arrived();
    return state;
  }

private:
  template <class Given>
  static void require_valid(const Given& given) {
    if constexpr (is_future<Given>) future_access::require_valid(given);
  }

  template <class Given>
  void remember(const Given& given) {
    if constexpr (is_future<Given>) {
      arguments_.push_back({.cancel = future_access::canceller_of(given), .wait = future_access::waiter_of(given)});
    }
  }

  template <std::size_t Index, class Given>
  void take(Given&& given) {
    using value = std::tuple_element_t<Index, std::tuple<Values...>>;
    auto& place = std::get<Index>(values_);
    if constexpr (is_future<Given>) {
      static_assert(!std::is_lvalue_reference_v<Given>,
                    "muster: a future that is an argument is used up: std::move it");
      missing_.fetch_add(1, std::memory_order_relaxed);
      future_access::when_done<value>(std::forward<Given>(given),
                                      [self = this->shared_from_this(), &place](outcome<value> how) {
                                        place.emplace(std::move(how));
                                        self->arrived();
                                      });
    } else {
      place.emplace(outcome<value>::of_value(std::forward<Given>(given)));
    }
  }

  // Once, for whoever comes first: the last argument, or the end of the pool.
  [[nodiscard]] bool try_begin() noexcept { return !begun_.exchange(true, std::memory_order_acq_rel); }

  void arrived() {
    if (missing_.fetch_sub(1, std::memory_order_acq_rel) > 1 || !try_begin()) return;
    if (registered_) home_->waiting().remove(*registered_);
    submit();
  }

  // What it has reserved in the pool goes with what was to submit it. Nobody wants the arguments any more.
  void give_up(const error_info& why) {
    if (!try_begin()) return;
    end(outcome<R>::of_error(error_info::copy_of(why)));
    submit_.reset();
    for (const auto& each : arguments_) each.cancel(cancellation::ask);
  }

  void submit() {
    std::optional<outcome<R>> failed;
    const auto look = [&failed](const auto& each) {
      if (!failed && !each->has_value()) failed = each->template failure_as<R>();
    };
    std::apply([&](const auto&... each) { (look(each), ...); }, values_);
    if (failed) return end(std::move(*failed));
    try {
      auto made = std::apply([this](auto&... each) { return (*submit_)(std::move(*each).get()...); }, values_);
      const auto asked = pass_on({.cancel = future_access::canceller_of(made), .wait = future_access::waiter_of(made)});
      if (asked) made.cancel(*asked);
      future_access::when_done<R>(std::move(made),
                                  [self = this->shared_from_this()](outcome<R> how) { self->end(std::move(how)); });
    } catch (...) {
      end(outcome<R>::of_exception(std::current_exception()));
    }
  }

  void end(outcome<R> how) MUSTER_EXCLUDES(mutex_) {
    {
      const scoped_lock lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    }
    std::exchange(state_, nullptr)->complete(std::move(how));
  }

  /// What a future can be asked for when it is used up.
  struct used_future {
    std::function<void(cancellation)> cancel;
    std::function<void(deadline)> wait;
  };

  // From now on a cancellation goes to the task; tells what was asked for until then.
  std::optional<cancellation> pass_on(used_future to) MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    task_ = std::move(to);
    changed_.notify_all();
    return asked_;
  }

  // The arguments are wanted by nobody else.
  void cancel(cancellation how) MUSTER_EXCLUDES(mutex_) {
    std::function<void(cancellation)> task;
    {
      const scoped_lock lock(mutex_);
      asked_ = how;
      if (task_) task = task_->cancel;
    }
    if (task) return task(how);
    for (const auto& each : arguments_) each.cancel(how);
  }

  // By a thread that may have to run the arguments, and then the task, itself.
  void wait(deadline until) MUSTER_EXCLUDES(mutex_) {
    for (const auto& each : arguments_) {
      if (each.wait) each.wait(until);
    }
    if (const auto task = await_task(until)) task(until);
  }

  // Nothing when it ends without one, or `until` passes first. What submits it may be behind the calling thread.
  [[nodiscard]] std::function<void(deadline)> await_task(deadline until) MUSTER_EXCLUDES(mutex_) {
    const auto pause = callback_pause::until(is_decided() ? deadline(clock::time_point()) : until);
    scoped_lock lock(mutex_);
    while (!task_ && !ended_ && !until.expired()) changed_.wait_until(lock, until);
    return task_ ? task_->wait : nullptr;
  }
  [[nodiscard]] bool is_decided() MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    return task_ || ended_;
  }

  const std::shared_ptr<future_home> home_;
  std::optional<Submit> submit_;
  std::atomic<bool> begun_ = false;
  std::optional<waiting_calls::id> registered_;
  std::tuple<std::optional<outcome<Values>>...> values_;
  std::atomic<std::size_t> missing_ = 1;  // and who begins it
  std::vector<used_future> arguments_;
  std::shared_ptr<local_state<R>> state_;
  mutex mutex_;
  condition changed_;  // there is a task, or there will be none
  bool ended_ MUSTER_GUARDED_BY(mutex_) = false;
  std::optional<used_future> task_ MUSTER_GUARDED_BY(mutex_);
  std::optional<cancellation> asked_ MUSTER_GUARDED_BY(mutex_);
};

/// Submits a call once its arguments are there: `submit` makes its future of their values, on a callback thread.
template <class Submit, class... Args>
auto submit_when_ready(std::shared_ptr<future_home> home, Submit submit, Args&&... args) {
  using R = typename future_traits<std::invoke_result_t<Submit&, sent_as<awaited<Args>>...>>::value;
  using call = dependent_call<R, Submit, sent_as<awaited<Args>>...>;
  auto made = std::make_shared<call>(home, std::move(submit));
  return future_access::of_source<R>(std::move(home), made->begin(std::forward<Args>(args)...));
}

}  // namespace muster::detail
