// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/associated_cancellation_slot.hpp>

#include <muster/async/detail/async_operation.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/pool/detail/stream_source.hpp>

namespace muster::detail {

/// What an asynchronous next() gives: like the synchronous one, throwing or with failures as data.
template <class R>
struct next_value {
  using type = std::optional<streamed<R>>;
  using form = value_or_exception<type>;

  static type take(stream_source<R>& from) {
    auto found = from.next();
    if (!found) return std::nullopt;
    return std::move(*found).value();
  }
};
template <class R>
struct next_result {
  using type = std::optional<result<streamed<R>>>;

  // The failure of the input is that of an element.
  struct form {
    using signature = void(type);
    template <class Handler>
    static void call(Handler&& handler, outcome<type> how) {
      if (how.has_value()) {
        std::forward<Handler>(handler)(std::move(how).get());
      } else {
        std::forward<Handler>(handler)(type(how.error()));
      }
    }
  };

  static type take(stream_source<R>& from) { return from.next(); }
};

/// How a wait for a stream's next result ended: takes the result, once.
template <class R, class Next>
struct next_ending {
  using value = typename Next::type;

  std::shared_ptr<future_home> home;
  std::shared_ptr<stream_source<R>> from{};  // once it has ended
  bool cancelled = false;

  outcome<value> operator()() && {
    return outcome<value>::of_call([&] {
      if (cancelled) error_info(errc::cancelled, "the wait for the stream's next result was cancelled").raise();
      return Next::take(*from);
    });
  }
  [[nodiscard]] callback_executor* steps() const noexcept { return &home->steps(); }
};

/// A wait for a stream's next result: ends when there is one, or when it is cancelled, whichever comes first.
///
/// It works as follows. Sources are for one thread at a time, and an input may make wait. So the wait is *busy* while
/// the source is asked for a result, or has the input asked for an element; what comes then is only noted, and ends it
/// afterwards. In between it is *waiting* for a result, for so long as the source has patience with it; then it goes on
/// where the handler runs.
/// Thread safety: distinct objects: safe. Shared objects: safe.
template <class R, class Next, class Operation>
class next_wait : public std::enable_shared_from_this<next_wait<R, Next, Operation>> {
public:
  next_wait(std::shared_ptr<stream_source<R>> from, std::unique_ptr<Operation> operation)
      : from_(std::move(from)), operation_(std::move(operation)), listening_(from_->home()->listen()) {}

  /// Requires: it is busy, as it is when it has just been made.
  void advance() {
    auto patience = look();
    while (patience && patience->count() <= 0 && is_undisturbed()) {
      from_->pull_one();
      patience = look();
    }
    rest(patience);
  }
  void cancel() MUSTER_EXCLUDES(mutex_) { tell(news::cancelled); }

private:
  enum class phase { busy, waiting, ended };
  enum class news { none, ready, cancelled };
  [[nodiscard]] std::optional<std::chrono::nanoseconds> look() {
    return from_->when_ready([self = this->shared_from_this()] { self->tell(news::ready); });
  }
  [[nodiscard]] bool is_undisturbed() MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    return news_ == news::none;
  }

  // The first news count.
  void tell(news what) MUSTER_EXCLUDES(mutex_) {
    {
      const scoped_lock lock(mutex_);
      if (phase_ == phase::ended || news_ != news::none) return;
      news_ = what;
      if (phase_ == phase::busy) return;
      phase_ = phase::ended;
    }
    end(what);
  }

  // From being busy to waiting, unless there are news. Afterwards it may have ended already.
  void rest(std::optional<std::chrono::nanoseconds> patience) MUSTER_EXCLUDES(mutex_) {
    const auto steps = from_->home()->shared_steps();
    auto what = news::none;
    {
      const scoped_lock lock(mutex_);
      what = news_;
      phase_ = what == news::none ? phase::waiting : phase::ended;
    }
    if (what != news::none) return end(what);
    if (!patience) return;
    try {
      post_at(*steps, later(clock::now(), *patience), defer([weak = this->weak_from_this()] {
        if (const auto self = weak.lock()) self->lose_patience();
      }));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
      // Without memory or a thread for that, and when the pool ends, it waits for the result alone.
    }
  }

  void lose_patience() MUSTER_EXCLUDES(mutex_) {
    {
      const scoped_lock lock(mutex_);
      if (phase_ != phase::waiting) return;
      phase_ = phase::busy;
    }
    operation_->post([self = this->shared_from_this()] { self->go_on(); });
  }
  void go_on() {
    if (!is_undisturbed()) return rest(std::nullopt);
    from_->pull_one();
    advance();
  }

  // The source goes along to where the handler runs: its end may have to wait, and this thread may not.
  void end(news how) noexcept {
    auto& told = operation_->how();
    told.from = std::move(from_);
    told.cancelled = how == news::cancelled;
    const auto until_it_has_its_place_in_the_loop = std::move(listening_);
    Operation::complete(std::move(operation_));
  }

  // Of who has made it busy, or ended.
  std::shared_ptr<stream_source<R>> from_;
  std::unique_ptr<Operation> operation_;
  std::shared_ptr<void> listening_;
  mutex mutex_;
  phase phase_ MUSTER_GUARDED_BY(mutex_) = phase::busy;
  news news_ MUSTER_GUARDED_BY(mutex_) = news::none;
};

/// Begins one.
///
/// Thread safety: distinct objects: safe.
template <class R, class Next>
class initiate_next {
public:
  using executor_type = callback_thread;

  explicit initiate_next(const stream_source<R>& from) : otherwise_(from.home()->shared_callbacks()) {}
  [[nodiscard]] executor_type get_executor() const noexcept { return otherwise_; }

  template <class Handler>
  void operator()(Handler&& handler, const std::shared_ptr<stream_source<R>>& from) const {
    using operation = async_operation<typename Next::form, std::decay_t<Handler>, next_ending<R, Next>>;
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    auto wait = std::make_shared<next_wait<R, Next, operation>>(
        from, std::make_unique<operation>(std::forward<Handler>(handler), otherwise_,
                                          next_ending<R, Next>{.home = from->home()}));
    if (slot.is_connected()) {
      slot.assign([wait](boost::asio::cancellation_type type) {
        if (type != boost::asio::cancellation_type::none) wait->cancel();
      });
    }
    wait->advance();
  }

private:
  callback_thread otherwise_;
};

}  // namespace muster::detail
