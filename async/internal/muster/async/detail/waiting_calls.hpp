// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include <muster/base/detail/mutex.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster::detail {

/// The calls that a pool has accepted and that wait for their arguments: no task yet, and so nothing that ends with the
/// pool's tasks.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class waiting_calls {
public:
  using id = std::uint64_t;
  using ender = std::function<void(const error_info&)>;

  /// From now on end_all() calls `end`, unless remove() comes first. Nothing after end_all().
  [[nodiscard]] std::optional<id> add(ender end) MUSTER_EXCLUDES(mutex_);
  /// Why there are none any more. Requires: add() gave nothing.
  [[nodiscard]] error_info reason() const MUSTER_EXCLUDES(mutex_);
  void remove(id which) MUSTER_EXCLUDES(mutex_);
  /// Ends those that there are, and accepts no more. After the first time nothing. They may do anything: it is called
  /// without locks, and never by the supervisor.
  void end_all(const error_info& why) MUSTER_EXCLUDES(mutex_);

private:
  mutable mutex mutex_;
  id latest_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::map<id, ender> enders_ MUSTER_GUARDED_BY(mutex_);
  std::optional<error_info> ended_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
