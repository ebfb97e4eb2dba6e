// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <muster/async/future.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/fork_count.hpp>
#include <muster/pool/detail/input_pace.hpp>
#include <muster/pool/detail/input_thread.hpp>
#include <muster/pool/detail/sent_elements.hpp>
#include <muster/pool/detail/stream_source.hpp>

namespace muster::detail {

/// A stream whose input is gone over by a thread of its own, which sends each element, as a task, when it comes: for
/// inputs that are marked slow().
///
/// `Submit` makes a future of an element.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class R, class Input, class Submit>
class slow_stream final : public stream_source<R> {
public:
  struct settings {
    bool ordered = true;
    std::size_t window = 1;
    bool waits = false;              ///< at its end, for elements that run: callables may refer to the consumer's
    std::function<bool()> inside{};  ///< whether the calling thread is one of the pool's, which has to help; or empty
  };

  slow_stream(std::shared_ptr<future_home> home, Input input, Submit submit, settings how)
      : home_(std::move(home)),
        settings_(std::move(how)),
        elements_(std::make_shared<sent_elements<R>>(settings_.ordered, settings_.window)),
        sender_(std::make_shared<sender>(std::move(input), std::move(submit), elements_)) {}
  slow_stream(const slow_stream&) = delete;
  slow_stream& operator=(const slow_stream&) = delete;
  ~slow_stream() override {
    if (!home_->is_here()) {
      leave_to_parent(std::move(elements_), std::move(sender_), std::move(thread_));
      return;
    }
    elements_->stop();
    thread_.end();
    elements_->stop();  // what has come meanwhile
    if (settings_.waits) elements_->wait();
    elements_->clear();
  }

  std::optional<result<streamed<R>>> next() override {
    start();
    if (settings_.inside && settings_.inside()) elements_->wait_for_oldest();
    auto taken = elements_->take();
    if (!taken) return std::nullopt;
    taken->task.wait();
    elements_->make_room();
    return of_element(taken->task.get_result(), taken->number);
  }

  std::optional<std::chrono::nanoseconds> when_ready(std::function<void()> then) override {
    start();
    elements_->when_next(std::move(then));
    return std::nullopt;
  }
  [[nodiscard]] std::shared_ptr<future_home> home() const override { return home_; }

private:
  // What the thread needs.
  struct sender {
    sender(Input from, Submit how, std::shared_ptr<sent_elements<R>> to)
        : input(std::move(from)), submit(std::move(how)), elements(std::move(to)) {}

    void run() noexcept {
      input_pace not_of_interest;
      const auto send = [this](auto&& element) { elements->add(submit(std::forward<decltype(element)>(element))); };
      try {
        while (elements->wait_for_room() && input.next(not_of_interest, send)) continue;
        elements->end();
      } catch (...) {
        elements->end(std::current_exception());
      }
    }

    Input input;
    Submit submit;
    const std::shared_ptr<sent_elements<R>> elements;
  };

  // Without a thread it has ended, with that error.
  void start() {
    home_->require_here();
    if (std::exchange(started_, true)) return;
    try {
      thread_.start([sender = sender_] { sender->run(); });
    } catch (...) {
      elements_->end(std::current_exception());
    }
  }

  const std::shared_ptr<future_home> home_;
  const settings settings_;
  std::shared_ptr<sent_elements<R>> elements_;
  std::shared_ptr<sender> sender_;
  input_thread thread_;
  bool started_ = false;
};

}  // namespace muster::detail
