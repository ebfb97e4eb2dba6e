// SPDX-License-Identifier: BSL-1.0
#pragma once

// Values that are nested deeper than the thread's stack.
//
// Thread safety: types only.

#include <cstddef>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// Throws errc::not_serializable if the calling thread has nearly used up its stack.
void require_stack_room();

/// One level of a value that is being written or read. Counts first: few values are nested deeply, and the bounds of a
/// stack take a system call to find out.
class depth_guard {
public:
  /// Throws: as require_stack_room(). Lifetime: borrows the count.
  explicit depth_guard(std::size_t& depth) : depth_(depth) {
    constexpr std::size_t shallow = 64;
    if (depth_ >= shallow) require_stack_room();
    ++depth_;
  }
  depth_guard(const depth_guard&) = delete;
  depth_guard& operator=(const depth_guard&) = delete;
  ~depth_guard() { --depth_; }

private:
  std::size_t& depth_;
};

}  // namespace muster::detail
