// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster {

/// How that part of a call's arguments, bound values and elements which lies in shared memory (tensors, shared objects)
/// goes along. What lies elsewhere is copied in any case, and results are always handed over.
///
/// Thread safety: a value.
enum class transfer : std::uint8_t {
  /// As the same memory, which caller and worker see at once.
  reference,
  /// As a copy of the worker's own: nobody sees what the other writes. It also goes to pools of another domain
  /// (pool_options::isolated).
  copy,
  /// As the same memory, which the caller gives away: arguments, and containers of elements, that are rvalues are as if
  /// default-constructed once the call has been accepted; unchanged when it throws. So the memory is free when the task
  /// has ended, or belongs to the worker that has kept a handle. An lvalue stays the caller's and goes by reference: as
  /// everywhere, who gives something away writes std::move.
  move
};

}  // namespace muster
