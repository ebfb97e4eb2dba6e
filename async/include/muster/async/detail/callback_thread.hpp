// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/system_executor.hpp>

#include <muster/async/detail/callbacks.hpp>
#include <muster/async/detail/deferred_call.hpp>

namespace muster::detail {

/// Where the pool runs callbacks, on its thread or on the program's loop, as an executor of Asio: that of handlers that
/// have none of their own.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe.
class callback_thread {
public:
  explicit callback_thread(std::shared_ptr<callback_executor> thread) noexcept : thread_(std::move(thread)) {}

  /// Runs `what` there soon; without a thread (the pool is gone) on Asio's system executor. Never inside this call.
  template <class F>
  void execute(F&& what) const {
    auto call = defer([held = std::decay_t<F>(std::forward<F>(what))]() mutable { std::move(held)(); });
    prepare(*call);
    post(std::move(call));
  }

  /// Allocates what post() needs for `call`, and starts the thread. Where none can be had, the call waits for one.
  void prepare(deferred_call& call) const {
    if (thread_ != nullptr) detail::prepare(*thread_, call);
  }
  /// Runs a call that was prepared, as execute() does; inside this call where there is neither a thread nor memory.
  void post(deferred_ptr call) const {
    if (thread_ != nullptr && try_post(*thread_, call)) return;
    auto* const released = call.get();
    try {
      boost::asio::post(boost::asio::system_executor(), [released] { deferred_ptr(released)->run(); });
      static_cast<void>(call.release());
    } catch (const std::bad_alloc&) {
      call->run();
    }
  }

  [[nodiscard]] static constexpr boost::asio::execution::blocking_t query(
      boost::asio::execution::blocking_t /*which*/) noexcept {
    return boost::asio::execution::blocking.never;
  }
  /// Where timers of these handlers are: the loop, or else Asio's system context, which has threads of its own.
  [[nodiscard]] boost::asio::execution_context& query(boost::asio::execution::context_t /*which*/) const {
    if (auto* const loop = thread_ != nullptr ? loop_of(*thread_) : nullptr; loop != nullptr) return *loop;
    return boost::asio::query(boost::asio::system_executor(), boost::asio::execution::context);
  }
  [[nodiscard]] callback_thread require(boost::asio::execution::blocking_t::never_t /*is it*/) const { return *this; }

  friend bool operator==(const callback_thread& a, const callback_thread& b) noexcept = default;

private:
  std::shared_ptr<callback_executor> thread_;
};

}  // namespace muster::detail
