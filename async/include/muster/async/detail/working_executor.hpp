// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <type_traits>
#include <utility>

#include <boost/asio/execution.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// An executor, and work outstanding on it. (Boost's guard keeps the executor twice.)
///
/// Thread safety: distinct objects: safe.
template <class Executor, bool IsOfTheStandardModel = boost::asio::execution::is_executor<Executor>::value>
class working_executor {
public:
  explicit working_executor(const Executor& executor)
      : executor_(boost::asio::prefer(executor, boost::asio::execution::outstanding_work.tracked)) {}
  [[nodiscard]] const auto& get() const noexcept { return executor_; }

  /// Whether a handler may be called by the thread that runs `loop`, inside of another handler, as dispatch would do.
  [[nodiscard]] bool may_run_inside(const boost::asio::io_context& loop) const noexcept {
    if constexpr (is_polymorphic) {
      const auto* const found = executor_.template target<tracked_loop>();
      return found != nullptr && is_of(*found, loop);
    } else if constexpr (std::is_same_v<tracked, tracked_loop>) {
      return is_of(executor_, loop);
    } else {
      return false;
    }
  }

private:
  template <class E>
  using tracked_of =
      std::decay_t<decltype(boost::asio::prefer(std::declval<E>(), boost::asio::execution::outstanding_work.tracked))>;
  using tracked = tracked_of<Executor>;
  using tracked_loop = tracked_of<boost::asio::io_context::executor_type>;
  static constexpr bool is_polymorphic =
      requires(const tracked& executor) { executor.template target<tracked_loop>(); };

  static bool is_of(const tracked_loop& executor, const boost::asio::io_context& loop) noexcept {
    using boost::asio::execution::blocking;
    return &boost::asio::query(executor, boost::asio::execution::context) == &loop &&
           boost::asio::query(executor, blocking) == blocking.possibly;
  }

  tracked executor_;
};
template <class Executor>
class working_executor<Executor, false> {
public:
  explicit working_executor(const Executor& executor) : work_(executor) {}
  [[nodiscard]] Executor get() const { return work_.get_executor(); }
  [[nodiscard]] static constexpr bool may_run_inside(const boost::asio::io_context& /*loop*/) noexcept { return false; }

private:
  boost::asio::executor_work_guard<Executor> work_;
};

}  // namespace muster::detail
