// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <muster/async/future.hpp>
#include <muster/base/detail/mutex.hpp>

namespace muster::detail {

/// What one thread sends and another consumes: tasks, in the order in which they were sent or in that in which they
/// have ended.
///
/// Thread safety: safe; for one thread of each kind.
template <class R>
class sent_elements : public std::enable_shared_from_this<sent_elements<R>> {
public:
  sent_elements(bool ordered, std::size_t window) : ordered_(ordered), window_(window == 0 ? 1 : window) {}

  // ---- for who sends

  /// Waits while a window of them has not been consumed; false once it is to stop.
  /// Unblocked by: make_room(); stop().
  bool wait_for_room() MUSTER_EXCLUDES(mutex_) {
    scoped_lock lock(mutex_);
    while (sent_ - consumed_ >= window_ && !stopped_) changed_.wait(lock);
    return !stopped_;
  }

  // Once the task is observed nothing throws: its end would be noted without it.
  void add(future<R> made) MUSTER_EXCLUDES(mutex_) {
    scoped_lock lock(mutex_);
    const auto number = sent_;
    if (done_.capacity() <= under_way_.size()) done_.reserve(2 * under_way_.size() + 1);
    under_way_.reserve(under_way_.size() + 1);
    lock.unlock();
    std::unordered_map<std::size_t, future<R>> added;
    auto& kept = added.emplace(number, std::move(made)).first->second;
    future_access::observe(kept, std::make_unique<observer>(this->shared_from_this(), number));
    lock.lock();
    under_way_.merge(added);
    ++sent_;
    changed_.notify_all();
  }

  /// There are no more, for that reason if there is one.
  void end(std::exception_ptr failure = nullptr) MUSTER_EXCLUDES(mutex_) {
    std::function<void()> then;
    {
      const scoped_lock lock(mutex_);
      ended_ = true;
      failure_ = std::move(failure);
      changed_.notify_all();
      then = take_asker();
    }
    if (then) then();
  }

  // ---- for who consumes

  struct element {
    std::size_t number = 0;
    future<R> task;
  };

  /// The next one, which has ended unless it is in order; nothing at the end. Throws, once, what it has ended for.
  /// Unblocked by: the end of a task; add(); end().
  std::optional<element> take() MUSTER_EXCLUDES(mutex_) {
    scoped_lock lock(mutex_);
    auto next = find_next();
    for (; next == under_way_.end() && !at_end(); next = find_next()) changed_.wait(lock);
    if (next == under_way_.end()) {
      if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
      return std::nullopt;
    }
    element found{.number = next->first, .task = std::move(next->second)};
    under_way_.erase(next);
    std::erase(done_, found.number);
    ++taken_;
    return found;
  }
  /// One that was taken is consumed.
  void make_room() MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    ++consumed_;
    changed_.notify_all();
  }

  /// Waits for the oldest. Unblocked by: its end, and by end() where there is none.
  void wait_for_oldest() MUSTER_EXCLUDES(mutex_) {
    scoped_lock lock(mutex_);
    while (under_way_.empty() && !ended_) changed_.wait(lock);
    if (under_way_.empty()) return;
    auto* const oldest = find_oldest();  // it stays there: the consumer alone takes any out
    lock.unlock();
    oldest->wait();
  }

  /// Calls `then` once neither take() nor what it gives would make wait. Who asked before is forgotten.
  void when_next(std::function<void()> then) MUSTER_EXCLUDES(mutex_) {
    {
      const scoped_lock lock(mutex_);
      then_ = nullptr;
      if (!is_ready()) {
        then_ = std::move(then);
        return;
      }
    }
    then();
  }

  /// No more are to be sent, and those under way are given up.
  void stop() MUSTER_EXCLUDES(mutex_) {
    scoped_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
    lock.unlock();
    for (auto* each : all()) each->cancel();
  }
  /// Waits for those under way.
  void wait() MUSTER_EXCLUDES(mutex_) {
    for (auto* each : all()) future_access::await_others(*each);
  }
  /// Forgets them. Requires: nobody sends any more.
  void clear() MUSTER_EXCLUDES(mutex_) {
    std::unordered_map<std::size_t, future<R>> dropped;  // without the lock: their observers are told
    const scoped_lock lock(mutex_);
    dropped.swap(under_way_);
  }

private:
  // Tells that one has ended.
  class observer final : public end_notice {
  public:
    observer(std::shared_ptr<sent_elements> of, std::size_t number) : of_(std::move(of)), number_(number) {}

  private:
    void tell() noexcept override {
      const std::unique_ptr<observer> self(this);
      of_->note_end(number_);
    }

    const std::shared_ptr<sent_elements> of_;
    const std::size_t number_;
  };

  void note_end(std::size_t number) MUSTER_EXCLUDES(mutex_) {
    std::function<void()> then;
    {
      const scoped_lock lock(mutex_);
      if (ordered_ && number < taken_) return;  // it has been consumed meanwhile
      done_.push_back(number);
      changed_.notify_all();
      then = take_asker();
    }
    if (then) then();
  }

  [[nodiscard]] bool at_end() const MUSTER_REQUIRES(mutex_) { return ended_ && taken_ == sent_; }
  [[nodiscard]] bool is_ready() const MUSTER_REQUIRES(mutex_) {
    if (!ordered_) return at_end() || !done_.empty();
    if (at_end()) return true;
    for (const auto each : done_) {
      if (each == taken_) return true;
    }
    return false;
  }
  [[nodiscard]] std::function<void()> take_asker() MUSTER_REQUIRES(mutex_) {
    return is_ready() ? std::exchange(then_, nullptr) : nullptr;
  }
  // One that has ended may not be there yet: then it is about to be.
  [[nodiscard]] auto find_next() MUSTER_REQUIRES(mutex_) {
    if (ordered_) return under_way_.find(taken_);
    return done_.empty() ? under_way_.end() : under_way_.find(done_.front());
  }
  // Requires: there is one.
  [[nodiscard]] future<R>* find_oldest() MUSTER_REQUIRES(mutex_) {
    auto oldest = under_way_.begin();
    for (auto each = oldest; each != under_way_.end(); ++each) {
      if (each->first < oldest->first) oldest = each;
    }
    return &oldest->second;
  }
  [[nodiscard]] std::vector<future<R>*> all() MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    std::vector<future<R>*> found;
    for (auto& [number, each] : under_way_) found.push_back(&each);
    return found;
  }

  const bool ordered_;
  const std::size_t window_;
  mutex mutex_;
  condition changed_;
  std::unordered_map<std::size_t, future<R>> under_way_ MUSTER_GUARDED_BY(mutex_);  // sent and not taken, by number
  std::vector<std::size_t> done_ MUSTER_GUARDED_BY(mutex_);                         // of those, as they ended
  std::size_t sent_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::size_t taken_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::size_t consumed_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool ended_ MUSTER_GUARDED_BY(mutex_) = false;
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ MUSTER_GUARDED_BY(mutex_);
  std::function<void()> then_ MUSTER_GUARDED_BY(mutex_);  // who asked
};

}  // namespace muster::detail
