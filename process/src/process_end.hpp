// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/base/error.hpp>
#include <muster/base/pidfd.hpp>

namespace muster::detail {

/// Whether what a wait for a pidfd was told may be true: not if the process lives for certain; so if it cannot be
/// asked.
///
/// To be asked in every handler of such a wait. Asio (1.81, epoll_reactor) gives the state of a closed descriptor to
/// the next one that is assigned, with an event that was on its way to the first: who comes while another ends, or in
/// its place, would be told of that one's end.
///
/// Thread safety: safe.
[[nodiscard]] inline bool may_have_ended(int process) noexcept {
  try {
    return has_ended(process);
  } catch (const error&) {
    return true;
  }
}

}  // namespace muster::detail
