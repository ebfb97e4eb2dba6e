// SPDX-License-Identifier: BSL-1.0
#include <muster/async/detail/arrivals.hpp>

#include <utility>

#include <muster/async/detail/callback_executor.hpp>
#include <muster/async/detail/callback_pause.hpp>
#include <muster/async/detail/owning_list.hpp>
#include <muster/async/detail/task_thread.hpp>
#include <muster/base/detail/mutex.hpp>

namespace muster::detail {

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

  void add(std::unique_ptr<entry> arrival) noexcept MUSTER_EXCLUDES(mutex_) {
    std::function<void()> then;
    {
      const scoped_lock lock(mutex_);
      arrived_.push_back(std::move(arrival));
      changed_.notify_one();
      then.swap(then_);
    }
    if (then) then();
  }

  void when_some(std::function<void()> then) MUSTER_EXCLUDES(mutex_) {
    {
      const scoped_lock lock(mutex_);
      if (arrived_.empty()) {
        then_.swap(then);
        return;
      }
    }
    then();
  }

  [[nodiscard]] bool has_some() MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    return !arrived_.empty();
  }

  // Unblocked by: add().
  bool wait_for_some(deadline until, future_home* home) MUSTER_EXCLUDES(mutex_) {
    if (has_some()) return true;
    auto* const here = home != nullptr ? home->only_thread() : nullptr;
    if (here != nullptr && here->wait_until([this] { return has_some(); }, until)) return true;
    const auto what_makes_them_may_be_behind_us = callback_pause::until(until);
    scoped_lock lock(mutex_);
    while (arrived_.empty() && changed_.wait_until(lock, until)) continue;
    return !arrived_.empty();
  }

  // Unblocked by: add(). Requires: no other thread takes any.
  std::size_t take_next(future_home* home) MUSTER_EXCLUDES(mutex_) {
    static_cast<void>(wait_for_some(deadline::never(), home));
    const scoped_lock lock(mutex_);
    return arrived_.pop_front()->index();
  }

private:
  mutex mutex_;
  condition changed_;
  owning_list<entry> arrived_ MUSTER_GUARDED_BY(mutex_);
  std::function<void()> then_ MUSTER_GUARDED_BY(mutex_);
};

namespace {

// Thread safety: as end_notice.
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

}  // namespace

std::shared_ptr<arrivals> make_arrivals() { return std::make_shared<arrivals>(); }

std::unique_ptr<end_notice> arrival_notice(std::shared_ptr<arrivals> where, std::size_t index) {
  return std::make_unique<arrival_observer>(std::move(where), index);
}

bool has_some(arrivals& all) { return all.has_some(); }

void when_some(arrivals& all, std::function<void()> then) { all.when_some(std::move(then)); }

bool wait_for_some(arrivals& all, deadline until, future_home* home) { return all.wait_for_some(until, home); }

std::size_t take_next(arrivals& all, future_home* home) { return all.take_next(home); }

}  // namespace muster::detail
