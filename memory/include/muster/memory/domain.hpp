// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <muster/base/clock.hpp>
#include <muster/base/detail/fork_count.hpp>
#include <muster/base/detail/futex.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/memory/detail/arena.hpp>
#include <muster/memory/detail/descriptor_exchange.hpp>
#include <muster/memory/detail/descriptor_store.hpp>
#include <muster/memory/detail/keepsake.hpp>
#include <muster/memory/detail/mapping.hpp>
#include <muster/memory/detail/participant.hpp>
#include <muster/memory/detail/recovery.hpp>

namespace muster {

namespace detail {
class neighbour;
}

/// How big a domain is.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct domain_options {
  /// The most that all shared payloads together may take; memory is used only for what is touched.
  /// 0: as much as the machine, the control group, RLIMIT_FSIZE and half of RLIMIT_AS allow.
  std::size_t arena_bytes = 0;
  /// How much of that memory is to be there from the start, instead of when it is first touched: that takes 2 to 6 µs
  /// per 4 KiB on some machines. 0: none.
  std::size_t prefault_bytes = 0;
  /// Whether big blocks of the host are made of huge pages.
  muster::huge_pages huge_pages = muster::huge_pages::none;
  /// How many processes may take part at once: this one, and each worker of all its pools. They take 64 bytes each.
  std::size_t max_participants = 4096;
  /// How many blocks there may be at once, and holds on shared ones: each payload in flight that is too long for its
  /// task's own line is one. They take 64 bytes each, once used. 0: one for each KiB of the arena, from 65 536 to
  /// 1 048 576.
  std::size_t max_blocks = 0;
  /// Whether the tables have their memory from the start, and the host's payloads when they are claimed, so that what
  /// the kernel lacks is an error and not SIGBUS. nullopt: where it never overcommits (vm.overcommit_memory = 2), where
  /// those of all others have it too.
  std::optional<bool> populates = std::nullopt;
  /// Whether children that this process forks keep the memory: mapped, at the same addresses, and open, for as long as
  /// they live, even when this process is dead. They may read and write it, and take no part in the domain. false: they
  /// have nothing of it.
  bool inherited = false;
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
/// Process safety: the process that made it is the *host* and the only one that recovers; others join. A forked child
/// of any of them has neither the mappings nor the files, unless domain_options::inherited says so: reading the memory
/// there ends the child by SIGSEGV. A child that raw clone has made, without the C library, has no mapping either, but
/// keeps the files open.
/// Lifetime: the memory lives as long as any process maps it or has its files open.
class domain : public std::enable_shared_from_this<domain> {
public:
  /// The one that this process takes part in: of a program it is made when first asked for, and goes with its last
  /// user; a worker's is its program's. Throws errc::invalid_argument when it exists already with a smaller arena than
  /// `options` asks for, or is not inherited by forked children and they ask for that.
  [[nodiscard]] static std::shared_ptr<domain> of_program(const domain_options& options = {});
  /// The one that this process is the host of: the same, but in a worker, where it serves the worker's own pools.
  [[nodiscard]] static std::shared_ptr<domain> hosted_by_program(const domain_options& options = {});
  /// Says which domain a worker, or a program that has joined another's, takes part in.
  static void enter(const std::shared_ptr<domain>& joined);
  /// That one; nullptr when there is none (any more).
  [[nodiscard]] static std::shared_ptr<domain> entered();

  /// The one that a block is of: whoever keeps the block for long keeps this too. nullptr for an empty handle, and
  /// where the domain is not owned by shared pointers: then it is its owner who keeps it.
  [[nodiscard]] static std::shared_ptr<domain> of(const shared_block& which) noexcept;

  /// Makes a domain; the caller is its host.
  /// Throws errc::out_of_memory when it does not fit into the address space or what is to be prefaulted is not
  /// available, EMFILE when descriptors run out, errc::invalid_argument for options out of their range.
  explicit domain(const domain_options& options);

  /// Joins a domain as `self`. Throws errc::corrupted when the files are not those of a domain of this version.
  domain(domain_files files, participant_id self);

  domain(const domain&) = delete;
  domain& operator=(const domain&) = delete;
  ~domain();

