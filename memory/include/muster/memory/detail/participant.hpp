// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <muster/base/detail/mutex.hpp>

namespace muster {

/// Names a process within its domain. The host, which made the domain, is 1; others get a number when they enrol and
/// lose it when their recovery is complete.
/// `everybody` owns what no death may take away: blocks that several hold.
enum class participant_id : std::uint16_t { none = 0, host = 1, everybody = 0xffff };

[[nodiscard]] constexpr std::size_t index_of(participant_id id) noexcept { return static_cast<std::size_t>(id); }

/// What everybody may know of a participant.
struct alignas(64) participant_entry {
  std::atomic<std::uint64_t> word;    ///< `{incarnation:32, pid:32}`, 0 while the number is free; written by the host
  std::atomic<std::uint64_t> change;  ///< the number of its latest change of a count (share_protocol.hpp); its own
  std::atomic<std::uint64_t> confirmed;  ///< its changes up to this one are known to others; written by them
  std::atomic<std::uint64_t> warm;       ///< bytes that it keeps warm (arena.hpp); its own, for statistics
};
static_assert(sizeof(participant_entry) == 64);

/// The host's record of who takes part. The truth is in its private memory; the shared entries are for others to
/// read.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: one object, in the host.
class participant_table {
public:
  /// Lifetime: borrows `entries`, the shared table of the domain.
  participant_table(std::span<participant_entry> entries, pid_t host);
  /// How many numbers there are.
  [[nodiscard]] std::size_t capacity() const noexcept { return entries_.size(); }

  /// A number for a new process. Throws errc::out_of_memory when all are taken.
  [[nodiscard]] participant_id enrol();
  /// Publishes which process has the number.
  void publish(participant_id id, pid_t pid);
  /// Says that the process that had the number is gone. Before its recovery: whoever read what it had, and finds
  /// afterwards that it is still there, has read the right thing.
  void withdraw(participant_id id) noexcept;
  /// Makes the number free again. Requires: the participant's recovery is complete.
  void retire(participant_id id);

  [[nodiscard]] std::size_t count() const;
  /// Of the process that has the number; nothing when nobody has it, or the one that has it was withdrawn. Unlike the
  /// shared entry, nobody else can have written it.
  [[nodiscard]] std::optional<std::uint32_t> incarnation_of(participant_id id) const;

private:
  struct record {
    bool taken = false;
    bool withdrawn = false;
    std::uint32_t incarnation = 0;
  };

  const std::span<participant_entry> entries_;
  mutable mutex mutex_;
  std::vector<record> records_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
