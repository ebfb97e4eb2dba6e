// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <ranges>
#include <utility>
#include <vector>

#include <muster/async/detail/owning_list.hpp>
#include <muster/async/future.hpp>
#include <muster/base/mutex.hpp>

namespace muster {

namespace detail {

/// Which of some futures are done and have not been looked at yet.
///
/// Thread safety: distinct objects: safe. Shared objects: safe. Cost: adding one allocates nothing.
class arrivals {
public:
  /// Enters one future, and is its entry here.
  class entry : public list_link<entry> {
  public:
    explicit entry(std::size_t index) noexcept : index_(index) {}
    virtual ~entry() = default;
    [[nodiscard]] std::size_t index() const noexcept { return index_; }

  private:
    const std::size_t index_;
  };

  arrivals() = default;
  arrivals(const arrivals&) = delete;
  arrivals& operator=(const arrivals&) = delete;

  void add(std::unique_ptr<entry> arrival) noexcept MUSTER_EXCLUDES(mutex_);

  /// Calls `then` once wait_for_next() would not wait, at once if it would not now. An earlier `then` is dropped.
  void when_some(std::function<void()> then) MUSTER_EXCLUDES(mutex_);

  /// Whether wait_for_next() would not wait, or does not by then. Throws as callback_pause. `home`: of one of them.
  bool wait_for_some(deadline until, future_home* home = nullptr) MUSTER_EXCLUDES(mutex_);

  /// Requires: no other thread takes any. Throws as callback_pause.
  std::size_t wait_for_next(future_home* home = nullptr) MUSTER_EXCLUDES(mutex_);

  /// Whether wait_for_next() would not wait.
  [[nodiscard]] bool has_some() MUSTER_EXCLUDES(mutex_);

private:
  mutex mutex_;
  condition changed_;
  owning_list<entry> arrived_ MUSTER_GUARDED_BY(mutex_);
  std::function<void()> then_ MUSTER_GUARDED_BY(mutex_);
};

/// Tells arrivals that a future is done.
///
/// Thread safety: as end_notice.
class arrival_observer final : public end_notice, public arrivals::entry {
public:
  arrival_observer(std::shared_ptr<arrivals> where, std::size_t index) : entry(index), where_(std::move(where)) {}

private:
  void tell() noexcept override {
    const auto where = std::move(where_);  // which owns this object from now on
    where->add(std::unique_ptr<entry>(this));
  }

  std::shared_ptr<arrivals> where_;
};

}  // namespace detail

/// Futures in the order in which they are done: see as_completed().
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <std::ranges::random_access_range Futures>
class completed_range {
public:
  class iterator {
  public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = std::ranges::range_value_t<Futures>;
    using difference_type = std::ptrdiff_t;

    iterator() = default;
    explicit iterator(completed_range& range) : range_(&range) { ++*this; }

    [[nodiscard]] value_type& operator*() const { return range_->futures_[as_difference(index_)]; }
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

  explicit completed_range(Futures futures) : futures_(std::move(futures)) {
    for (auto& each : futures_) detail::future_access::require_valid(each);
    for (auto& each : futures_) {
      home_ = detail::future_access::home_of(each);
      detail::future_access::observe(each, std::make_unique<detail::arrival_observer>(arrivals_, missing_++));
    }
    came_up_.resize(missing_);
  }

  [[nodiscard]] iterator begin() { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
  friend class iterator;

  std::size_t next() {
    if (detail::helps_while_waiting()) run_one();
    const auto index = arrivals_->wait_for_next(home_.get());
    came_up_[index] = true;
    --missing_;
    return index;
  }

  // A thread of a pool may have to run one of them itself.
  void run_one() {
    for (std::size_t index = 0; index < came_up_.size() && !arrivals_->has_some(); ++index) {
      if (!came_up_[index]) static_cast<void>(futures_[as_difference(index)].wait_until(deadline(clock::time_point())));
    }
  }

  static auto as_difference(std::size_t index) { return static_cast<std::ranges::range_difference_t<Futures>>(index); }

  Futures futures_;
  std::shared_ptr<detail::arrivals> arrivals_ = std::make_shared<detail::arrivals>();
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
  using view = std::views::all_t<Futures>;
  return completed_range<view>(std::views::all(std::forward<Futures>(futures)));
}

}  // namespace muster
