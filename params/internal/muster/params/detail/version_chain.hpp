// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <muster/memory/detail/arena.hpp>
#include <muster/params/detail/snapshot.hpp>

namespace muster::detail {

/// The versions of a key that lie in blocks, each of which has the hold on the one before. A process that takes a hold
/// out of the chain has it (arena::receive), so that each is let go of once; a name whose hold is gone is the end of a
/// chain. What is too old is let go of from the oldest on: a process that dies meanwhile leaves a chain that is too
/// long, which the next push of the key shortens.
///
/// Thread safety: functions without state; safe.
/// Process safety: any process may die at any step.
namespace version_chain {

/// The block that a hold is on, kept; nothing where the hold is gone. Throws errc::out_of_memory.
[[nodiscard]] std::optional<shared_block> keep_block_of(arena& memory, std::uint64_t hold);
/// The version that a hold is on, kept; nothing where the hold is gone. Throws errc::out_of_memory.
[[nodiscard]] std::optional<snapshot> open(arena& memory, std::uint64_t hold);
/// The one before; nothing where it is not kept any more.
[[nodiscard]] std::optional<snapshot> before(arena& memory, const snapshot& which);
/// Lets all go that are older than the `depth` newest, of which `newest` is the first. `second`: the one before that,
/// if that is known.
void shorten(arena& memory, const snapshot& newest, std::size_t depth, std::optional<snapshot> second = {}) noexcept;
/// Lets a hold go, and nothing behind it. Nothing where another has it, or had. False where there is no memory for
/// that.
bool let_go(arena& memory, std::uint64_t hold) noexcept;
/// Lets a hold go, and all versions before it.
void drop(arena& memory, std::uint64_t hold) noexcept;
/// Whether a hold is in the chain that begins with another.
[[nodiscard]] bool contains(arena& memory, std::uint64_t first, std::uint64_t wanted);

}  // namespace version_chain
}  // namespace muster::detail
