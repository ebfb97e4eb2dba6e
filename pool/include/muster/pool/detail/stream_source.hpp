// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include <muster/async/detail/future_home.hpp>
#include <muster/async/detail/future_source.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/serialize/result.hpp>

namespace muster::detail {

/// What a stream over results of type R yields; void becomes monostate.
template <class R>
using streamed = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

/// How a task ended as a result of a stream: an error says which element it is of.
template <class R>
[[nodiscard]] result<streamed<R>> of_element(result<R>&& found, std::size_t element) {
  if (found.has_value()) {
    if constexpr (std::is_void_v<R>)
      return std::monostate{};
    else
      return std::move(*found);
  }
  auto error = found.error();
  auto place = error.place();
  place.element = element;
  error.set_place(std::move(place));
  return error;
}

/// Where a stream has its results from.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class R>
class stream_source {
public:
  virtual ~stream_source() = default;
  /// The next result; nothing at the end. Waits for it. Throws what the input throws.
  virtual std::optional<result<streamed<R>>> next() = 0;

  /// Calls `then` once next() would neither wait nor ask an input that may make it wait, inside this call if that is
  /// so now; by any thread, so that `then` only passes the news on. Who asked before is forgotten. Takes elements only
  /// from an input that never makes wait. Returns after how long pull_one() is to be called, unless `then` has been by
  /// then; nothing: not at all.
  virtual std::optional<std::chrono::nanoseconds> when_ready(std::function<void()> then) = 0;
  /// Takes one element from the input and sends it, or learns that there is none. What the input throws comes from
  /// next(). Requires: when_ready() wanted it.
  virtual void pull_one() {}

  /// Where callbacks run.
  [[nodiscard]] virtual std::shared_ptr<future_home> home() const = 0;
};

/// Whether next() would not wait; false when `until` passed first. The input is asked once in any case, if it is time
/// for that: whoever only ever looks whether there is something gets on too.
template <class R>
bool await_next(stream_source<R>& from, deadline until) {
  const auto listening = from.home()->listen();
  for (bool asked = false;; asked = true) {
    const auto is_ready = std::make_shared<local_state<void>>();  // may be told when nobody waits any more
    const auto patience = from.when_ready([is_ready] { is_ready->complete(outcome<void>::of_value()); });
    if (!patience || (asked && until.expired())) return is_ready->wait(until);
    const auto time_to_ask = deadline::after(*patience);
    if (is_ready->wait(time_to_ask.when() < until.when() ? time_to_ask : until)) return true;
    if (!time_to_ask.expired()) return false;
    from.pull_one();
  }
}

}  // namespace muster::detail
