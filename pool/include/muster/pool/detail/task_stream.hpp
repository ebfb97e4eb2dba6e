// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <muster/pool/detail/stream_source.hpp>
#include <muster/pool/future.hpp>

namespace muster::detail {

/// A stream whose elements are tasks of their own, in order: nothing but a window of futures. What chunks of one
/// element are when the callable is cheap to send: a tenth of what a chunk costs.
///
/// `Submit` makes a future of an element.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class R, class Input, class Submit>
class task_stream final : public stream_source<R> {
public:
  task_stream(Input input, Submit submit, std::size_t window)
      : input_(std::move(input)), submit_(std::move(submit)), window_(std::max<std::size_t>(1, window)) {}
  task_stream(const task_stream&) = delete;
  task_stream& operator=(const task_stream&) = delete;
  ~task_stream() override {
    for (auto& each : under_way_) each.cancel();
  }

  std::optional<result<streamed<R>>> next() override {
    fill();
    if (under_way_.empty()) {
      if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
      return std::nullopt;
    }
    auto found = std::move(under_way_.front()).get_result();
    under_way_.pop_front();
    const auto element = taken_++;
    if (!found.has_value()) return at_place(found.error(), element);
    if constexpr (std::is_void_v<R>) {
      return std::monostate{};
    } else {
      return std::move(*found);
    }
  }

private:
  // An exception of the input, or of submitting, has its place behind the elements that are under way.
  void fill() {
    try {
      while (!ended_ && under_way_.size() < window_) {
        ended_ = !input_.advance();
        if (!ended_) under_way_.push_back(submit_(input_.element()));
      }
    } catch (...) {
      ended_ = true;
      failure_ = std::current_exception();
    }
  }

  static error_info at_place(error_info error, std::size_t element) {
    auto place = error.place();
    place.element = element;
    error.set_place(std::move(place));
    return error;
  }

  Input input_;
  Submit submit_;
  const std::size_t window_;
  std::deque<future<R>> under_way_;
  std::size_t taken_ = 0;
  bool ended_ = false;
  std::exception_ptr failure_;
};

}  // namespace muster::detail
