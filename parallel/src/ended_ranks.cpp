// SPDX-License-Identifier: BSL-1.0
#include "ended_ranks.hpp"

#include <exception>

#include <muster/base/pidfd.hpp>
#include <muster/memory/detail/wait/rank_identity.hpp>

namespace muster::detail {

namespace {

// A number is the rank's until the host has observed its death, which is a moment after the process was reaped. A
// process that got its pid in that moment would count as the rank: then the order of failures is wrong, and nothing
// else.
bool is_running(const rank_identity& rank, const domain& where) noexcept {
  try {
    return rank.pid != 0 && !has_ended(open_pidfd(rank.pid).get()) && rank.is_alive(where);
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

rank_set ended_ranks(const domain& where, const world_memory& memory) noexcept {
  rank_set found;
  for (std::size_t rank = 0; rank < memory.shape().ranks; ++rank) {
    const auto member = rank_identity::unpack(memory.line(rank).member.load(std::memory_order_acquire));
    found.set(rank, !is_running(member, where));
  }
  return found;
}

}  // namespace muster::detail
