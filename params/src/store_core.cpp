// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/store_core.hpp>

#include <map>
#include <new>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/of_process.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/detail/wait/rank_identity.hpp>
#include <muster/memory/wait/spin_policy.hpp>
#include <muster/params/detail/version_chain.hpp>

namespace muster::detail {

namespace {

void require_fitting(const store_key& key) {
  if (key.text().size() <= store_key::most_bytes) return;
  throw error(errc::invalid_argument, text("a key of a store has ", key.text().size(), " bytes; it may have ",
                                           store_key::most_bytes, ": ", key));
}

}  // namespace

namespace {

/// Lines that this process has taken and that no key has: another had added it meanwhile.
struct spare_lines {
  mutex guard;
  std::map<std::uint64_t, std::optional<std::size_t>> by_store MUSTER_GUARDED_BY(guard);  // by the name of its block
};
constinit muster::of_process<spare_lines> spares_of_process;

}  // namespace

store_ptr store_core::open(const store_ticket& ticket) {
  if (!ticket) throw error(errc::invalid_argument, "an empty store_ticket was used: it is for no store");
  ticket.where()->require_participant("a store_ticket");
  return store_ptr(new store_core(ticket));
}

store_core::store_core(const store_ticket& ticket)
    : ticket_(ticket),
      domain_(ticket.where()),
      table_(store_table::attach(ticket.block().bytes())),
      self_(rank_identity::of(*domain_, domain_->self()).pack()),
      sleeper_(*domain_, {.spin = spin_policy::of_process().budget}, place_) {}

store_core::~store_core() = default;

void store_core::require_here() const { domain_->require_participant("a store"); }

deadline store_core::end_of_wait(std::chrono::nanoseconds given) const {
  const auto time = given.count() != 0 ? given : table_.shape().timeout;
  return time == std::chrono::nanoseconds::max() ? deadline::never() : deadline::after(time);
}

// Older versions of short ones are not kept.
bool store_core::is_short(std::size_t bytes) const noexcept {
  return bytes <= short_room::most_bytes && table_.shape().depth == 1;
}

std::optional<std::size_t> store_core::find_line(const store_key& key) const {
  require_here();
  require_fitting(key);
  return table_.find(key);
}

std::size_t store_core::require_line(const store_key& key) {
  require_here();
  require_fitting(key);
  if (const auto found = table_.find(key)) return *found;
  auto& spares = spares_of_process.get();
  const scoped_lock lock(spares.guard);
  if (const auto found = table_.find_or_add(key, spares.by_store[memory().name_of(ticket_.block())])) return *found;
  throw error(errc::out_of_memory, text("the store has no room for the key ", key, ": it has ", table_.shape().keys,
                                        " already, with those that were erased (store_options::most_keys)"));
}

// ---- finding

// Of a block that this process has seen it has a hold already.
std::optional<snapshot> store_core::keep_newest(std::size_t line, version_word word) {
  {
    const scoped_lock lock(seen_mutex_);
    const auto found = seen_.find(line);
    if (found != seen_.end() && found->second.word == word) return found->second.which;
  }
  auto found = version_chain::open(memory(), word.bits());
  if (found) note_seen(line, word, *found);
  return found;
}

// What was seen before is let go of without the lock. Without memory it is looked for again the next time.
void store_core::note_seen(std::size_t line, version_word word, const snapshot& which) noexcept {
  seen before{.word = word, .which = which};
  const scoped_lock lock(seen_mutex_);
  try {
    std::swap(seen_[line], before);
    seen_count_.store(seen_.size(), std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): see above
  }
}

void store_core::forget_seen(std::size_t line) noexcept {
  if (seen_count_.load(std::memory_order_relaxed) == 0) return;
  seen before;
  const scoped_lock lock(seen_mutex_);
  if (const auto found = seen_.find(line); found != seen_.end()) {
    std::swap(found->second, before);
    seen_.erase(found);
    seen_count_.store(seen_.size(), std::memory_order_relaxed);
  }
}

std::optional<version_word> store_core::resolve(std::size_t line, version_word raw) {
  if (!raw.is_mark()) return raw;
  const auto record = commit_record::open(memory(), raw);
  return record ? record->stands_for(line) : std::nullopt;
}

// The record may have been decided meanwhile.
bool store_core::is_still(std::size_t line, const newest_version& which) {
  if (table_.line(line).newest.load(std::memory_order_seq_cst) != which.raw.bits()) return false;
  return !which.raw.is_mark() || resolve(line, which.raw) == which.word;
}

// A hold or a record that is gone: the word is another, too, or was overwritten.
newest_version store_core::look(std::size_t line) {
  auto& newest = table_.line(line).newest;
  for (;;) {
    newest_version found{.raw = version_word(newest.load(std::memory_order_seq_cst))};
    const auto word = resolve(line, found.raw);
    found.word = word.value_or(version_word());
    if (word && !word->is_block()) {
      found.number = word->version();
      if (!found.raw.is_mark()) forget_seen(line);
      return found;
    }
    const auto block = word ? keep_newest(line, *word) : std::nullopt;
    const bool is_same = word ? is_still(line, found) : newest.load(std::memory_order_seq_cst) == found.raw.bits();
    if (!is_same) continue;
    if (!block) {
      throw error(errc::corrupted, text("the store's value ", table_.key_of(line),
                                        " is not where it was: somebody has overwritten the store; make another one"));
    }
    found.block = *block;
    found.number = found.block.head().version;
    return found;
  }
}

newest_version store_core::look_to_change(std::size_t line) {
  for (;;) {
    auto found = look(line);
    if (!found.raw.is_mark()) return found;
    if (const auto record = commit_record::open(memory(), found.raw)) {
      record->refuse();
      record->settle(table_, line, found.raw);
    }
  }
}

// What was copied counts if the room was still the newest one's afterwards, which is not written to.
std::optional<found_version> store_core::read_short(std::size_t line, const newest_version& of) {
  const auto& room = table_.line(line).room[of.word.room() % key_line::rooms];
  found_version found;
  found.version = of.word.version();
  found.type = room.type.load(std::memory_order_acquire);
  found.bytes = std::min<std::size_t>(room.bytes.load(std::memory_order_acquire), short_room::most_bytes);
  for (std::size_t at = 0; at < found.bytes; at += sizeof(std::uint64_t)) {
    const auto part = room.value[at / sizeof(std::uint64_t)].load(std::memory_order_acquire);
    std::memcpy(found.copied.data() + at, &part, sizeof part);
  }
  if (!is_still(line, of)) return std::nullopt;
  return found;
}

std::optional<found_version> store_core::read(std::size_t line, const newest_version& of,
                                              std::optional<std::uint64_t> version) {
  if (of.version() == 0 || (version && *version > of.number)) return std::nullopt;
  if (of.word.is_in_room()) {
    if (version && *version != of.number) return std::nullopt;
    return read_short(line, of);
  }
  std::optional<snapshot> which = of.block;
  for (std::size_t kept = 1; version && which && which->head().version > *version; ++kept) {
    which = kept < table_.shape().depth ? version_chain::before(memory(), *which) : std::nullopt;
  }
  if (!which || (version && which->head().version != *version)) return std::nullopt;
  found_version found;
  found.version = which->head().version;
  found.type = which->head().type;
  found.is_tensor = which->head().is_tensor != 0;
  found.bytes = static_cast<std::size_t>(which->head().bytes);
  found.block = which->block();
  found.capacity = which->capacity();
  return found;
}

// A short one that was replaced while it was read is looked for again.
std::optional<found_version> store_core::find(const store_key& key, std::optional<std::uint64_t> version) {
  const auto line = find_line(key);
  if (!line) return std::nullopt;
  for (;;) {
    const auto now = look(*line);
    auto found = read(*line, now, version);
    const bool may_be_another = now.word.is_in_room() && (!version || *version == now.number);
    if (found || !may_be_another) return found;
  }
}

bool store_core::wait(const store_key& key, const std::function<bool()>& done, deadline until) {
  if (done()) return true;
  return sleeper_.wait(table_.bell_of(key), done, done, sleeper::of_unknown, until);
}

void store_core::wake_all() const noexcept {
  for (std::size_t each = 0; each < store_table::bells; ++each) ring(table_.bell(each));
}

void store_core::tell(const key_line& line) const noexcept { ring(table_.bell_of(line)); }

}  // namespace muster::detail
