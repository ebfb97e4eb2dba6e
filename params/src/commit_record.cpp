// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/commit_record.hpp>

#include <algorithm>
#include <new>
#include <utility>

#include <muster/params/detail/version_chain.hpp>

namespace muster::detail {

struct alignas(64) commit_record::head {
  std::atomic<std::uint64_t> state;
  std::uint64_t keys;
};

commit_record::commit_record(arena& memory, std::size_t keys)
    : block_(memory.allocate_shared(sizeof(head) + keys * sizeof(entry))) {
  auto& made = *new (block_.data()) head;
  made.state.store(static_cast<std::uint64_t>(state::open), std::memory_order_relaxed);
  made.keys = keys;
}

std::optional<commit_record> commit_record::open(arena& memory, version_word mark) {
  auto block = version_chain::keep_block_of(memory, mark.marked());
  if (!block) return std::nullopt;
  commit_record found(*std::move(block));
  return found.is_possible() ? std::optional(found) : std::nullopt;
}

commit_record::head& commit_record::first() const noexcept { return *reinterpret_cast<head*>(block_.data()); }

bool commit_record::is_possible() const noexcept {
  return block_.size() >= sizeof(head) && first().keys <= (block_.size() - sizeof(head)) / sizeof(entry);
}

std::span<commit_record::entry> commit_record::entries() const noexcept {
  return {reinterpret_cast<entry*>(block_.data() + sizeof(head)), static_cast<std::size_t>(first().keys)};
}

commit_record::state commit_record::now() const noexcept {
  return static_cast<state>(first().state.load(std::memory_order_seq_cst));
}

bool commit_record::decide(state how) const noexcept {
  auto expected = static_cast<std::uint64_t>(state::open);
  const auto wanted = static_cast<std::uint64_t>(how);
  return first().state.compare_exchange_strong(expected, wanted, std::memory_order_seq_cst) || expected == wanted;
}

const commit_record::entry* commit_record::find(std::size_t line) const noexcept {
  const auto all = entries();
  const auto found = std::lower_bound(all.begin(), all.end(), line,
                                      [](const entry& each, std::size_t wanted) { return each.line < wanted; });
  return found != all.end() && found->line == line ? &*found : nullptr;
}

std::optional<version_word> commit_record::stands_for(std::size_t line) const noexcept {
  const auto* const found = find(line);
  if (found == nullptr) return std::nullopt;
  return version_word(now() == state::made ? found->after : found->before);
}

void commit_record::settle(const store_table& table, std::size_t line, version_word mark) const noexcept {
  const auto by = stands_for(line);
  auto expected = mark.bits();
  if (by) table.line(line).newest.compare_exchange_strong(expected, by->bits(), std::memory_order_seq_cst);
}

}  // namespace muster::detail