  /// Returns the two files that the memory consists of, to be sent to a process that joins.
  [[nodiscard]] const domain_files& files() const noexcept { return files_; }
  /// Returns the number of this process among the participants; participant_id::host in the host.
  [[nodiscard]] participant_id self() const noexcept { return self_; }
  /// Whether this process has the memory: a forked child has not, unless domain_options::inherited says so.
  [[nodiscard]] bool is_mapped() const noexcept { return inherited_ || made_in_.is_here(); }
  /// Throws errc::forked where it has not. `what` it is that lies there: "an event".
  void require_mapped(const char* what) const {
    if (!inherited_) made_in_.require_here(what);
  }
  /// Throws errc::forked in a forked child, which is no participant, though it may have the memory.
  void require_participant(const char* what) const { made_in_.require_here(what); }
  /// Returns the arena that all payloads are allocated in.
  [[nodiscard]] arena& blocks() noexcept { return *arena_; }
  /// This process's way to the descriptors that participants hand to one another.
  /// Throws errc::invalid_argument where there is none: this process has no connection to the host, as workers and
  /// programs that have joined (join.hpp) have; errc::forked in a forked child of the host.
  [[nodiscard]] descriptor_exchange& descriptors();
  /// Says what that is. Requires: called once, not in the host, before descriptors().
  void exchange_by(std::unique_ptr<descriptor_exchange> connection) noexcept { exchange_ = std::move(connection); }

  /// A pidfd of the host's process, in a program that has joined: it may outlive its host, after which deaths are not
  /// recovered any more. -1 elsewhere: the host itself goes on, and workers die with it.
  [[nodiscard]] int host_process() const noexcept { return host_process_; }
  /// Says what that is. Requires: called once, before others use the domain. Lifetime: borrows it.
  void outlives(int host_process) noexcept { host_process_ = host_process; }

  /// For the host only.
  [[nodiscard]] participant_table& participants() noexcept;
  /// Returns what is called to recover shared structures when a participant has died.
  [[nodiscard]] recovery_registry& recoveries() noexcept { return recoveries_; }
  /// What is kept for others; tidied after each death.
  [[nodiscard]] keepsake_list& keepsakes() noexcept { return keepsakes_; }
  /// Where the descriptors are.
  [[nodiscard]] descriptor_store& deposits() noexcept { return *deposits_; }

  /// Writes again what a joining process reads first, in case somebody has overwritten it; true if somebody had.
  /// Requires: called in the host.
  bool restore_header() noexcept;

  /// How many participants have died and been recovered; a futex word, woken each time. Whoever sleeps on a word that
  /// another participant wakes sleeps on this one too (futex_wait_any): a waker may die between its news and its wake.
  [[nodiscard]] const std::atomic<std::uint32_t>& deaths() const noexcept;

  /// As futex_wait_any, between processes. After warm_time, if this process has used no memory of the arena meanwhile,
  /// what that keeps warm is given back, and the sleep goes on.
  /// Cost: while memory is kept warm, a wake-up in warm_time; as long as other threads go on using it, one in each.
  bool sleep(std::span<const futex_expectation> words, deadline until = {}) const;

  /// `{incarnation:32, pid:32}` of the process that has the number now; 0 while nobody has. Another value than before
  /// means that the one before is dead. That is so before what it had is given to others, and before deaths() says that
  /// somebody died.
  [[nodiscard]] std::uint64_t occupant(participant_id id) const noexcept;

  /// Recovers everything that a dead participant had a part in, then frees its number.
  /// Requires: called in the host, after the kernel confirmed the death.
  void bury(participant_id dead);

private:
  void keep_from_children();

  // The sizes in the control file's header, as they were made.
  struct table_sizes {
    std::uint64_t participants = 0;
    std::uint64_t blocks = 0;
    std::uint64_t extents = 0;
  };

  const process_mark made_in_;  // in a forked child it is of no use
  domain_files files_;
  const bool inherited_;
  std::optional<kept_from_children> control_kept_;
  std::optional<kept_from_children> arena_kept_;
  participant_id self_;
  int host_process_ = -1;
  table_sizes sizes_;  // in the host
  mapping control_;
  mapping payload_;
  recovery_registry recoveries_;
  std::span<participant_entry> members_;
  std::unique_ptr<participant_table> participants_;  // in the host
  std::unique_ptr<arena> arena_;
  std::unique_ptr<detail::neighbour> neighbour_;  // of other domains of this process
  recovery_registry::registration arena_recovery_;
  std::unique_ptr<descriptor_store> deposits_;  // in the host
  recovery_registry::registration dead_counts_;
  std::unique_ptr<descriptor_exchange> exchange_;  // elsewhere
  keepsake_list keepsakes_;                        // in the host; destroyed before what they are in
};

}  // namespace muster
