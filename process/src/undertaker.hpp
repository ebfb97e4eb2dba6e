// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <muster/base/room.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/memory/domain.hpp>

#include "memory_group.hpp"

namespace muster::detail {

/// What a process has in the domain, to be given back when the process is dead.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct burial {
  std::shared_ptr<domain> where;  ///< nullptr: it has nothing there
  participant_id participant = participant_id::none;
};

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

  /// That many children may come at once, less for a negative number.
  void expect(std::ptrdiff_t children) noexcept { expected_ += children; }
  /// Has room for those: take() allocates nothing then. Throws std::bad_alloc.
  void make_room() { muster::make_room(children_, static_cast<std::size_t>(expected_)); }
  /// `process`: the pidfd of a child that nobody else waits for, or that has been reaped. `buried`: once it has ended,
  /// unless the supervisor ends before. `group`: the number of the process group that it led; 0: it led none.
  void take(unique_fd process, burial buried = {}, pid_t group = 0);
  void take(std::unique_ptr<memory_group> group);
  /// Has the loop end.
  void stop();

private:
  struct child {
    unique_fd process;
    burial buried;
    pid_t group = 0;
  };
  static bool is_done(child& each);
  void leave_children() noexcept;
  void try_all();
  void try_again_soon() noexcept;
  void try_again_later() noexcept;
  [[nodiscard]] bool have_removed_groups() noexcept;

  boost::asio::steady_timer timer_;
  std::chrono::milliseconds delay_{};
  bool stopped_ = false;  // an expired timer cannot be cancelled
  std::ptrdiff_t expected_ = 0;
  std::vector<child> children_;
  std::vector<std::unique_ptr<memory_group>> groups_;
};

}  // namespace muster::detail
