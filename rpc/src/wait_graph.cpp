// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/wait_graph.hpp>

#include <muster/rpc/detail/call_word.hpp>

namespace muster::detail {

namespace {

constexpr std::uint32_t tag = 0xffffU;

constexpr std::uint64_t edge_of(const call_id& which, const call_id& to) noexcept {
  return std::uint64_t{which.generation & tag} << 48U | std::uint64_t{to.member} << 36U |
         std::uint64_t{to.slot & 0xfffffU} << 16U | (to.generation & tag);
}

}  // namespace

bool wait_graph::is_possible(const call_id& which) const noexcept {
  return which.is_any() && which.member < table_.shape().members && which.slot < table_.shape().calls;
}

// A call that was given up may still be served, when its word is another's: that one's edge stays.
void wait_graph::set(const call_id& which, const call_id& waits_for) const noexcept {
  if (!is_possible(which)) return;
  auto& line = table_.calls_of(which.member)[which.slot];
  auto found = line.waits_for.load(std::memory_order_seq_cst);
  const auto edge = edge_of(which, waits_for);
  while (call_word::generation_of(line.word.load(std::memory_order_seq_cst)) == which.generation &&
         !line.waits_for.compare_exchange_weak(found, edge, std::memory_order_seq_cst)) {
    continue;
  }
}

void wait_graph::clear(const call_id& which) const noexcept {
  if (!is_possible(which)) return;
  auto& edge = table_.calls_of(which.member)[which.slot].waits_for;
  auto found = edge.load(std::memory_order_seq_cst);
  if (found >> 48U == (which.generation & tag)) edge.compare_exchange_strong(found, 0, std::memory_order_seq_cst);
}

// That of a call that was withdrawn in a line stays as it was: those behind it wait for those before it.
std::optional<call_id> wait_graph::next(const call_id& which) const noexcept {
  if (!is_possible(which)) return std::nullopt;
  const auto& line = table_.calls_of(which.member)[which.slot];
  const auto edge = line.waits_for.load(std::memory_order_seq_cst);
  if (edge == 0 || edge >> 48U != (which.generation & tag)) return std::nullopt;
  if (call_word::generation_of(line.word.load(std::memory_order_seq_cst)) != which.generation) return std::nullopt;
  call_id found{.member = static_cast<std::uint32_t>(edge >> 36U & 0xfffU),
                .slot = static_cast<std::uint32_t>(edge >> 16U & 0xfffffU),
                .generation = 1};
  if (!is_possible(found)) return std::nullopt;
  found.generation =
      call_word::generation_of(table_.calls_of(found.member)[found.slot].word.load(std::memory_order_seq_cst));
  if ((found.generation & tag) != (edge & tag)) return std::nullopt;
  return found;
}

std::vector<call_id> wait_graph::walk(const call_id& first) const {
  std::vector<call_id> path{first};
  while (path.size() <= most_steps) {
    const auto found = next(path.back());
    if (!found) break;
    if (*found == first) return path;
    path.push_back(*found);
  }
  return {};
}

// Twice: what was read one after the other may never have been at once.
std::vector<call_id> wait_graph::circle_of(const call_id& first) const {
  auto found = walk(first);
  if (!found.empty() && walk(first) != found) found.clear();
  return found;
}

}  // namespace muster::detail
