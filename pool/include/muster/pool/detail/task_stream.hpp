// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <muster/async/detail/readiness.hpp>
#include <muster/async/future.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/pool/detail/fifo.hpp>
#include <muster/pool/detail/input_pace.hpp>
#include <muster/pool/detail/stream_source.hpp>

namespace muster::detail {

/// A stream whose elements are tasks of their own, in order: nothing but a window of futures. What chunks of one
/// element are when the callable is cheap to send, at a tenth of the cost.
///
/// `Submit` makes a future of an element.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class R, class Input, class Submit>
class task_stream final : public stream_source<R> {
public:
  /// `waits`: at its end, for elements that run; where callables may refer to what belongs to the consumer.
  task_stream(std::shared_ptr<future_home> home, Input input, Submit submit, std::size_t window, bool waits = false)
      : home_(std::move(home)),
        input_(std::move(input)),
        submit_(std::move(submit)),
        window_(window == 0 ? 1 : window),
        waits_(waits) {}
  task_stream(const task_stream&) = delete;
  task_stream& operator=(const task_stream&) = delete;
  ~task_stream() override {
    if (!home_->is_here()) return;
    for (auto& each : under_way_) each.cancel();
    for (auto& each : under_way_) {
      if (waits_) future_access::await_others(each);
    }
  }

  std::optional<result<streamed<R>>> next() override {
    home_->require_here();
    while (wants_more() && !must_hand_out()) pull_one();
    if (under_way_.empty()) {
      if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
      return std::nullopt;
    }
    auto first = under_way_.take_front();  // what moving its value throws must not leave it there, used up
    first_ready_ = nullptr;
    const auto element = taken_++;
    return of_element(first.get_result(), element);
  }

  std::optional<std::chrono::nanoseconds> when_ready(std::function<void()> then) override {
    home_->require_here();
    while (!Input::may_be_slow && wants_more()) pull_one();
    const auto patience = wants_more() ? std::optional(pace_.patience()) : std::nullopt;
    if (under_way_.empty()) {
      if (patience) return std::chrono::nanoseconds(0);
      then();
    } else if (under_way_.front().ready()) {
      then();
    } else {
      observe_first();
      first_ready_->when(std::move(then));
    }
    return patience;
  }
  // An exception of the input, or of submitting, has its place behind the elements that are under way.
  void pull_one() override {
    try {
      ended_ = !input_.next(
          pace_, [this](auto&& element) { under_way_.push_back(submit_(std::forward<decltype(element)>(element))); });
    } catch (...) {
      ended_ = true;
      failure_ = std::current_exception();
    }
  }
  [[nodiscard]] std::shared_ptr<future_home> home() const override { return home_; }

private:
  [[nodiscard]] bool wants_more() const noexcept { return !ended_ && under_way_.size() < window_; }

  // An input that may make wait is not asked while there is a result.
  [[nodiscard]] bool must_hand_out() {
    if (!Input::may_be_slow || under_way_.empty()) return false;
    auto& first = under_way_.front();
    return first.ready() || (pace_.patience().count() > 0 && first.wait_for(pace_.patience()));
  }

  void observe_first() {
    if (first_ready_ != nullptr) return;
    first_ready_ = std::make_shared<readiness>();
    future_access::observe(under_way_.front(), std::make_unique<readiness_observer>(first_ready_));
  }

  const std::shared_ptr<future_home> home_;
  Input input_;
  input_pace pace_;
  Submit submit_;
  const std::size_t window_;
  const bool waits_;
  fifo<future<R>> under_way_;
  std::shared_ptr<readiness> first_ready_;  // once somebody wants to know
  std::size_t taken_ = 0;
  bool ended_ = false;
  std::exception_ptr failure_;
};

}  // namespace muster::detail
