// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <muster/memory/detail/arena.hpp>
#include <muster/params/detail/store_table.hpp>

namespace muster::detail {

/// New versions of several keys that become the newest at one moment, or none of them: a block that the words of all
/// these keys name meanwhile (version_word::mark). A process that meets such a word reads here what it stands for: what
/// was before, or, once the record says so, what is new.
///
///     open -> made     its process, by compare-and-swap, when all words name it: from here on all are new
///     open -> refused  a process that wants to change one of the keys meanwhile, by compare-and-swap; or its own
///
/// Then any process puts into a word that names it what that stands for, by compare-and-swap. So no process waits for
/// another: one that is stopped in the middle finds itself refused.
///
/// Thread safety: as a shared_block. Process safety: any process may die at any step.
class commit_record {
public:
  enum class state : std::uint64_t { open, made, refused };
  struct entry {
    std::uint64_t line;
    std::uint64_t before;  ///< a version_word, as the next
    std::uint64_t after;
  };

  /// A new one, open, of so many keys. Throws errc::out_of_memory.
  commit_record(arena& memory, std::size_t keys);
  /// That of a mark, kept; nothing where it is gone: then the word that named it is another. Throws
  /// errc::out_of_memory.
  [[nodiscard]] static std::optional<commit_record> open(arena& memory, version_word mark);

  [[nodiscard]] const shared_block& block() const noexcept { return block_; }
  /// Requires: sorted by line, before others have it.
  [[nodiscard]] std::span<entry> entries() const noexcept;
  [[nodiscard]] state now() const noexcept;
  /// False where it is decided otherwise.
  ///@{
  bool make() const noexcept { return decide(state::made); }
  bool refuse() const noexcept { return decide(state::refused); }
  ///@}
  /// What it says of a line; nullptr where it says nothing.
  [[nodiscard]] const entry* find(std::size_t line) const noexcept;
  /// What a line's word stands for that names it; nothing where it has none of that line, since it was overwritten.
  [[nodiscard]] std::optional<version_word> stands_for(std::size_t line) const noexcept;
  /// Puts that into the line's word, if it names this still. Requires: it is decided.
  void settle(const store_table& table, std::size_t line, version_word mark) const noexcept;

private:
  struct head;

  explicit commit_record(shared_block block) noexcept : block_(std::move(block)) {}
  [[nodiscard]] head& first() const noexcept;
  [[nodiscard]] bool is_possible() const noexcept;
  bool decide(state how) const noexcept;

  shared_block block_;
};

}  // namespace muster::detail
