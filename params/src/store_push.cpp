// SPDX-License-Identifier: BSL-1.0
// New versions.
#include <algorithm>
#include <cstring>
#include <new>

#include <muster/base/error.hpp>
#include <muster/base/of_process.hpp>
#include <muster/memory/detail/wait/rank_identity.hpp>
#include <muster/params/detail/store_core.hpp>
#include <muster/params/detail/version_chain.hpp>

#include "publishing.hpp"

namespace muster::detail {

namespace {

constinit muster::of_process<publishing> publishings;

void write_short(short_room& room, std::uint64_t type, std::span<const std::byte> value) noexcept {
  room.type.store(type, std::memory_order_release);
  room.bytes.store(value.size(), std::memory_order_release);
  for (std::size_t at = 0; at < value.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t part = 0;
    std::memcpy(&part, value.data() + at, std::min(sizeof part, value.size() - at));
    room.value[at / sizeof part].store(part, std::memory_order_release);
  }
}

}  // namespace

publishing& process_publishing() noexcept { return publishings.get(); }

namespace {

// Its alignment may take as much again.
constexpr std::size_t room_for_head = sizeof(snapshot_head) + alignof(snapshot_head);

}  // namespace

shared_block store_core::make_room(std::size_t bytes) {
  require_here();
  return memory().allocate_shared(bytes + room_for_head);
}

snapshot store_core::make_snapshot(const shared_block& of, std::uint64_t type, std::size_t bytes) const {
  const auto capacity = memory().capacity_of(of);
  snapshot made(of, capacity);
  auto& head = *new (of.data() + snapshot::place_of_head(capacity)) snapshot_head;
  head.previous.store(0, std::memory_order_relaxed);
  head.type = type;
  head.bytes = bytes;
  head.is_tensor = 0;
  head.dimensions = 0;
  return made;
}

void store_core::room_writer::operator()(short_room* room) const noexcept {
  room->writer.store(0, std::memory_order_seq_cst);
}

// Looked at again once it is claimed: the process that had it may have made it the newest one's meanwhile. None, where
// all are with processes that are stopped.
store_core::claimed_room store_core::claim_room(std::size_t line) {
  for (std::size_t index = 0; index < key_line::rooms; ++index) {
    auto& room = table_.line(line).room[index];
    auto found = room.writer.load(std::memory_order_seq_cst);
    if (found != 0 && rank_identity::unpack(found).is_alive(*domain_)) continue;
    if (!room.writer.compare_exchange_strong(found, self_, std::memory_order_seq_cst)) continue;
    claimed_room claimed{.index = index, .room = std::unique_ptr<short_room, room_writer>(&room)};
    const auto now = look(line).word;
    if (!now.is_in_room() || now.room() != index) return claimed;
  }
  return {};
}

// What is let go of is said first: a process that dies behind the change has it dropped by the host.
bool store_core::replace(std::size_t line, const newest_version& before, version_word by) {
  auto& to = table_.line(line);
  auto expected = before.raw.bits();
  if (!before.word.is_block()) {
    if (!to.newest.compare_exchange_strong(expected, by.bits(), std::memory_order_seq_cst)) return false;
    tell(to);
    return true;
  }
  {
    const scoped_lock lock(process_publishing().guard);
    auto& own = table_.pusher(domain_->self());
    own.line.store(line | pusher_line::with_those_behind, std::memory_order_seq_cst);
    own.hold.store(expected, std::memory_order_seq_cst);
    const bool done = to.newest.compare_exchange_strong(expected, by.bits(), std::memory_order_seq_cst);
    if (done) {
      tell(to);
      version_chain::drop(memory(), before.word.bits());
    }
    own.hold.store(0, std::memory_order_seq_cst);
    if (!done) return false;
  }
  forget_seen(line);
  return true;
}

// A hold that is everybody's would stay for ever if this process died before the line names it: so it is said first.
bool store_core::publish(std::size_t line, const newest_version& before, const snapshot& made) {
  auto& to = table_.line(line);
  version_word word;
  {
    const scoped_lock lock(process_publishing().guard);
    auto& own = table_.pusher(domain_->self());
    const auto hold = memory().send(made.block());
    own.line.store(line, std::memory_order_seq_cst);
    own.hold.store(hold, std::memory_order_seq_cst);
    memory().entrust(hold, domain_->self());
    auto expected = before.raw.bits();
    const bool done = to.newest.compare_exchange_strong(expected, hold, std::memory_order_seq_cst);
    done ? tell(to) : static_cast<void>(version_chain::let_go(memory(), hold));
    own.hold.store(0, std::memory_order_seq_cst);
    if (!done) return false;
    word = version_word(hold);
  }
  note_seen(line, word, made);
  version_chain::shorten(memory(), made, table_.shape().depth,
                         before.word.is_block() ? std::optional(before.block) : std::nullopt);
  return true;
}

push_result store_core::push_block(std::size_t line, const snapshot& made, std::optional<std::uint64_t> expected) {
  for (;;) {
    const auto now = look_to_change(line);
    if (!now.fits(expected)) return {.ok = false, .version = now.version()};
    const auto version = now.number + 1;
    made.head().version = version;
    made.head().previous.store(now.word.is_block() ? now.word.bits() : 0, std::memory_order_relaxed);
    if (publish(line, now, made)) return {.ok = true, .version = version};
  }
}

push_result store_core::push_short(std::size_t line, std::uint64_t type, std::span<const std::byte> value,
                                   std::optional<std::uint64_t> expected) {
  require_here();
  const auto claimed = claim_room(line);
  if (claimed.room == nullptr) {
    const auto made = make_block(type, value.size());
    std::memcpy(made.value().data(), value.data(), value.size());
    return push_block(line, made, expected);
  }
  write_short(*claimed.room, type, value);
  for (;;) {
    const auto now = look_to_change(line);
    if (!now.fits(expected)) return {.ok = false, .version = now.version()};
    const auto version = now.number + 1;
    if (replace(line, now, version_word::in_room(claimed.index, version))) return {.ok = true, .version = version};
  }
}

bool store_core::erase(std::size_t line) {
  for (;;) {
    const auto now = look_to_change(line);
    if (now.version() == 0) return false;
    if (replace(line, now, version_word::erased(now.number + 1))) return true;
  }
}

}  // namespace muster::detail
