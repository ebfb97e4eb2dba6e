// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/memory/detail/shared_block.hpp>
#include <muster/memory/domain.hpp>

#include "device_anchor.hpp"

namespace muster::detail {

/// What a device's stream was told to wait for: it goes on too when that never comes, and somebody has to be told then.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class awaited_list {
public:
  void add(const shared_block& anchor, const device_promise& what) MUSTER_EXCLUDES(mutex_);
  /// Whoever uses it is told otherwise that it never came.
  void forget(const shared_block& anchor, std::uint64_t count) MUSTER_EXCLUDES(mutex_);
  /// Throws errc::peer_lost, once, when something of it never came. Requires: the stream has been waited for.
  void require_all() MUSTER_EXCLUDES(mutex_);

private:
  struct awaited {
    std::shared_ptr<domain> keeper;
    shared_block anchor;
    device_promise what;
  };
  void drop_those_that_came() MUSTER_REQUIRES(mutex_);

  mutex mutex_;
  std::vector<awaited> all_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
