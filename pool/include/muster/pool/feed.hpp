// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include <muster/async/detail/callback_pause.hpp>
#include <muster/async/future.hpp>
#include <muster/base/detail/fork_count.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/pool/detail/fifo.hpp>
#include <muster/pool/detail/next_iterator.hpp>
#include <muster/pool/detail/stream_source.hpp>

namespace muster {

/// A stream that is pushed into: each element is sent to a worker when it comes, and results come out in the order of
/// the elements. What imap is for an input that is there or is computed, this is for one that comes by itself, slowly
/// or in bursts: neither the workers nor the consumer of results wait for it. Made by a pool: `pool.feed<T>(f)`. Where
/// the elements are those of one range, imap with slow() does the same with a thread of its own.
///
/// Thread safety: safe; elements pushed by several threads come in the order in which push() took them.
/// Process safety: as its pool's: in a forked child all calls throw errc::forked, and its end changes nothing.
/// Lifetime: need not end before its pool, nor the pool before it. What is under way when it goes is cancelled, and in
/// a pool of threads it waits for elements that run (pool_calls), save for one that destroys it. One that was moved
/// from throws errc::invalid_argument.
template <class T, class R>
class feed_stream {
public:
  using value_type = detail::streamed<R>;
  /// Sends an element to a worker, and returns the future of its result. push() calls it.
  using submitter = std::function<future<R>(T)>;

  /// `window`: how many elements may be pushed ahead of what was consumed, at least one. `waits`: at its end, for
  /// elements that run; where callables may refer to what belongs to the caller.
  feed_stream(submitter submit, std::size_t window, bool waits = false)
      : state_(new state(std::move(submit), window, waits)) {}

  /// Has the element worked on. Waits while the window is full. False, without effect, once it is closed.
  /// Unblocked by: next(); close().
  /// Throws what submitting throws: errc::pool_closed, errc::out_of_memory, …
  bool push(T element) { return own().push(std::move(element)); }
  /// There will be no more elements: push() refuses them, and next() comes to an end behind all of which push()
  /// returned true, or is about to: one that has found room goes on.
  void close() { own().close(); }

  /// The next value, or nothing behind the last element of a feed that is closed. Throws its element's error.
  /// Unblocked by: the end of its element; close(), once no push() sends one any more; not by the pool's end alone,
  /// while nothing was pushed.
  std::optional<value_type> next() {
    auto found = next_result();
    if (!found) return std::nullopt;
    return std::move(*found).value();
  }
  /// As next(), with a failing element as data.
  std::optional<result<value_type>> next_result() { return own().next(); }

  /// For range-for. Its increment throws the error of an element; use next() to go on behind it.
  using iterator = detail::next_iterator<feed_stream>;

  [[nodiscard]] iterator begin() { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
  class state {
  public:
    state(submitter submit, std::size_t window, bool waits)
        : submit_(std::move(submit)), window_(window), waits_(waits) {}
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
      cancel();
      for (auto& each : under_way_) {
        if (waits_) detail::future_access::await_others(each);  // without the lock: it is ours alone by now
      }
    }

    [[nodiscard]] bool is_here() const noexcept { return made_in_.is_here(); }

    // Before any lock: a thread that a forked child does not have may hold it.
    bool push(T element) MUSTER_EXCLUDES(pushing_, mutex_) {
      made_in_.require_here("a pool");
      const scoped_lock first(pushing_);  // the order of submission is the order of results
      if (!begin_submission()) return false;
      const submission until_it_is_there(*this);
      auto made = submit_(std::move(element));
      const scoped_lock lock(mutex_);
      under_way_.push_back(std::move(made));
      ++ahead_;
      return true;
    }

    void close() MUSTER_EXCLUDES(mutex_) {
      made_in_.require_here("a pool");
      const scoped_lock lock(mutex_);
      closed_ = true;
      room_.notify_all();
      some_.notify_all();
    }

    std::optional<result<value_type>> next() MUSTER_EXCLUDES(consuming_, mutex_) {
      made_in_.require_here("a pool");
      const scoped_lock first(consuming_);
      auto oldest = take_oldest();
      if (!oldest) return std::nullopt;
      oldest->wait();
      {
        const scoped_lock lock(mutex_);
        --ahead_;
        room_.notify_one();
      }
      const auto element = taken_++;
      return detail::of_element(oldest->get_result(), element);
    }

  private:
    // Ends one that has begun, whether it came to something or has thrown.
    class submission {
    public:
      explicit submission(state& where) : where_(where) {}
      submission(const submission&) = delete;
      submission& operator=(const submission&) = delete;
      ~submission() { where_.end_submission(); }

    private:
      state& where_;
    };

    void cancel() MUSTER_EXCLUDES(mutex_) {
      const scoped_lock lock(mutex_);
      for (auto& each : under_way_) each.cancel();
    }

    // Waits for room. False once it is closed; otherwise end_submission() is owed. Nobody else pushes meanwhile.
    bool begin_submission() MUSTER_EXCLUDES(mutex_) {
      std::optional<detail::callback_pause> who_consumes_may_be_behind_us;
      if (is_full()) who_consumes_may_be_behind_us.emplace();
      scoped_lock lock(mutex_);
      while (ahead_ >= window_ && !closed_) room_.wait(lock);
      is_submitting_ = !closed_;
      return is_submitting_;
    }
    void end_submission() MUSTER_EXCLUDES(mutex_) {
      const scoped_lock lock(mutex_);
      is_submitting_ = false;
      some_.notify_one();
    }

    // Nothing behind the last one. Nobody else consumes meanwhile.
    std::optional<future<R>> take_oldest() MUSTER_EXCLUDES(mutex_) {
      std::optional<detail::callback_pause> who_pushes_may_be_behind_us;
      if (is_empty()) who_pushes_may_be_behind_us.emplace();
      scoped_lock lock(mutex_);
      while (has_to_wait()) some_.wait(lock);
      if (under_way_.empty()) return std::nullopt;
      return under_way_.take_front();
    }

    [[nodiscard]] bool is_full() MUSTER_EXCLUDES(mutex_) {
      const scoped_lock lock(mutex_);
      return ahead_ >= window_ && !closed_;
    }
    [[nodiscard]] bool is_empty() MUSTER_EXCLUDES(mutex_) {
      const scoped_lock lock(mutex_);
      return has_to_wait();
    }
    // What is being submitted when it is closed comes before the end.
    [[nodiscard]] bool has_to_wait() const MUSTER_REQUIRES(mutex_) {
      return under_way_.empty() && (!closed_ || is_submitting_);
    }

    const process_mark made_in_;
    const submitter submit_;
    const std::size_t window_;
    const bool waits_;
    mutex pushing_;
    mutex consuming_;
    mutex mutex_;
    condition room_;
    condition some_;
    detail::fifo<future<R>> under_way_ MUSTER_GUARDED_BY(mutex_);
    std::size_t ahead_ MUSTER_GUARDED_BY(mutex_) = 0;  // pushed, and not consumed
    std::size_t taken_ MUSTER_GUARDED_BY(consuming_) = 0;
    bool is_submitting_ MUSTER_GUARDED_BY(mutex_) = false;  // what push() has made room for
    bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
  };

  // A forked child leaves what it inherits to its parent.
  struct ending {
    void operator()(state* which) const noexcept {
      if (which->is_here()) delete which;
    }
  };

  [[nodiscard]] state& own() const {
    if (state_ != nullptr) return *state_;
    throw error(errc::invalid_argument, "this feed refers to nothing: it was moved from");
  }

  std::unique_ptr<state, ending> state_;
};

}  // namespace muster
