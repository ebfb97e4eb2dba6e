// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <muster/collectives/graph_link.hpp>
#include <muster/collectives/group.hpp>

namespace muster {

/// Carries a graph's tensors as messages of a group: the graph's ranks and tags are the group's.
///
///     muster::group group(ticket, rank);
///     muster::group_link link(group);
///     plan.run(link);
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe, but abort.
/// Process safety: as group; a lost peer is peer_lost.
/// Lifetime: borrows the group.
/// Cost: what the group's messages cost; it allocates nothing once it has carried as many at once. A message of up to
/// 384 bytes has been sent when isend returns: should its receiver refuse it, this rank learns that later, from
/// what it sends or waits for next.
class group_link final : public graph_link {
public:
  /// Sends and receives as the rank that `over` is.
  explicit group_link(group& over) noexcept : group_(over) {}

  /// Throws errc::invalid_argument for a rank that is not in the group, or a negative tag.
  ///@{
  [[nodiscard]] ticket isend(const tensor& what, int to, int tag) override;
  [[nodiscard]] ticket irecv(const tensor& room, int from, int tag) override;
  ///@}
  /// Tests whether a transfer has ended, or waits for it until `until`. Returns true, and the ticket is used up, when
  /// it has. Throw what work::wait() throws, and errc::invalid_argument for a ticket that is used up or of another
  /// link.
  ///@{
  [[nodiscard]] bool test(ticket which) override;
  [[nodiscard]] bool wait(ticket which, deadline until) override;
  ///@}
  /// Breaks the group: all calls of all its ranks end with errc::cancelled, and `why` as the reason.
  void abort(std::string_view why) noexcept override;

private:
  // A place for a transfer, which many have one after the other. A ticket is the place's number from 1, and above that
  // how many have had the place before: so one that is used up is known.
  struct slot {
    work operation;
    std::uint32_t used = 0;
  };

  [[nodiscard]] ticket keep(work started);
  [[nodiscard]] slot& find(ticket which);
  void release(slot& which);

  group& group_;
  std::vector<slot> slots_;
  std::vector<std::uint32_t> free_;  // in slots_
};

}  // namespace muster
