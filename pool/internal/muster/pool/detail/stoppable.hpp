// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <stop_token>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// What a thread is at that is no task of a pool, and that may be asked to stop all the same: this_task speaks of it
/// while it lives.
///
/// Thread safety: belongs to the thread that made it.
class stoppable {
public:
  stoppable(const stoppable&) = delete;
  stoppable& operator=(const stoppable&) = delete;

  [[nodiscard]] virtual bool stop_requested() const noexcept = 0;
  /// As this_task::stop_token.
  [[nodiscard]] virtual std::stop_token stop_token() const = 0;

  /// The innermost that this thread is at; nullptr where it is at none, or at a task inside of that.
  [[nodiscard]] static const stoppable* current() noexcept;

protected:
  stoppable() noexcept;
  ~stoppable();

private:
  const void* const task_;  // that it is a part of
  const stoppable* const before_;
};

}  // namespace muster::detail
