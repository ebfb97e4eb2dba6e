// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <muster/base/handler_room.hpp>
#include <muster/memory/detail/arena.hpp>

namespace muster::detail {

/// Gives back what an arena keeps warm once nobody has used it for warm_time. No timer runs while nothing is kept warm.
///
/// Thread safety: belongs to the loop's thread.
/// Lifetime: borrows both.
class warm_watch {
public:
  warm_watch(boost::asio::io_context& loop, arena& watched) : watched_(watched), timer_(loop) {}

  /// Something is kept warm. May be called while the watch goes on.
  void begin() noexcept;
  /// Has the loop end.
  void stop() noexcept;

private:
  void wait() noexcept;
  void look() noexcept;

  arena& watched_;
  handler_room<256> room_;
  boost::asio::steady_timer timer_;
  arena::warmth seen_;
  bool is_waiting_ = false;
  bool is_stopped_ = false;
};

}  // namespace muster::detail
