// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstdint>

#include <muster/memory/detail/wait/place.hpp>
#include <muster/queue/event.hpp>

namespace muster {

/// What lies in an event's block. Layout: docs/formats/event.md.
struct event::memory {
  std::atomic<std::uint64_t> word = 0;  ///< event_protocol
  place_word setter = 0;                ///< where the last set() ran
};

}  // namespace muster
