// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <muster/base/unique_fd.hpp>

#include "memory_group.hpp"

namespace muster::detail {

/// Reaps the children that cannot be reaped when their worker is buried: those that ended under a tracer, and those
/// that were killed and have not ended when their crew does. They are asked again and again; for each that is left when
/// the supervisor ends there is a thread that waits for it and does nothing else, so that no zombie stays behind
/// whenever its tracer lets go.
///
/// Of a child that led a process group it also reaps what has been killed there and has become a child of this program,
/// which is the first of its container, or a subreaper: in the same way, because no event tells of children whose
/// numbers are not known.
///
/// Likewise it removes the control groups in which what a worker has started still dies when its worker is buried; when
/// the supervisor ends they are waited for, for two seconds at most. What is left then (under version 1 nobody kills
/// who has left the worker's process group) is removed by a later program: memory_group.
///
/// Thread safety: belongs to the loop's thread.
class undertaker {
public:
  explicit undertaker(boost::asio::io_context& loop) : timer_(loop) {}
  undertaker(const undertaker&) = delete;
  undertaker& operator=(const undertaker&) = delete;
  ~undertaker();

  /// `process`: the pidfd of a child that nobody else waits for, or that has been reaped. `when_dead` is called once it
  /// has ended, unless the supervisor ends before. `group`: the number of the process group that it led; 0: it led
  /// none.
  void take(unique_fd process, std::function<void()> when_dead = {}, pid_t group = 0);
  void take(std::unique_ptr<memory_group> group);
  /// Has the loop end.
  void stop();

private:
  struct child {
    unique_fd process;
    std::function<void()> when_dead;
    pid_t group = 0;
  };
  static bool is_done(child& each);
  void leave_children() noexcept;
  void try_all();
  void try_again_soon();
  void try_again_later();
  [[nodiscard]] bool have_removed_groups() noexcept;

  boost::asio::steady_timer timer_;
  std::chrono::milliseconds delay_{};
  bool stopped_ = false;  // an expired timer cannot be cancelled
  std::vector<child> children_;
  std::vector<std::unique_ptr<memory_group>> groups_;
};

}  // namespace muster::detail
