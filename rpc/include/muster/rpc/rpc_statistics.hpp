// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a member of an RPC group has done so far.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <muster/base/detail/duration.hpp>

namespace muster {

/// Of one service that a member offers.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct service_statistics {
  std::string name;                    ///< of the service
  std::uint64_t calls = 0;             ///< that have ended here
  std::uint64_t failed = 0;            ///< of these, those that ended in an exception
  std::chrono::nanoseconds total{};    ///< how long they ran together; of one that returns a future, until it returned
  std::chrono::nanoseconds longest{};  ///< how long one of them ran
};

/// What a member has done since it joined, at one moment. Times are of this process's clock.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct rpc_statistics {
  std::uint64_t calls = 0;       ///< that it has made; one that was tried again counts once
  std::size_t under_way = 0;     ///< of these, those that have not ended
  std::uint64_t lost = 0;        ///< of these, those that ended because a member had died or left
  std::uint64_t given_up = 0;    ///< of these, those that ended by their deadline, by cancellation, or unsent
  std::uint64_t served = 0;      ///< calls of others that have begun here
  std::uint64_t failed = 0;      ///< of these, those that ended in an exception
  std::uint64_t refused = 0;     ///< calls that never began here: withdrawn, too late, or of what is not here any more
  std::size_t waiting = 0;       ///< requests in the inbox
  std::uint64_t sent_bytes = 0;  ///< of requests and replies, without what goes by reference
  std::uint64_t received_bytes = 0;            ///< likewise
  std::vector<service_statistics> services{};  ///< that it offers now, by name
};

}  // namespace muster
