// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/range_concepts.hpp>
#include <muster/pool/detail/batch.hpp>
#include <muster/pool/detail/batch_access.hpp>
#include <muster/pool/detail/batch_reader.hpp>
#include <muster/pool/detail/core_access.hpp>
#include <muster/pool/detail/input_pace.hpp>
#include <muster/pool/detail/next_iterator.hpp>
#include <muster/pool/detail/owned_value.hpp>
#include <muster/pool/detail/stream_source.hpp>
#include <muster/pool/input.hpp>
#include <muster/serialize/result.hpp>

namespace muster {

namespace detail {

/// A range that is gone over once; nothing is produced before it is wanted.
template <std::ranges::view View>
class range_walk {
public:
  static constexpr input_speed speed = speed_of<View>;
  static constexpr bool may_be_slow = speed != input_speed::quick;

  explicit range_walk(View view) : view_(std::move(view)) {}

  /// Moves to the next element; false at the end.
  bool advance() {
    if (!at_) {
      at_.emplace(std::ranges::begin(view_));
    } else if (*at_ != std::ranges::end(view_)) {
      ++*at_;
    }
    return *at_ != std::ranges::end(view_);
  }
  [[nodiscard]] decltype(auto) element() const { return element_at<View>(*at_); }

  /// Hands the next element to `take`; false at the end. `pace` learns how long it took to get, where it may be long.
  template <class Take>
  bool next(input_pace& pace, const Take& take) {
    if constexpr (may_be_slow) {
      const auto begin = clock::now();
      if (!advance()) return false;
      auto&& found = element();
      pace.observe(clock::now() - begin);
      take(std::forward<decltype(found)>(found));
    } else {
      if (!advance()) return false;
      take(element());
    }
    return true;
  }

private:
  View view_;
  std::optional<std::ranges::iterator_t<View>> at_;  // those of some input ranges have no default
};

/// Goes over what pointers point to.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: unsafe.
template <class T>
class pointed_to {
public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;

  explicit pointed_to(const T* const* at) noexcept : at_(at) {}
  [[nodiscard]] const T& operator*() const noexcept { return **at_; }
  pointed_to& operator++() noexcept {
    ++at_;
    return *this;
  }
  void operator++(int) noexcept { ++*this; }

private:
  const T* const* at_;
};

/// A range as the input of a stream.
template <class T, class R, std::ranges::view View>
class range_input final : public stream_input {
public:
  range_input(std::shared_ptr<pool_core> core, transfer how, View view)
      : core_(std::move(core)), how_(how), walk_(std::move(view)) {}

  taken pull([[maybe_unused]] std::size_t most) override {
    if constexpr (is_slow) {
      return pull_one();
    } else {
      return pull_some(most);
    }
  }
  [[nodiscard]] bool may_be_slow() const noexcept override { return is_slow; }
  [[nodiscard]] std::chrono::nanoseconds patience() const noexcept override { return pace_.patience(); }

private:
  static constexpr bool is_slow = range_walk<View>::may_be_slow;
  // Elements that stay where they are need not be copied or moved on their way into the batch.
  using reference = std::ranges::range_reference_t<View>;
  static constexpr bool stay = keeps_elements<View> && !array_element<T> && std::is_lvalue_reference_v<reference> &&
                               std::is_same_v<std::remove_cvref_t<reference>, T>;
  using gathered = std::conditional_t<stay, const T*, T>;

  taken pull_some(std::size_t most) {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    std::vector<gathered> elements;
    bool ended = false;
    try {
      ended = !gather(elements, most);
    } catch (...) {
      if (elements.empty()) throw;
      failure_ = std::current_exception();  // its place is behind those elements
    }
    if (elements.empty()) return {.batch = {}, .count = 0, .ended = ended};
    return {.batch = batch_of(elements), .count = elements.size(), .ended = ended};
  }

  // One element, into a batch of its own: the engine asks for no more of an input that may make wait.
  taken pull_one() {
    taken found{.batch = {}, .count = 0, .ended = false};
    found.ended = !walk_.next(pace_, [&](auto&& element) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(element)>, T>) {
        found.batch = make_batch<T, R>(memory_of(*core_), std::addressof(element), 1, how_);
      } else {
        const T value(to_own<T>(std::forward<decltype(element)>(element)));
        found.batch = make_batch<T, R>(memory_of(*core_), std::addressof(value), 1, how_);
      }
      found.count = 1;
    });
    return found;
  }

  // False at the end.
  bool gather(std::vector<gathered>& elements, std::size_t most) {
    const auto keep = [&](auto&& element) {
      if constexpr (stay) {
        elements.push_back(std::addressof(element));
      } else {
        elements.push_back(to_own<T>(std::forward<decltype(element)>(element)));
      }
    };
    while (elements.size() < most) {
      if (!walk_.next(pace_, keep)) return false;
    }
    return true;
  }

  packed_batch batch_of(const std::vector<gathered>& elements) {
    if constexpr (stay) {
      return make_batch<T, R>(memory_of(*core_), pointed_to<T>(elements.data()), elements.size(), how_);
    } else {
      return make_batch<T, R>(memory_of(*core_), elements.begin(), elements.size(), how_);
    }
  }

  const std::shared_ptr<pool_core> core_;
  const transfer how_;
  range_walk<View> walk_;
  input_pace pace_;
  std::exception_ptr failure_;
};

/// A stream of batches.
template <class R>
class batch_stream final : public stream_source<R> {
public:
  batch_stream(std::shared_ptr<future_home> home, stream_engine_ptr engine)
      : home_(std::move(home)), engine_(std::move(engine)) {}

