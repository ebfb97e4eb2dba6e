// SPDX-License-Identifier: BSL-1.0
// New versions of several keys at once.
#include <algorithm>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/params/detail/store_core.hpp>
#include <muster/params/detail/version_chain.hpp>

#include "publishing.hpp"

namespace muster::detail {

namespace {

/// Holds on new versions, and on the record that makes them the newest, until they are where they belong.
///
/// Thread safety: belongs to its thread.
class held_versions {
public:
  explicit held_versions(arena& memory) noexcept : memory_(memory) {}
  held_versions(const held_versions&) = delete;
  held_versions& operator=(const held_versions&) = delete;
  ~held_versions() { drop(); }

  [[nodiscard]] std::uint64_t add(const shared_block& which) {
    all_.reserve(all_.size() + 1);
    all_.push_back(memory_.send(which));
    return all_.back();
  }
  void entrust() const noexcept {
    for (const auto each : all_) memory_.entrust(each, memory_.self());
  }
  void drop() noexcept {
    for (const auto each : all_) static_cast<void>(version_chain::let_go(memory_, each));
    all_.clear();
  }
  /// They are in the store.
  void release() noexcept { all_.clear(); }

private:
  arena& memory_;
  std::vector<std::uint64_t> all_;
};

}  // namespace

// Others may refuse it at any time; what was marked before or is marked afterwards stands for what was there.
bool store_core::mark_all(const commit_record& record, version_word mark) const {
  for (const auto& each : record.entries()) {
    auto expected = each.before;
    auto& newest = table_.line(static_cast<std::size_t>(each.line)).newest;
    if (!newest.compare_exchange_strong(expected, mark.bits(), std::memory_order_seq_cst)) return false;
    if (record.now() != commit_record::state::open) return false;
  }
  return true;
}

// What is held goes with this process until its line says so; from then on the host looks there if it dies.
bool store_core::commit(std::span<const part> all, std::span<const newest_version> before,
                        std::vector<version_word>& after) {
  const commit_record record(memory(), all.size());
  held_versions versions(memory());
  held_versions on_record(memory());
  const scoped_lock lock(process_publishing().guard);
  for (std::size_t each = 0; each < all.size(); ++each) {
    after.emplace_back(versions.add(all[each].made.block()));
    record.entries()[each] = {.line = all[each].line, .before = before[each].raw.bits(), .after = after[each].bits()};
  }
  const auto hold = on_record.add(record.block());
  if (!version_word::can_mark(hold)) throw error(errc::out_of_memory, "the domain has more than 2^24 blocks");
  const auto mark = version_word::mark(hold);
  auto& own = table_.pusher(domain_->self());
  own.line.store(pusher_line::of_record, std::memory_order_seq_cst);
  own.hold.store(hold, std::memory_order_seq_cst);
  on_record.entrust();
  versions.entrust();
  const bool done = mark_all(record, mark) && record.make();
  if (!done) record.refuse();
  for (const auto& each : all) record.settle(table_, each.line, mark);
  for (const auto& each : all) tell(table_.line(each.line));
  done ? versions.release() : versions.drop();
  on_record.drop();  // no word names it any more
  own.hold.store(0, std::memory_order_seq_cst);
  return done;
}

push_all_result store_core::push_all(std::span<const part> all) {
  require_here();
  for (const auto until = end_of_wait({});;) {
    if (until.expired()) throw_too_busy(table_.key_of(all.front().line));
    std::vector<newest_version> before;
    push_all_result found{.ok = true, .versions = {}};
    for (const auto& each : all) {
      before.push_back(look_to_change(each.line));
      found.ok &= before.back().fits(each.expected);
      found.versions.push_back(before.back().version());
    }
    if (!found.ok) return found;
    for (std::size_t each = 0; each < all.size(); ++each) {
      auto& head = all[each].made.head();
      head.version = found.versions[each] = std::max(before[each].number + 1, all[each].least);
      head.previous.store(before[each].word.is_block() ? before[each].word.bits() : 0, std::memory_order_relaxed);
    }
    std::vector<version_word> after;
    if (!commit(all, before, after)) continue;
    for (std::size_t each = 0; each < all.size(); ++each) {
      const auto& [line, made, expected, least] = all[each];
      note_seen(line, after[each], made);
      version_chain::shorten(memory(), made, table_.shape().depth,
                             before[each].word.is_block() ? std::optional(before[each].block) : std::nullopt);
    }
    return found;
  }
}

}  // namespace muster::detail
