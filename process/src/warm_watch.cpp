// SPDX-License-Identifier: BSL-1.0
#include "warm_watch.hpp"

#include <exception>

#include <boost/asio/bind_allocator.hpp>

namespace muster::detail {

void warm_watch::begin() noexcept {
  if (is_waiting_ || is_stopped_) return;
  seen_ = watched_.warm();
  wait();
}

void warm_watch::stop() noexcept {
  is_stopped_ = true;
  try {
    timer_.cancel();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): then it expires
  }
}

// Without memory for the wait it is given back at once, and the next that is kept warm begins another watch.
void warm_watch::wait() noexcept {
  try {
    timer_.expires_after(warm_time);
    timer_.async_wait(
        boost::asio::bind_allocator(room_allocator<std::byte>(room_), [this](boost::system::error_code cancelled) {
          is_waiting_ = false;
          if (!cancelled && !is_stopped_) look();
        }));
    is_waiting_ = true;
  } catch (const std::exception&) {
    watched_.trim();
  }
}

void warm_watch::look() noexcept {
  seen_ = watched_.trim_unused(seen_);
  if (seen_.bytes != 0) wait();
}

}  // namespace muster::detail
