// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include <muster/async/detail/arrivals.hpp>
#include <muster/async/future.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/pool/detail/input_pace.hpp>
#include <muster/pool/detail/stream_source.hpp>

namespace muster::detail {

/// A stream whose elements are tasks of their own, as they get done: a window of futures. See task_stream for those in
/// order.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class R, class Input, class Submit>
class unordered_task_stream final : public stream_source<R> {
public:
  /// `inside`: whether the calling thread is one of the pool's, which must not sleep while nobody has begun them.
  unordered_task_stream(std::shared_ptr<future_home> home, Input input, Submit submit, std::size_t window,
                        std::function<bool()> inside)
      : home_(std::move(home)),
        input_(std::move(input)),
        submit_(std::move(submit)),
        window_(window == 0 ? 1 : window),
        inside_(std::move(inside)) {}
  unordered_task_stream(const unordered_task_stream&) = delete;
  unordered_task_stream& operator=(const unordered_task_stream&) = delete;
  ~unordered_task_stream() override {
    if (!home_->is_here()) return;
    for (auto& [element, each] : under_way_) each.cancel();
    // Callables may refer to what belongs to the consumer.
    for (auto& [element, each] : under_way_) future_access::await_others(each);
  }

  std::optional<result<streamed<R>>> next() override {
    home_->require_here();
    while (wants_more() && !must_hand_out()) pull_one();
    if (under_way_.empty()) {
      if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
      return std::nullopt;
    }
    if (inside_()) under_way_.begin()->second.wait();
    const auto which = under_way_.find(take_next(*arrivals_));
    const auto element = which->first;
    auto ended = std::move(which->second);  // what moving its value throws must not leave it there, used up
    under_way_.erase(which);
    return of_element(ended.get_result(), element);
  }

  std::optional<std::chrono::nanoseconds> when_ready(std::function<void()> then) override {
    home_->require_here();
    while (!Input::may_be_slow && wants_more()) pull_one();
    const auto patience = wants_more() ? std::optional(pace_.patience()) : std::nullopt;
    if (!under_way_.empty()) {
      when_some(*arrivals_, std::move(then));
      return patience;
    }
    if (patience) return std::chrono::nanoseconds(0);
    then();
    return std::nullopt;
  }
  void pull_one() override {
    try {
      ended_ = !input_.next(pace_, [this](auto&& element) { add(submit_(std::forward<decltype(element)>(element))); });
    } catch (...) {
      ended_ = true;
      failure_ = std::current_exception();
    }
  }
  [[nodiscard]] std::shared_ptr<future_home> home() const override { return home_; }

private:
  [[nodiscard]] bool wants_more() const noexcept { return !ended_ && under_way_.size() < window_; }

  void add(future<R> made) {
    auto observer = arrival_notice(arrivals_, taken_);
    const auto added = under_way_.emplace(taken_, std::move(made)).first;
    try {
      future_access::observe(added->second, std::move(observer));
    } catch (...) {
      under_way_.erase(added);
      throw;
    }
    ++taken_;
  }

  // An input that may make wait is not asked while there is a result.
  [[nodiscard]] bool must_hand_out() {
    if (!Input::may_be_slow || under_way_.empty()) return false;
    const auto patience = inside_() ? std::chrono::nanoseconds(0) : pace_.patience();
    return wait_for_some(*arrivals_, deadline::after(patience));
  }

  const std::shared_ptr<future_home> home_;
  Input input_;
  input_pace pace_;
  Submit submit_;
  const std::size_t window_;
  const std::function<bool()> inside_;
  const std::shared_ptr<arrivals> arrivals_ = make_arrivals();
  std::unordered_map<std::size_t, future<R>> under_way_;  // by element
  std::size_t taken_ = 0;
  bool ended_ = false;
  std::exception_ptr failure_;
};

}  // namespace muster::detail
