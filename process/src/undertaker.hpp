// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <muster/base/unique_fd.hpp>

namespace muster::detail {

/// Reaps the children that cannot be reaped when their worker is buried: those that ended under a tracer, and those
/// that were killed and have not ended when their crew does. They are asked again and again; those that are left when
/// the supervisor ends are left to a thread that waits for them and does nothing else, so that no zombie stays behind
/// whenever their tracers let go.
///
/// Thread safety: belongs to the loop's thread.
class undertaker {
public:
  explicit undertaker(boost::asio::io_context& loop) : timer_(loop) {}
  undertaker(const undertaker&) = delete;
  undertaker& operator=(const undertaker&) = delete;
  ~undertaker();

  /// `process`: the pidfd of a child that nobody else waits for.
  void take(unique_fd process);
  /// Has the loop end.
  void stop() { timer_.cancel(); }

private:
  void try_all();
  void try_again_later();

  boost::asio::steady_timer timer_;
  std::chrono::milliseconds delay_{};
  std::vector<unique_fd> unreaped_;
};

}  // namespace muster::detail
