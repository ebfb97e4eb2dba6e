// SPDX-License-Identifier: BSL-1.0
#pragma once

// What carries a graph's tensors from rank to rank: messages with tags, started without waiting, waited for later.

#include <cstdint>
#include <string_view>

#include <muster/base/clock.hpp>
#include <muster/device/tensor.hpp>

namespace muster {

/// One rank's end of whatever carries messages between ranks: isend, irecv and wait, as in MPI.
///
/// A message is a tensor from one rank to another under a tag. Messages of one tag between the same two ranks arrive in
/// the order in which they were sent; messages of different tags may be waited for in any order, and none waits for
/// another. Sending needs no receive to have been started, nor the other way round; a send may need one to end.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe; a rank is one thread, but abort may come from any.
/// Visibility: what the sender wrote to a tensor before isend is visible to the receiver after its wait.
/// Cost: an implementation allocates nothing per message once it has carried as many at once.
class graph_link {
public:
  /// Names a transfer from its start until a wait or test has said that it has ended; not zero.
  using ticket = std::uint64_t;

  graph_link() = default;
  graph_link(const graph_link&) = delete;
  graph_link& operator=(const graph_link&) = delete;
  virtual ~graph_link() = default;

  /// Begins to send. Never waits for the receiver.
  /// Requires: `what` is contiguous; nobody writes its elements until the transfer has ended.
  /// Lifetime: the link keeps its own handle.
  [[nodiscard]] virtual ticket isend(const tensor& what, int to, int tag) = 0;

  /// Begins to receive into the elements of `room`. Never waits for the sender.
  /// Requires: `room` is contiguous; nobody touches its elements until the transfer has ended.
  [[nodiscard]] virtual ticket irecv(const tensor& room, int from, int tag) = 0;

  /// Whether the transfer has ended; if so, its ticket is used up. Never waits. Throws as wait does.
  [[nodiscard]] virtual bool test(ticket which) = 0;

  /// Waits for the end of a transfer; its ticket is used up then. Returns false, and the transfer goes on, when `until`
  /// has passed.
  /// Unblocked by: the end of the transfer, abort on any rank, the loss of the peer, the deadline.
  /// Throws errc::invalid_argument, at both ends, when dtypes or shapes of the two ends differ, errc::cancelled after
  /// an abort, errc::peer_lost for a lost peer.
  [[nodiscard]] virtual bool wait(ticket which, deadline until) = 0;

  /// Says to all ranks that this one will not go on: whoever waits, or waits later, gets errc::cancelled with `why`.
  virtual void abort(std::string_view why) noexcept = 0;
};

}  // namespace muster
