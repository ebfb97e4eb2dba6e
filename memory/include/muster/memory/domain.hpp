// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include <muster/base/unique_fd.hpp>
#include <muster/memory/arena.hpp>
#include <muster/memory/mapping.hpp>
#include <muster/memory/participant.hpp>
#include <muster/memory/recovery.hpp>

namespace muster {

/// How big a domain is.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct domain_options {
  /// The most that all shared payloads together may take; memory is used only for what is touched.
  /// 0: as much as the machine, the control group and half of RLIMIT_AS allow.
  std::size_t arena_bytes = 0;
  std::size_t max_participants = 1024;
  std::size_t max_blocks = std::size_t{1} << 16U;
};

/// The two files that make up a domain's shared memory, for sending to a process that joins.
struct domain_files {
  unique_fd control;  ///< tables: participants, extents, blocks
  unique_fd arena;    ///< payloads
};

/// The shared-memory world of one program: an arena for payloads, a table of the processes that take part, and the
/// registry of how everything shared is recovered when one of them dies.
///
/// Both files are anonymous and sealed, and every process maps them once: a block costs no descriptor and no system
/// call. Layout: docs/formats/domain.md.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: the process that made it is the *host* and the only one that recovers; others join.
/// Lifetime: the memory lives as long as any process maps it.
class domain {
public:
  /// Makes a domain; the caller is its host.
  /// Throws errc::out_of_memory when it does not fit into the address space, EMFILE when descriptors run out.
  explicit domain(const domain_options& options);

  /// Joins a domain as `self`. Throws errc::corrupted when the files are not those of a domain of this version.
  domain(domain_files files, participant_id self);

  domain(const domain&) = delete;
  domain& operator=(const domain&) = delete;
  ~domain();

  [[nodiscard]] const domain_files& files() const noexcept { return files_; }
  [[nodiscard]] participant_id self() const noexcept { return self_; }
  [[nodiscard]] arena& blocks() noexcept { return *arena_; }

  /// For the host only.
  [[nodiscard]] participant_table& participants() noexcept;
  [[nodiscard]] recovery_registry& recoveries() noexcept { return recoveries_; }

  /// Writes again what a joining process reads first, in case somebody has overwritten it; true if somebody had.
  /// Requires: called in the host.
  bool restore_header() noexcept;

  /// Recovers everything that a dead participant had a part in, then frees its number.
  /// Requires: called in the host, after the kernel confirmed the death.
  void bury(participant_id dead);

private:
  // The sizes in the control file's header, as they were made.
  struct table_sizes {
    std::uint64_t participants = 0;
    std::uint64_t blocks = 0;
    std::uint64_t extents = 0;
  };

  domain_files files_;
  participant_id self_;
  table_sizes sizes_;  // in the host
  mapping control_;
  mapping payload_;
  recovery_registry recoveries_;
  std::unique_ptr<participant_table> participants_;  // in the host
  std::unique_ptr<arena> arena_;
  recovery_registry::registration arena_recovery_;
};

}  // namespace muster
