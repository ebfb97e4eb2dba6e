// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <muster/async/detail/arrivals.hpp>
#include <muster/async/future.hpp>
#include <muster/base/detail/range_concepts.hpp>
#include <muster/base/detail/view_over.hpp>

namespace muster {

/// Futures in the order in which they are done: see as_completed().
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <std::ranges::random_access_range Futures>
class completed_range {
public:
  /// Goes over the futures once, in the order in which they are done. Each increment waits for the next future.
  class iterator {
  public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = std::ranges::range_value_t<Futures>;
    using difference_type = std::ptrdiff_t;

    iterator() = default;
    /// Waits for the first future that is done, as operator++ does. For begin().
    explicit iterator(completed_range& range) : range_(&range) { ++*this; }

    [[nodiscard]] value_type& operator*() const { return range_->at(index_); }
    /// Waits for the next one, in a callback too, as future::then() says. Unblocked by: the end of any of them.
    iterator& operator++() {
      done_ = range_->missing_ == 0;
      if (done_) return *this;
      index_ = range_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& each, std::default_sentinel_t) { return each.done_; }

  private:
    completed_range* range_ = nullptr;
    std::size_t index_ = 0;
    bool done_ = true;
  };

  /// Watches all of `futures`. Throws errc::invalid_argument when one of them refers to nothing.
  explicit completed_range(Futures futures) : futures_(std::move(futures)) {
    for (auto& each : futures_) detail::future_access::require_valid(each);
    for (auto& each : futures_) {
      home_ = detail::future_access::home_of(each);
      detail::future_access::observe(each, detail::arrival_notice(arrivals_, missing_++));
    }
    came_up_.resize(missing_);
  }

  [[nodiscard]] iterator begin() { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
  friend class iterator;

  std::size_t next() {
    if (detail::helps_while_waiting()) run_one();
    const auto index = detail::take_next(*arrivals_, home_.get());
    came_up_[index] = true;
    --missing_;
    return index;
  }

  // A thread of a pool may have to run one of them itself.
  void run_one() {
    for (std::size_t index = 0; index < came_up_.size() && !detail::has_some(*arrivals_); ++index) {
      if (!came_up_[index]) static_cast<void>(at(index).wait_until(deadline(clock::time_point())));
    }
  }

  [[nodiscard]] auto& at(std::size_t index) {
    return std::ranges::begin(futures_)[static_cast<std::ranges::range_difference_t<Futures>>(index)];
  }

  Futures futures_;
  std::shared_ptr<detail::arrivals> arrivals_ = detail::make_arrivals();
  std::shared_ptr<detail::future_home> home_;  // of one of them
  std::size_t missing_ = 0;
  std::vector<bool> came_up_;  // which may be used or moved since
};

/// Goes over futures, of one pool or several, in the order in which they get done: `for (auto& each :
/// as_completed(futures)) use(each.get());`. An lvalue range stays where it is and must outlive the loop; an rvalue is
/// moved in. Each future may be taken when it comes up; none may be moved or used before. Throws errc::invalid_argument
/// when one of them refers to nothing. Thread safety: safe for distinct futures.
template <std::ranges::random_access_range Futures>
[[nodiscard]] auto as_completed(Futures&& futures) {
  return completed_range<detail::view_of<Futures>>(detail::view_over(std::forward<Futures>(futures)));
}

}  // namespace muster
