// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/name_table.hpp>

#include <algorithm>
#include <cstring>
#include <thread>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

constexpr auto seq_cst = std::memory_order_seq_cst;

std::uint64_t generation_of(std::uint64_t word) noexcept { return word >> 40U; }

void require_time(const named_thing& what, deadline until) {
  if (!until.expired()) return;
  throw error(errc::timed_out,
              text("the name '", what.name, "' is being made by another process, which has been stopped on the way"));
}

}  // namespace

std::uint64_t name_table::pack(std::uint64_t generation, state now, const rank_identity& owner) noexcept {
  return generation << 40U | static_cast<std::uint64_t>(now) << 32U |
         std::uint64_t{index_of(owner.participant)} << 16U | owner.incarnation;
}

name_table::state name_table::state_of(std::uint64_t word) noexcept { return static_cast<state>(word >> 32U & 0xffU); }

bool name_table::is_alive(std::uint64_t word) const noexcept {
  if (state_of(word) == state::free) return false;
  const auto owner = static_cast<participant_id>(word >> 16U & 0xffffU);
  const auto found = rank_identity::of(domain_, owner);
  return found.pid != 0 && found.incarnation == (word & 0xffffU);
}

std::size_t name_table::used() const noexcept {
  return std::min<std::size_t>(table_.names_used().load(seq_cst), table_.names().size());
}

std::optional<named_thing> name_table::insert(const named_thing& what, deadline until) {
  if (what.name.empty() || what.name.size() > name_line::most_name_bytes) {
    throw error(errc::invalid_argument,
                text("the name '", what.name, "' has ", what.name.size(),
                     " bytes; a name of a service or value has 1 to ", name_line::most_name_bytes));
  }
  for (;;) {
    auto mine = claim();
    if (!mine) {
      throw error(errc::out_of_memory,
                  text("there is no room for the name '", what.name, "': the group has ", table_.names().size(),
                       " names; make its ticket with more (rpc_ticket_options::most_names)"));
    }
    write(mine->index, what);
    set(*mine, state::pending);
    std::optional<named_thing> other;
    verdict found{};
    try {
      found = decide(*mine, what, until, other);
    } catch (...) {
      set(*mine, state::free);
      throw;
    }
    if (found == verdict::won) table_.names()[mine->index].made_at.store(table_.new_stamp(), seq_cst);
    set(*mine, found == verdict::won ? state::ready : state::free);
    if (found != verdict::gives_way) return other;
    require_time(what, until);
    std::this_thread::yield();
  }
}

std::optional<name_table::claimed_line> name_table::claim() {
  const auto self = rank_identity::of(domain_, domain_.self());
  while (const auto index = find_free()) {
    auto& word = table_.names()[*index].word;
    auto found = word.load(seq_cst);
    if (is_alive(found)) continue;
    const auto next = pack(generation_of(found) + 1, state::writing, self);
    if (!word.compare_exchange_strong(found, next, seq_cst)) continue;
    auto used = table_.names_used().load(seq_cst);
    while (used < *index + 1 && !table_.names_used().compare_exchange_weak(used, *index + 1, seq_cst)) continue;
    return claimed_line{.index = *index, .word = next};
  }
  return std::nullopt;
}

// A line that was never used; when there are enough of others, the one whose name was given up longest ago, or whose
// owner is dead.
std::optional<std::size_t> name_table::find_free() const noexcept {
  const auto lines = table_.names();
  const auto first_new = used();
  std::optional<std::size_t> oldest;
  std::size_t free = 0;
  for (std::size_t index = 0; index < first_new; ++index) {
    if (is_alive(lines[index].word.load(seq_cst))) continue;
    ++free;
    if (!oldest || lines[index].gone_at.load(seq_cst) < lines[*oldest].gone_at.load(seq_cst)) oldest = index;
  }
  if (free >= spare_lines) return oldest;
  for (std::size_t index = first_new; index < lines.size(); ++index) {
    if (!is_alive(lines[index].word.load(seq_cst))) return index;
  }
  return oldest;
}

void name_table::write(std::size_t index, const named_thing& what) const noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  auto& line = table_.names()[index];
  line.made_at.store(0, seq_cst);
  line.object.store(what.object, relaxed);
  line.cell.store(what.cell, relaxed);
  line.type.store(what.type, relaxed);
  line.incarnation.store(what.incarnation, relaxed);
  line.member.store(static_cast<std::uint32_t>(what.member), relaxed);
  line.kind.store(static_cast<std::uint32_t>(what.kind), relaxed);
  line.name_bytes.store(static_cast<std::uint32_t>(what.name.size()), relaxed);
  std::memcpy(line.name.data(), what.name.data(), what.name.size());
}

