// SPDX-License-Identifier: BSL-1.0
// What the queue floor may include.
#include <muster/memory/detail/arena.hpp>
#include <muster/queue/shared_queue.hpp>