  std::optional<result<streamed<R>>> next() override {
    while (!reader_ || reader_->at_end()) {
      reader_.reset();
      batch_ = next_batch(*engine_, std::exchange(consumed_, 0));
      if (batch_ == nullptr) return std::nullopt;
      reader_.emplace(results_of(*batch_));
    }
    ++consumed_;
    return reader_->next();
  }

  std::optional<std::chrono::nanoseconds> when_ready(std::function<void()> then) override {
    if (!reader_ || reader_->at_end()) return when_next(*engine_, std::exchange(consumed_, 0), std::move(then));
    then();
    return std::nullopt;
  }
  void pull_one() override { detail::pull_one(*engine_); }
  [[nodiscard]] std::shared_ptr<future_home> home() const override { return home_; }

private:
  const std::shared_ptr<future_home> home_;
  stream_engine_ptr engine_;
  std::shared_ptr<batch_run> batch_;
  std::optional<batch_reader<R>> reader_;  // of batch_
  std::size_t consumed_ = 0;
};

}  // namespace detail

template <class R>
class result_stream;

/// Results as they are wanted: what imap and imap_unordered return.
///
/// The input is taken as results are consumed, at most a window of elements ahead (task_options::window), in the
/// consumer's thread; so it may be endless. The elements of containers, of std::views::iota, and of what is marked
/// quick() are gathered into chunks. Any other input may make wait, and is asked for one element at a time: it is sent
/// before the next is asked for, as a task of its own, whatever the chunk; and a result that is ready is handed out
/// before. An input whose last element took more than 100 us is not asked again before a result has had as long to
/// become ready. But while the input blocks, the consumer does, whatever gets ready meanwhile: mark an input that comes
/// by itself as slow(), and a thread takes it; or push its elements into a feed (submit_calls::feed).
///
/// An element that fails throws at its place, and the next call goes on behind it. An exception of the input itself is
/// thrown at its place, once, and ends the stream.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: an lvalue input must outlive the stream; destroying the stream gives up what is under way, without
/// waiting, unless the input is slow(). One that was moved from throws errc::invalid_argument.
template <class R>
class [[nodiscard]] stream {
public:
  using value_type = detail::streamed<R>;

  /// For the calls that make streams.
  explicit stream(std::unique_ptr<detail::stream_source<R>> source) : source_(std::move(source)) {}

  /// The next value, or nothing at the end. Waits for it; throws its error.
  /// Unblocked by: the end of its element; the pool's destruction at the latest.
  std::optional<value_type> next() {
    auto found = next_result();
    if (!found) return std::nullopt;
    return std::move(*found).value();
  }

  /// As next(), with a failing element as data.
  std::optional<result<value_type>> next_result() { return source().next(); }

  /// Waits until next() would not, be it for a result or the end; false when the time passed first. Takes from the
  /// input as async_next does, and is held up by one that blocks. In a task of the same pool of threads it does not
  /// work the element out itself, as next() does.
  /// Unblocked by: as next().
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> time) {
    return detail::await_next(source(), deadline::after(time));
  }

  /// Waits as an asynchronous operation of Boost.Asio, of signature void(std::exception_ptr,
  /// std::optional<value_type>): takes any completion token, `co_await results.async_next(asio::use_awaitable)`. Gives
  /// and throws what next() does; an element that is ready is decoded where the handler runs, and the input is taken
  /// from there and in this call, as for next(): not while there is a result, and of an input that makes wait not
  /// before a result has had its time; so it blocks the handler's executor no longer than the input itself does, and
  /// that of a slow() one not at all. One at a time; next() may be called when none is under way. The stream may be
  /// destroyed meanwhile. Needs muster/pool/async.hpp, where completion is described.
  /// A signal to the handler's cancellation slot, of any type, ends the wait with errc::cancelled, without any other
  /// effect: the element stays, for whoever asks next. While the input is asked for an element, it ends behind that.
  template <class Token>
  auto async_next(Token&& token);
  /// The same, of signature void(std::optional<result<value_type>>): failures are data, that of the input too. Without
  /// a token it can be co_awaited as it is.
  ///@{
  template <class Token>
  auto async_next_result(Token&& token);
  [[nodiscard]] auto async_next_result();
  ///@}

  /// The same stream with failing elements as data: `for (auto& r : pool.imap(f, xs).as_results())`.
  [[nodiscard]] result_stream<R> as_results() && { return result_stream<R>(std::move(*this)); }

  /// For range-for. Its increment throws the error of an element; use next() to go on behind it.
  using iterator = detail::next_iterator<stream>;

  [[nodiscard]] iterator begin() { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
  [[nodiscard]] detail::stream_source<R>& source() const {
    if (source_ != nullptr) return *source_;
    throw error(errc::invalid_argument, "this stream refers to nothing: it was moved from");
  }

  std::shared_ptr<detail::stream_source<R>> source_;  // a wait may outlive this object
};

/// A stream whose failing elements are data. See stream.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class R>
class [[nodiscard]] result_stream {
public:
  using value_type = result<detail::streamed<R>>;

  /// For stream::as_results().
  explicit result_stream(stream<R> from) : from_(std::move(from)) {}

  /// As stream::next_result.
  std::optional<value_type> next() { return from_.next_result(); }
  /// As stream::wait_for.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> time) {
    return from_.wait_for(time);
  }
  /// As stream::async_next_result.
  ///@{
  template <class Token>
  auto async_next(Token&& token) {
    return from_.async_next_result(std::forward<Token>(token));
  }
  [[nodiscard]] auto async_next() { return from_.async_next_result(); }
  ///@}

  using iterator = detail::next_iterator<result_stream>;

  [[nodiscard]] iterator begin() { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
  stream<R> from_;
};

}  // namespace muster
