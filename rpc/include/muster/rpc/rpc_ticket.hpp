// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <muster/memory/detail/shared_block.hpp>
#include <muster/rpc/rpc_options.hpp>

namespace muster {

class domain;
class input_archive;
class output_archive;

/// What a process needs to join an RPC group: made by the program, and given to those who are to be its members, as an
/// argument of processes, tasks and threads.
///
///     const muster::rpc_ticket ticket("training", {"learner", "sampler 0", "sampler 1"});
///     muster::process sampler(run_sampler, ticket, "sampler 0");
///     muster::rpc_group group(ticket, "learner");
///
/// A member's name is joined by one at a time. When it has left or died, the name can be joined again.
///
/// Thread safety: distinct objects: safe, also copies of one another. Shared objects: safe while nobody assigns.
/// Lifetime: keeps the group's memory.
/// Cost: shared memory: half a MiB for each member (256 bytes for each place of its inbox, 288 for each call that it
/// may have under way), and as much for each actor while there is one.
class rpc_ticket {
public:
  /// For no group: to be assigned to.
  rpc_ticket() noexcept = default;
  /// Makes a group in the program's domain. Throws errc::invalid_argument in a worker; for no members, an empty or
  /// doubled name, one of more than 176 bytes, more than 4096 members, and options out of their range;
  /// errc::out_of_memory.
  rpc_ticket(const std::string& name, const std::vector<std::string>& members, const rpc_ticket_options& options = {});

  /// Whether it is for any group.
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(block_); }
  /// Returns the group's name. Throws errc::invalid_argument for an empty ticket.
  [[nodiscard]] std::string name() const;
  /// Returns the members' names, sorted. Throws as name().
  [[nodiscard]] std::vector<std::string> members() const;

  /// Returns the group's memory; empty for an empty ticket.
  [[nodiscard]] const shared_block& block() const noexcept { return block_; }
  /// Returns the domain that it lies in; null for an empty ticket.
  [[nodiscard]] const std::shared_ptr<domain>& where() const noexcept { return domain_; }

  /// For cereal: sends the ticket itself; where only copies of bytes can go (elements of maps, initializers, functions
  /// of worlds), its memory's name: then the program is to keep a ticket, or a member, until it has come. Throws
  /// errc::not_serializable for an empty ticket.
  void save(output_archive& archive) const;
  /// Throws errc::corrupted when what came can be no group, errc::invalid_argument when it is of a domain that is not
  /// the program's, and when the group is not there any more.
  void load(input_archive& archive);

private:
  std::shared_ptr<domain> domain_;  // before the block, which goes first
  shared_block block_;
};

}  // namespace muster
