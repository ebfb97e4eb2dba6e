// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <muster/async/future.hpp>
#include <muster/async/when_all.hpp>
#include <muster/base/error.hpp>

namespace muster {

/// Which of several futures ended first, and its value (a std::monostate for void).
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
template <class R>
struct first_ended {
  std::size_t index = 0;      ///< of the future that ended first, in the vector that was given
  detail::gathered<R> value;  ///< its value
};

namespace detail {

/// Of several, the first that ends completes the state; the others are cancelled.
///
/// Thread safety: safe.
template <class R>
class first_of : public std::enable_shared_from_this<first_of<R>> {
public:
  first_of(std::vector<future<R>>& futures, cancellation losers) : losers_(losers) {
    for (const auto& each : futures) cancellers_.push_back(future_access::canceller_of(each));
  }

  void begin(std::vector<future<R>> futures) {
    state = std::make_shared<local_state<first_ended<R>>>(canceller_of_all(futures), runner_of(futures));
    for (std::size_t index = 0; index < futures.size(); ++index) {
      future_access::when_done<R>(std::move(futures[index]), [self = this->shared_from_this(), index](outcome<R> how) {
        self->ended(index, std::move(how));
      });
    }
  }

  std::shared_ptr<local_state<first_ended<R>>> state;

private:
  // By a thread that may have to run one of them itself: the first that it can.
  [[nodiscard]] std::function<void(deadline)> runner_of(const std::vector<future<R>>& futures) {
    std::vector<std::function<void(deadline)>> all;
    for (const auto& each : futures) {
      if (auto wait = future_access::waiter_of(each)) all.push_back(std::move(wait));
    }
    if (all.empty()) return nullptr;
    return [weak = this->weak_from_this(), all = std::move(all)](deadline /*until*/) {
      for (const auto& look : all) {
        const auto self = weak.lock();
        if (self == nullptr || self->decided_.load()) return;
        look(deadline(clock::time_point()));
      }
    };
  }

  void ended(std::size_t index, outcome<R> how) {
    if (decided_.exchange(true)) return;
    for (std::size_t each = 0; each < cancellers_.size(); ++each) {
      if (each != index) cancellers_[each](losers_);
    }
    state->complete(outcome<first_ended<R>>::of_call(
        [&] { return first_ended<R>{.index = index, .value = gather<R>(std::move(how))}; }));
  }

  const cancellation losers_;
  std::vector<std::function<void(cancellation)>> cancellers_;
  std::atomic<bool> decided_ = false;
};

}  // namespace detail

/// A future for the first of these that ends, with its index; its error, if it failed. The others are cancelled, as far
/// as `losers` says, and nobody learns how they end. The futures are used up; cancelling the one that is returned
/// cancels them. They may come from different pools.
/// Throws errc::invalid_argument when there are none, or one of them refers to nothing; then nothing is cancelled.
/// Thread safety: safe for distinct futures. Cost: a hop over the callback thread for each.
template <class R>
[[nodiscard]] future<first_ended<R>> when_any(std::vector<future<R>> futures, cancellation losers = cancellation::ask) {
  if (futures.empty()) throw error(errc::invalid_argument, "when_any() of no futures: none of them could ever end");
  for (const auto& each : futures) detail::future_access::require_valid(each);
  const auto home = detail::future_access::home_of(futures.front());
  auto race = std::make_shared<detail::first_of<R>>(futures, losers);
  race->begin(std::move(futures));
  return detail::future_access::of_source<first_ended<R>>(home, race->state);
}

}  // namespace muster
