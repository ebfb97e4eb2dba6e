// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/version_chain.hpp>

#include <exception>
#include <utility>
#include <vector>

#include <muster/base/error.hpp>

namespace muster::detail {

namespace {

/// A hold in a chain, and the word that names it, where that lies in a version.
struct link {
  snapshot owner;  // of the word; none: it is in a line
  std::uint64_t hold = 0;
};

// False, and it stays, where there is no memory.
bool let_go_of(arena& memory, const link& which) noexcept {
  if (!version_chain::let_go(memory, which.hold)) return false;
  if (which.owner) which.owner.head().previous.store(0, std::memory_order_release);
  return true;
}

// All that come behind it, the next first.
std::vector<link> links_behind(arena& memory, snapshot from) {
  std::vector<link> found;
  while (const auto hold = from.head().previous.load(std::memory_order_acquire)) {
    found.push_back({.owner = from, .hold = hold});
    auto next = version_chain::open(memory, hold);
    if (!next) break;
    from = *std::move(next);
  }
  return found;
}

void let_all_go(arena& memory, std::vector<link>& all) noexcept {
  while (!all.empty() && let_go_of(memory, all.back())) all.pop_back();
}

void drop_from_the_newest(arena& memory, std::uint64_t hold) noexcept {
  try {
    while (hold != 0) {
      const snapshot taken(memory.receive(hold));
      hold = taken.is_possible() ? taken.head().previous.load(std::memory_order_acquire) : 0;
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the end of the chain
  }
}

}  // namespace

bool version_chain::let_go(arena& memory, std::uint64_t hold) noexcept {
  if (hold == 0) return true;
  try {
    memory.receive(hold).reset();
  } catch (const error& failure) {
    return failure.code() != errc::out_of_memory;  // else another has it, or had
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

std::optional<shared_block> version_chain::keep_block_of(arena& memory, std::uint64_t hold) {
  try {
    auto block = memory.borrow_sent(hold);
    memory.keep(block);
    return block;
  } catch (const error& failure) {
    if (failure.code() == errc::out_of_memory) throw;
  }
  return std::nullopt;
}

std::optional<snapshot> version_chain::open(arena& memory, std::uint64_t hold) {
  auto block = keep_block_of(memory, hold);
  if (!block) return std::nullopt;
  snapshot found(*std::move(block));
  return found.is_possible() ? std::optional(found) : std::nullopt;
}

std::optional<snapshot> version_chain::before(arena& memory, const snapshot& which) {
  const auto hold = which.head().previous.load(std::memory_order_acquire);
  return hold != 0 ? open(memory, hold) : std::nullopt;
}

// Mostly the second one is the only one that goes, and none is behind it.
void version_chain::shorten(arena& memory, const snapshot& newest, std::size_t depth,
                            std::optional<snapshot> second) noexcept {
  try {
    auto last = newest;
    for (std::size_t kept = 1; kept < depth; ++kept) {
      auto next = kept == 1 && second ? std::move(second) : before(memory, last);
      if (!next) return;
      last = *std::move(next);
    }
    if (depth == 1 && second && second->head().previous.load(std::memory_order_acquire) == 0) {
      static_cast<void>(
          let_go_of(memory, {.owner = last, .hold = last.head().previous.load(std::memory_order_acquire)}));
      return;
    }
    auto behind = links_behind(memory, std::move(last));
    let_all_go(memory, behind);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory: the next push does it
  }
}

// From the oldest on; without memory for that from the newest on, for which none is needed.
void version_chain::drop(arena& memory, std::uint64_t hold) noexcept {
  try {
    if (auto first = open(memory, hold)) {
      auto behind = links_behind(memory, *std::move(first));
      let_all_go(memory, behind);
    }
    static_cast<void>(let_go(memory, hold));
  } catch (const std::exception&) {
    drop_from_the_newest(memory, hold);
  }
}

bool version_chain::contains(arena& memory, std::uint64_t first, std::uint64_t wanted) {
  for (auto hold = first; hold != 0;) {
    if (hold == wanted) return true;
    const auto found = open(memory, hold);
    if (!found) return false;
    hold = found->head().previous.load(std::memory_order_acquire);
  }
  return false;
}

}  // namespace muster::detail
