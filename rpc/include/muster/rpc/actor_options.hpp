// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <type_traits>

#include <muster/base/detail/duration.hpp>
#include <muster/base/device.hpp>

namespace muster {

/// How an actor is started and kept: `group.start<counter>("counter 7", {.restarts = 2}, 20)`.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct actor_options {
  /// How often its process is started anew when it has died or its constructor has thrown. Its state is the
  /// constructor's then; calls that were under way end with member_lost.
  unsigned restarts = 0;
  /// How many calls of it can run at once, of those that are made with rpc_call_options::concurrent.
  std::size_t threads = 1;
  /// The GPU that its process is pinned to, as pool_options::devices says: CUDA's number 0 there. The host: it sees
  /// what the program sees.
  muster::device device{};
  /// How long it may take to end, once nothing refers to it any more, before its process is killed.
  std::chrono::nanoseconds grace = std::chrono::seconds(1);
};
static_assert(std::is_trivially_copyable_v<actor_options>);

}  // namespace muster
