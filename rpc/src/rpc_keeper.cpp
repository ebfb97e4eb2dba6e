// SPDX-License-Identifier: BSL-1.0
#include "rpc_keeper.hpp"

#include <utility>

namespace muster::detail {

namespace {

// Replies to calls that were given up may lie in the ring with those that are wanted.
constexpr std::size_t spare_replies = 64;
constexpr std::size_t inline_bytes = 240;

}  // namespace

void rpc_keeper::keep(domain& where, const shared_block& memory, const group_table& table) {
  where.keepsakes().tidy_some();
  std::unique_ptr<rpc_keeper> made(new rpc_keeper(where, memory, table));
  for (std::size_t index = 0; index < table.shape().named; ++index) {
    auto& line = table.member(index);
    line.requests.store(made->make_ring(table.shape().inbox), std::memory_order_release);
    line.replies.store(made->make_ring(table.shape().calls + spare_replies), std::memory_order_release);
  }
  where.keepsakes().add(std::move(made), memory.data());
}

rpc_keeper::rpc_keeper(domain& where, const shared_block& memory, const group_table& table)
    : domain_(where), memory_(memory), functions_(table.modules()) {}

std::vector<std::shared_ptr<message_ring>> rpc_keeper::make_rings(const table_shape& shape) {
  return {message_ring::make(queue_kind::shared, shape.inbox, {.inline_bytes = inline_bytes}),
          message_ring::make(queue_kind::shared, shape.calls + spare_replies, {.inline_bytes = inline_bytes})};
}

std::uint64_t rpc_keeper::make_ring(std::size_t capacity) {
  const auto made = message_ring::make(queue_kind::shared, capacity, {.inline_bytes = inline_bytes});
  rings_.push_back(made->block());
  return domain_.blocks().name_of(made->block());
}

}  // namespace muster::detail