void name_table::set(claimed_line& mine, state now) const noexcept {
  const auto next = (mine.word & ~(std::uint64_t{0xff} << 32U)) | static_cast<std::uint64_t>(now) << 32U;
  auto expected = mine.word;
  if (table_.names()[mine.index].word.compare_exchange_strong(expected, next, seq_cst)) mine.word = next;
}

name_table::verdict name_table::decide(const claimed_line& mine, const named_thing& what, deadline until,
                                       std::optional<named_thing>& other) const {
  for (std::size_t index = 0; index < used(); ++index) {
    if (index == mine.index) continue;
    for (;;) {
      state now{};
      auto found = read(index, state::pending, &now);
      if (!found || found->kind != what.kind || found->name != what.name) break;
      if (now == state::ready) {
        other = std::move(found);
        return verdict::refused;
      }
      if (index < mine.index) return verdict::gives_way;
      require_time(what, until);
      std::this_thread::yield();
    }
  }
  return verdict::won;
}

named_thing name_table::copy_of(const name_line& line) const {
  constexpr auto relaxed = std::memory_order_relaxed;
  return {.kind = static_cast<named_kind>(line.kind.load(relaxed)),
          .name = {line.name.data(), std::min<std::size_t>(line.name_bytes.load(relaxed), line.name.size())},
          .member = line.member.load(relaxed),
          .incarnation = line.incarnation.load(relaxed),
          .object = line.object.load(relaxed),
          .cell = line.cell.load(relaxed),
          .type = line.type.load(relaxed)};
}

// What was read counts if the line has not changed meanwhile.
std::optional<named_thing> name_table::read(std::size_t index, state least, state* now) const {
  const auto& line = table_.names()[index];
  const auto word = line.word.load(seq_cst);
  if (state_of(word) < least || !is_alive(word)) return std::nullopt;
  auto found = copy_of(line);
  std::atomic_thread_fence(std::memory_order_acquire);
  const auto after = line.word.load(seq_cst);
  if (generation_of(after) != generation_of(word) || state_of(after) < least) return std::nullopt;
  if (now != nullptr) *now = state_of(after);
  if (found.member >= table_.shape().members) return std::nullopt;  // it was overwritten
  return found;
}

// One whose maker died on the way never was.
std::optional<name_table::line_view> name_table::view(std::size_t index) const {
  const auto& line = table_.names()[index];
  const auto word = line.word.load(seq_cst);
  const bool was_begun = state_of(word) == state::writing || state_of(word) == state::pending;
  const bool lives = is_alive(word);
  if (was_begun && lives) return std::nullopt;
  line_view found{.generation = generation_of(word),
                  .is_ready = state_of(word) == state::ready,
                  .is_there = state_of(word) == state::ready && lives,
                  .made_at = was_begun ? 0 : line.made_at.load(seq_cst),
                  .gone_at = line.gone_at.load(seq_cst),
                  .what = copy_of(line)};
  std::atomic_thread_fence(std::memory_order_acquire);
  if (line.word.load(seq_cst) != word || found.what.member >= table_.shape().members) return std::nullopt;
  return found;
}

std::optional<named_thing> name_table::find(named_kind kind, std::string_view name) const {
  for (std::size_t index = 0; index < used(); ++index) {
    auto found = read(index, state::ready);
    if (found && found->kind == kind && found->name == name) return found;
  }
  return std::nullopt;
}

bool name_table::erase(const named_thing& what) {
  for (std::size_t index = 0; index < used(); ++index) {
    claimed_line line{.index = index, .word = table_.names()[index].word.load(seq_cst)};
    const auto found = read(index, state::ready);
    if (!found || found->kind != what.kind || found->name != what.name) continue;
    if (found->member != what.member || found->incarnation != what.incarnation) return false;
    const auto before = line.word;
    table_.names()[index].gone_at.store(table_.new_stamp(), seq_cst);
    set(line, state::free);
    return line.word != before;
  }
  return false;
}

std::vector<named_thing> name_table::all() const {
  std::vector<named_thing> found;
  for (std::size_t index = 0; index < used(); ++index) {
    if (auto each = read(index, state::ready)) found.push_back(std::move(*each));
  }
  return found;
}

}  // namespace muster::detail
