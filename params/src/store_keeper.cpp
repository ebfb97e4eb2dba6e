// SPDX-License-Identifier: BSL-1.0
#include "store_keeper.hpp"

#include <exception>
#include <memory>

#include <muster/params/detail/commit_record.hpp>
#include <muster/params/detail/version_chain.hpp>

namespace muster::detail {

void store_keeper::keep(domain& where, const shared_block& memory, const store_table& table) {
  where.keepsakes().tidy_some();
  where.keepsakes().add(std::unique_ptr<keepsake>(new store_keeper(where, memory, table)), memory.data());
}

store_keeper::store_keeper(domain& where, const shared_block& memory, const store_table& table)
    : domain_(where),
      memory_(memory),
      table_(table),
      recovery_(where.recoveries().add(recovery_stage::queues, [this](participant_id dead) { recover(dead); })) {}

// In a forked child what is left in it is its parent's.
store_keeper::~store_keeper() {
  recovery_ = {};
  if (!made_in_.is_here()) return;
  table_.for_each([&](std::size_t line) {
    const version_word word(table_.line(line).newest.load(std::memory_order_acquire));
    if (word.is_block()) version_chain::drop(domain_.blocks(), word.bits());
  });
}

void store_keeper::recover(participant_id dead) noexcept {
  auto& own = table_.pusher(dead);
  const auto hold = own.hold.exchange(0, std::memory_order_seq_cst);
  if (hold == 0) return;
  try {
    const auto found = own.line.load(std::memory_order_seq_cst);
    (found & pusher_line::of_record) != 0 ? end_record(hold) : end_push(hold, found);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory: it stays until the domain ends
  }
}

// A hold that the line has is not ours to drop. Behind a new version is what is the newest still, unless it was
// published, and another has taken it out again without having come so far as to drop what is behind.
void store_keeper::end_push(std::uint64_t hold, std::uint64_t said) {
  auto& memory = domain_.blocks();
  const auto line = static_cast<std::size_t>(said & ~pusher_line::with_those_behind);
  if (line >= table_.shape().lines() || has(line, hold)) return;
  const auto found = version_chain::open(memory, hold);
  const auto behind = found ? found->head().previous.load(std::memory_order_acquire) : 0;
  if ((said & pusher_line::with_those_behind) != 0 || (behind != 0 && !has(line, behind))) {
    version_chain::drop(memory, hold);
  } else {
    static_cast<void>(version_chain::let_go(memory, hold));
  }
}

// A record that is gone was settled: the word is another.
bool store_keeper::has(std::size_t line, std::uint64_t hold) {
  auto& memory = domain_.blocks();
  const auto is_in = [&](version_word first) {
    return first.is_block() && version_chain::contains(memory, first.bits(), hold);
  };
  for (;;) {
    const version_word newest(table_.line(line).newest.load(std::memory_order_seq_cst));
    if (!newest.is_mark()) return is_in(newest);
    const auto record = commit_record::open(memory, newest);
    if (!record && table_.line(line).newest.load(std::memory_order_seq_cst) != newest.bits()) continue;
    const auto* const found = record ? record->find(line) : nullptr;
    return found != nullptr && (is_in(version_word(found->before)) || is_in(version_word(found->after)));
  }
}

// As its process would have: refused, unless it was made.
void store_keeper::end_record(std::uint64_t hold) {
  auto& memory = domain_.blocks();
  const auto mark = version_word::mark(hold);
  const auto record = version_word::can_mark(hold) ? commit_record::open(memory, mark) : std::nullopt;
  if (!record) return;
  const bool is_refused = record->refuse();
  for (const auto& each : record->entries()) {
    if (each.line < table_.shape().lines()) record->settle(table_, static_cast<std::size_t>(each.line), mark);
    if (is_refused) static_cast<void>(version_chain::let_go(memory, each.after));
  }
  static_cast<void>(version_chain::let_go(memory, hold));
}

}  // namespace muster::detail
