// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <muster/async/detail/future_source.hpp>
#include <muster/base/detail/mutex.hpp>

namespace muster::detail {

/// Whether a pool's workers have been accepted, and who waits for that.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class start_notice {
public:
  using waiter = std::shared_ptr<local_state<void>>;

  /// They have, or the pool is over before, for that reason. Only the first call counts.
  void end(std::optional<error_info> why = std::nullopt) MUSTER_EXCLUDES(mutex_);
  /// Is completed once they have been accepted, or fails.
  [[nodiscard]] waiter add() MUSTER_EXCLUDES(mutex_);

private:
  static outcome<void> outcome_of(const std::optional<error_info>& why);

  mutex mutex_;
  bool ended_ MUSTER_GUARDED_BY(mutex_) = false;
  std::optional<error_info> why_ MUSTER_GUARDED_BY(mutex_);
  std::vector<waiter> waiting_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
