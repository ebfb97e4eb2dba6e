// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <vector>

#include <muster/memory/domain.hpp>
#include <muster/queue/detail/message_ring.hpp>
#include <muster/rpc/detail/group_table.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster::detail {

/// The host's part in an RPC group: keeps the rings of its members until no process has the group any more, and names
/// the program's modules. Kept by the domain.
///
/// Thread safety: as keepsake.
class rpc_keeper final : public keepsake {
public:
  /// Makes the rings, and writes their names into the members' lines. Throws errc::out_of_memory,
  /// errc::module_mismatch.
  static void keep(domain& where, const shared_block& memory, const group_table& table);

  /// Rings of one more member: of requests, and of replies.
  [[nodiscard]] static std::vector<std::shared_ptr<message_ring>> make_rings(const table_shape& shape);

  [[nodiscard]] bool is_done() noexcept override { return domain_.blocks().is_sole(memory_); }

private:
  rpc_keeper(domain& where, const shared_block& memory, const group_table& table);
  [[nodiscard]] std::uint64_t make_ring(std::size_t capacity);

  domain& domain_;
  const shared_block memory_;
  token_encoder functions_;
  std::vector<shared_block> rings_;  // not the objects, which keep the domain
};

}  // namespace muster::detail
