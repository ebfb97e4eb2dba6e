// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <muster/base/detail/duration.hpp>
#include <muster/memory/detail/shared_block.hpp>

namespace muster {

class domain;
class input_archive;
class output_archive;

/// How a store is made. They lie in its ticket, so that processes cannot differ about them.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct store_options {
  /// How many versions of each value are kept, the newest included.
  std::size_t depth = 1;
  /// How many keys there may be, those that were erased included; at most 2^20. They take 1.5 KiB each, from the start.
  std::size_t most_keys = 4096;
  /// How long functions wait that are not told how long.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
};

/// What a process needs to use a store: made by the program, and given to others as an argument of processes, tasks and
/// threads.
///
/// Thread safety: distinct objects: safe, also copies of one another. Shared objects: safe while nobody assigns.
/// Lifetime: keeps the store's memory, and so does each muster::store.
/// Cost: shared memory: 1.5 KiB for each key that there may be, and 0.7 MiB.
class store_ticket {
public:
  /// For no store: to be assigned to.
  store_ticket() noexcept = default;
  /// Makes a store in the program's domain. Throws errc::invalid_argument in a worker, and for options out of their
  /// range; errc::out_of_memory.
  explicit store_ticket(const store_options& options);

  /// Whether it is for any store.
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(block_); }
  /// Returns the store's memory; empty for an empty ticket.
  [[nodiscard]] const shared_block& block() const noexcept { return block_; }
  /// Returns the domain that it lies in; null for an empty ticket.
  [[nodiscard]] const std::shared_ptr<domain>& where() const noexcept { return domain_; }

  /// For cereal: sends the ticket itself; where only copies of bytes can go, its memory's name, as rpc_ticket.
  void save(output_archive& archive) const;
  /// Throws errc::corrupted when what came can be no store, errc::invalid_argument when it is of a domain that is not
  /// the program's, and when the store is not there any more.
  void load(input_archive& archive);

private:
  std::shared_ptr<domain> domain_;  // before the block, which goes first
  shared_block block_;
};

}  // namespace muster
