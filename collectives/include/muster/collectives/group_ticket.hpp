// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>

#include <muster/collectives/group_options.hpp>
#include <muster/memory/detail/shared_block.hpp>

namespace muster {

class domain;
class input_archive;
class output_archive;

/// What a member needs to join a group: made by anybody, given to those who are to be its ranks, and to nobody else. It
/// goes to workers as an argument, and by name to programs that were started independently (process/listener.hpp).
///
///     const muster::group_ticket ticket(4);
///     for (std::size_t rank = 0; rank < 4; ++rank)
///       calls.push_back(pool.on(rank).apply_async([](const muster::group_ticket& ticket, std::size_t rank) {
///         muster::group group(ticket, rank); …
///       }, ticket, rank));
///
/// A ticket is for one group: whoever has left it, or died, cannot join again. For another group of the same members,
/// make another ticket.
///
/// Thread safety: distinct objects: safe, also copies of one another. Shared objects: safe while nobody assigns.
/// Process safety: as group.
/// Lifetime: keeps the group's memory.
/// Cost: shared memory for two slots of each rank (group_options::inline_bytes), 896 bytes of each, and a number for
/// each pair of ranks.
class group_ticket {
public:
  group_ticket() noexcept = default;
  /// Throws errc::invalid_argument for no ranks or more than 4096, and options out of their range; errc::out_of_memory.
  /// In the program's domain (domain::of_program), or in another.
  ///@{
  explicit group_ticket(std::size_t ranks, const group_options& options = {});
  group_ticket(std::size_t ranks, const group_options& options, std::shared_ptr<domain> where);
  ///@}

  /// Whether it is for any group.
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(block_); }
  /// Throws errc::invalid_argument for an empty one.
  [[nodiscard]] std::size_t ranks() const;

  /// Returns the group's memory; empty for an empty ticket.
  [[nodiscard]] const shared_block& block() const noexcept { return block_; }
  /// Returns the domain whose arena holds that memory; null for an empty ticket.
  [[nodiscard]] const std::shared_ptr<domain>& where() const noexcept { return domain_; }

  /// For cereal: sends the ticket itself. Throws errc::not_serializable where only copies of bytes can go, and for an
  /// empty ticket.
  void save(output_archive& archive) const;
  /// Throws errc::corrupted when what came can be no group, errc::invalid_argument when it is of a domain that is not
  /// the program's.
  void load(input_archive& archive);

private:
  friend class group;
  group_ticket(std::shared_ptr<domain> where, shared_block block) noexcept;

  std::shared_ptr<domain> domain_;  // before the block, which goes first
  shared_block block_;
};

}  // namespace muster
