// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/queue/message_queue.hpp>

namespace muster {

/// A bounded queue from one producer to one consumer, in any processes of a domain. Calls and promises are those of
/// shared_queue; what differs is that neither side is ever in another's way, so it is a little cheaper.
///
/// Requires: at any time at most one thread of one process pushes, and at most one takes. A lease takes until it has
/// been acknowledged or is gone: whoever has one, or hands it to another thread, lets nobody else pop, lease or
/// acknowledge meanwhile. Others may follow when those have stopped, or have died and been recovered. With two at once
/// no message is given to both, and nothing is overwritten, but calls of either side may throw errc::corrupted, also
/// later, and calls that take may find the end of a closed queue while messages are in it. For several use
/// shared_queue.
///
/// Thread safety: distinct objects: safe. Shared objects: one thread may push while another takes.
/// Process safety: the same.
template <class T>
class p2p_queue : public message_queue<T, queue_kind::p2p> {
public:
  using message_queue<T, queue_kind::p2p>::message_queue;
};

}  // namespace muster
