// SPDX-License-Identifier: BSL-1.0
#pragma once

// Calls with futures as arguments: they are submitted once all of those have their values.

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <muster/async/detail/waiting_call.hpp>
#include <muster/async/future.hpp>
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

/// A call that waits for its arguments. `Submit` makes a future<R> of the values.
///
/// Thread safety: as waiting_call.
template <class R, class Submit, class... Values>
class dependent_call final : public waiting_call {
public:
  dependent_call(std::shared_ptr<future_home> home, Submit submit)
      : waiting_call(std::move(home)), submit_(std::in_place, std::move(submit)) {}

  template <class... Given>
  [[nodiscard]] std::shared_ptr<local_state<R>> begin(Given&&... given) {
    (require_valid(given), ...);
    require_texts("argument", given...);
    state_ = std::make_shared<local_state<R>>(canceller(), waiter());
    auto state = state_;
    (remember(given), ...);
    [&]<std::size_t... Index>(std::index_sequence<Index...>) {
      (take<Index>(std::forward<Given>(given)), ...);
    }(std::index_sequence_for<Given...>{});
    enter();
    return state;
  }

private:
  template <class Given>
  static void require_valid(const Given& given) {
    if constexpr (is_future<Given>) future_access::require_valid(given);
  }

  template <class Given>
  void remember(Given& given) {
    if constexpr (is_future<Given>) expect(future_access::handle_of(given));
  }

  template <std::size_t Index, class Given>
  void take(Given&& given) {
    using value = std::tuple_element_t<Index, std::tuple<Values...>>;
    auto& place = std::get<Index>(values_);
    if constexpr (is_future<Given>) {
      static_assert(!std::is_lvalue_reference_v<Given>,
                    "muster: a future that is an argument is used up: std::move it");
      add_missing();
      future_access::when_done<value>(std::forward<Given>(given), [self = self(), &place](outcome<value> how) {
        place.emplace(std::move(how));
        self->arrived();
      });
    } else {
      place.emplace(outcome<value>::of_value(std::forward<Given>(given)));
    }
  }

  [[nodiscard]] std::shared_ptr<dependent_call> self() {
    return std::static_pointer_cast<dependent_call>(this->shared_from_this());
  }

  // What it has reserved in the pool goes with what was to submit it.
  void give_up(const error_info& why) override {
    end(outcome<R>::of_error(error_info::copy_of(why)));
    submit_.reset();
  }

  void submit() override {
    std::optional<outcome<R>> failed;
    const auto look = [&failed](const auto& each) {
      if (!failed && !each->has_value()) failed = each->template failure_as<R>();
    };
    std::apply([&](const auto&... each) { (look(each), ...); }, values_);
    if (failed) return end(std::move(*failed));
    try {
      auto made = std::apply([this](auto&... each) { return (*submit_)(std::move(*each).get()...); }, values_);
      became(future_access::handle_of(made));
      future_access::when_done<R>(std::move(made), [self = self()](outcome<R> how) { self->end(std::move(how)); });
    } catch (...) {
      end(outcome<R>::of_exception(std::current_exception()));
    }
  }

  void end(outcome<R> how) {
    note_end();
    std::exchange(state_, nullptr)->complete(std::move(how));
  }

  std::optional<Submit> submit_;
  std::tuple<std::optional<outcome<Values>>...> values_;
  std::shared_ptr<local_state<R>> state_;
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
