// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/base/clock.hpp>

namespace muster::detail {

class callback_executor;

/// While it lives the callback that this thread runs, if it runs one, waits: what it waits for may be made by callbacks
/// that are behind it. Make it before locks are taken that those may want.
///
/// Thread safety: belongs to the thread that made it.
class callback_pause {
public:
  /// Throws errc::overflow when too many callbacks wait already, EAGAIN when no thread can be had for the others.
  callback_pause();
  /// For a wait until then: none, if that has passed. Throws as the constructor.
  [[nodiscard]] static callback_pause until(deadline when);
  /// For the end of a pool, which must not throw: none where those behind the callback cannot have a thread. What does
  /// not wait for them ends all the same.
  [[nodiscard]] static callback_pause if_possible() noexcept;
  callback_pause(const callback_pause&) = delete;
  callback_pause& operator=(const callback_pause&) = delete;
  ~callback_pause();

private:
  explicit callback_pause(callback_executor* where);

  callback_executor* const where_;
};

}  // namespace muster::detail
