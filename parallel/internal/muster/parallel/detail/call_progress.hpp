// SPDX-License-Identifier: BSL-1.0
#pragma once

// How a call of a world stands, as a state machine without I/O: it is told what the ranks answer, and who died, and
// says what the caller is to do. docs/design/parallel.md has the argument, and a model of it is explored in the tests.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <muster/parallel/detail/world_words.hpp>

namespace muster::detail {

/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class call_progress {
public:
  enum class next : std::uint8_t {
    wait,     ///< for the answers of those who are still_awaited()
    commit,   ///< all ranks are done: what they wrote counts
    abort,    ///< tell the ranks; the call will not count
    settled,  ///< it was aborted, and nobody who lives touches anything of it any more
  };

  explicit call_progress(std::size_t ranks) : phases_(ranks, rank_phase::ready), doomed_(ranks) {}

  void begin(std::uint64_t epoch) noexcept;
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::size_t ranks() const noexcept { return phases_.size(); }

  /// What a rank's word says; of other epochs than this one, nothing.
  void answered(std::size_t rank, answer_word what) noexcept;
  /// The rank's process is gone. Whatever it had answered, the call will not count: others may have read its memory
  /// after that was given away.
  void died(std::size_t rank) noexcept;
  /// The rank's process is being killed: it is awaited until it has died, whatever it still answers. Else its death
  /// would be that of a later call.
  void doom(std::size_t rank) noexcept { doomed_[rank] = 1; }
  [[nodiscard]] bool is_doomed(std::size_t rank) const noexcept { return doomed_[rank] != 0; }
  /// It will not count for another reason: too late, or the caller's own share failed.
  void give_up() noexcept { fails_ = true; }

  /// abort is said once.
  [[nodiscard]] next decide() noexcept;

  [[nodiscard]] bool is_dead(std::size_t rank) const noexcept { return phases_[rank] == rank_phase::absent; }
  /// Whether the caller cannot go on before this rank answers or dies.
  [[nodiscard]] bool is_awaited(std::size_t rank) const noexcept {
    return !is_dead(rank) && (is_doomed(rank) || !is_quiet(phases_[rank]));
  }
  /// For whom the call waits: the first of those who have not computed, for whom others may wait too; else of those who
  /// have.
  [[nodiscard]] std::optional<std::size_t> late() const noexcept;
  [[nodiscard]] bool has_failed(std::size_t rank) const noexcept { return phases_[rank] == rank_phase::failed; }

private:
  [[nodiscard]] bool is_anybody_awaited() const noexcept;

  std::uint64_t epoch_ = 0;
  std::vector<rank_phase> phases_;    // of this epoch; absent: dead
  std::vector<std::uint8_t> doomed_;  // bytes: each look at the ranks reads them
  bool fails_ = false;
  bool aborted_ = false;
};

}  // namespace muster::detail
