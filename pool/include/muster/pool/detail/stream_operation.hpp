// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/associated_cancellation_slot.hpp>

#include <muster/pool/detail/async_operation.hpp>
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

/// A wait for a stream's next result: ends when there is one, or when it is cancelled, whichever comes first.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
template <class R, class Next, class Operation>
class next_wait {
public:
  next_wait(std::shared_ptr<stream_source<R>> from, std::unique_ptr<Operation> operation)
      : from_(std::move(from)), operation_(std::move(operation)), listening_(from_->home()->listen()) {}

  void ready() {
    end([from = from_] { return outcome<typename Next::type>::of_call([&] { return Next::take(*from); }); });
  }
  void cancel() {
    end([] {
      return outcome<typename Next::type>::of_error(
          error_info(errc::cancelled, "the wait for the stream's next result was cancelled"));
    });
  }

private:
  void end(ending<typename Next::type> how) {
    if (ended_.exchange(true)) return;
    Operation::complete(std::move(operation_), std::move(how));
    listening_.reset();
    from_.reset();
  }

  std::shared_ptr<stream_source<R>> from_;
  std::unique_ptr<Operation> operation_;
  std::shared_ptr<void> listening_;
  std::atomic<bool> ended_ = false;  // whoever sets it owns the rest
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
  void operator()(Handler&& handler, std::shared_ptr<stream_source<R>> from) const {
    using operation = async_operation<typename Next::form, std::decay_t<Handler>, ending<typename Next::type>>;
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    auto wait = std::make_shared<next_wait<R, Next, operation>>(
        from, std::make_unique<operation>(std::forward<Handler>(handler), otherwise_));
    if (slot.is_connected()) {
      slot.assign([wait](boost::asio::cancellation_type type) {
        if (type != boost::asio::cancellation_type::none) wait->cancel();
      });
    }
    from->when_ready([wait] { wait->ready(); });
  }

private:
  callback_thread otherwise_;
};

}  // namespace muster::detail
