// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/fork_count.hpp>
#include <muster/base/detail/known_descriptor.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/memory/arena_statistics.hpp>
#include <muster/memory/detail/block.hpp>
#include <muster/memory/detail/block_table.hpp>
#include <muster/memory/detail/extent_map.hpp>
#include <muster/memory/detail/mapping.hpp>
#include <muster/memory/detail/participant.hpp>
#include <muster/memory/detail/run_demand.hpp>
#include <muster/memory/detail/share_protocol.hpp>
#include <muster/memory/detail/shared_block.hpp>

namespace muster {

namespace detail {
class slab;
}

class domain;
struct memory_budget;

/// How long an arena keeps unused memory warm (arena::trim_unused).
inline constexpr std::chrono::nanoseconds warm_time = std::chrono::seconds(1);

/// Returns unused warm memory of an arena to the system: on a thread that can wait.
///
/// Thread safety: begin_watch() is called on any thread.
class warm_keeper {
public:
  /// The arena keeps something warm. Called under its lock: returns at once, and calls arena::trim_unused() after
  /// warm_time, and again until that returns nothing.
  virtual void begin_watch() noexcept = 0;

protected:
  ~warm_keeper() = default;
};

/// What one participant has of a domain's arena.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct participant_memory {
  participant_id id = participant_id::none;
  std::uint32_t pid = 0;
  std::size_t held_bytes = 0;  ///< extents in its name: its blocks, small ones' extents, and what it keeps warm
  std::size_t warm_bytes = 0;  ///< of those, freed runs
};

/// One process's allocator over the shared arena.
///
/// It works as follows. The process claims *extents* (64 KiB) of the arena, and divides them by tables in its own
/// private memory: small blocks (up to 16 KiB) are cut from single extents by size class, larger ones are *runs* of
/// whole extents. Nothing that an allocator needs lies in shared memory except the ownership words of extents and
/// blocks, so a process that dies at any instruction leaves nothing to repair, only names to look for: see `recover`.
///
/// *Warm memory*: a process keeps freed runs for its next allocations; it gives the oldest back first. It keeps at most
/// twice the recent swing of the runs that it allocated itself (run_demand), and least_warm_bytes more, within the
/// bounds of its options. So a process that frees what others allocate keeps next to nothing, and all processes
/// together keep about what they use. Memory that is unused for warm_time goes back to the system, if a thread of
/// muster sleeps in the process: the supervisor of a program with pools, a worker, or a thread that waits in a group, a
/// world, a queue or for an event (domain::sleep). Other processes call trim().
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: each process has its own arena object over the same memory. A forked child gives nothing back.
/// Cost: a warm allocation takes one uncontended lock and no system call; a fresh run is checked against the memory
/// that is left (about 0.1 ms) and then, from 1 MiB on, populated.
class arena {
public:
  /// Where its memory should begin: at a multiple of the size of huge pages.
  static constexpr std::size_t alignment = std::size_t{2} << 20U;

  struct options {
    participant_id self = participant_id::host;
    /// What this process keeps warm at most, if its share of `shared_cache_bytes` is not more: those are divided by the
    /// number of participants.
    std::size_t cache_bytes = std::size_t{256} << 20U;
    std::size_t shared_cache_bytes = 0;
    std::span<participant_entry> members = {};                 ///< of the domain; none: nothing can be shared
    muster::huge_pages huge_pages = muster::huge_pages::none;  ///< for runs that are populated here
    bool populates_all = false;  ///< short runs and small blocks' extents too: what the kernel lacks is an error then
    domain* owner = nullptr;     ///< the domain that it is a part of, if it is of one
    const mapping* reserved = nullptr;  ///< what the memory is a part of, where that is opened as it is used
    bool inherited = false;             ///< whether forked children have the memory too
    /// What memory there is, asked before something is claimed and again afterwards; none: available_memory(). Called
    /// under the arena's lock.
    std::function<memory_budget()> budget = {};
  };

  /// What a process keeps warm in any case, if it has freed as much.
  static constexpr std::size_t least_warm_bytes = std::size_t{1} << 20U;

  using statistics = arena_statistics;

  /// Lifetime: borrows the tables and the memory; `memfd` is the file behind `bytes`.
  arena(extent_map extents, block_table blocks, std::span<std::byte> bytes, const unique_fd& memfd, options settings);
  ~arena();
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  /// A block of `bytes` bytes, aligned to 64; its contents are undefined.
  ///
  /// `copies` says how many further copies of the same size its use will make in private memory (a receiver that
  /// decodes it makes one): they are counted when the request is admitted.
  /// Throws errc::out_of_memory with what was needed and what there was; nothing is touched then. What any process of
  /// the domain has allocated and not yet touched is not there for this request, nor what was so in other domains that
  /// this process takes part in; what other programs will touch is not known, and 64 MiB are kept for them.
  [[nodiscard]] block allocate(std::size_t bytes, unsigned copies = 0) MUSTER_EXCLUDES(mutex_);

  /// Takes over a block that another process lent, or that belongs to this one already.
  /// Throws errc::corrupted when `ref` names no such block, or its descriptor says what no allocator makes.
  [[nodiscard]] block adopt(block_ref ref) MUSTER_EXCLUDES(mutex_);

  /// Frees a block that was lent and that nobody has adopted. Requires: nobody will.
  void reclaim(block_ref ref) MUSTER_EXCLUDES(mutex_);

  /// A block of at least one extent that can be given to several processes; otherwise as allocate().
  [[nodiscard]] shared_block allocate_shared(std::size_t bytes) MUSTER_EXCLUDES(mutex_);
  /// A *cell*: a shared block without bytes, for what is counted by the holds on it. It takes a descriptor, and each
  /// hold another one. Throws errc::out_of_memory when all are taken.
  [[nodiscard]] shared_block allocate_cell() MUSTER_EXCLUDES(mutex_);
  /// The name of a block for those who may borrow it: the caller keeps it alive until they are done.
  /// Throws errc::out_of_memory when all descriptors are taken, errc::invalid_argument for a block of another arena.
  [[nodiscard]] std::uint64_t name_of(const shared_block& which) MUSTER_EXCLUDES(mutex_);
  /// A block that somebody else keeps alive meanwhile; costs no change of anything shared.
  /// Throws errc::corrupted when there is no such block.
  [[nodiscard]] shared_block borrow(std::uint64_t name);
  /// The same; what `handle` has allocated is used again where it was borrowed too, and is the only one of its block.
  void borrow_into(shared_block& handle, std::uint64_t name);
  /// Makes handles of a borrowed block good for longer than it is lent. Requires: it is still lent.
  /// Throws errc::out_of_memory when all descriptors are taken, errc::corrupted when the block is not there any more.
  void keep(const shared_block& borrowed) MUSTER_EXCLUDES(mutex_);
  /// Takes that back: handles of a block that was borrowed and then kept are good for as long as it is lent again. So a
  /// handle can be borrowed into over and over, and nothing is allocated.
  void unkeep(const shared_block& kept) noexcept MUSTER_EXCLUDES(mutex_);
  /// Makes a hold on the block for a message, and returns its name, which is to be received once. Until then it goes
  /// with this process. Throws as keep().
  [[nodiscard]] std::uint64_t send(const shared_block& which) MUSTER_EXCLUDES(mutex_);
  /// The same, for a message that lies in `carrier`, so that the hold can be entrusted to that.
  /// Requires: the caller holds `carrier` until the name can be read there.
  [[nodiscard]] std::uint64_t send(const shared_block& which, const shared_block& carrier) MUSTER_EXCLUDES(mutex_);
  /// Takes over a hold that came with a message. Throws errc::corrupted when there is no such hold (any more).
  [[nodiscard]] shared_block receive(std::uint64_t name) MUSTER_EXCLUDES(mutex_);

  /// As send(), for a block that this process lets go of thereby. Cheaper, if this is its only handle.
  [[nodiscard]] std::uint64_t hand_over(shared_block&& last) MUSTER_EXCLUDES(mutex_);
  /// The block of a hold that lies in a message, for as long as the message is kept; else it may be used once keep()
  /// has returned. Throws errc::corrupted when there is no such hold.
  [[nodiscard]] shared_block borrow_sent(std::uint64_t name);
  /// As receive(), for all handles that came of `borrowed`, which was got by borrow_sent() from the same hold. Throws
  /// errc::corrupted, too, when the hold is on another block by now.
  void receive_for(const shared_block& borrowed, std::uint64_t name) MUSTER_EXCLUDES(mutex_);
  /// A hold that `from` has sent becomes everybody's, if it still is in that one's name: the death of `from` does not
  /// drop it. For messages in structures that are recovered on their own. Requires: `from` is the caller, or dead.
  void entrust(std::uint64_t name, participant_id from) noexcept MUSTER_EXCLUDES(mutex_);
  /// The same for a hold that this process has sent in `carrier`: it goes with that block. Unless somebody receives it
  /// before, it is dropped when `carrier` is freed. Requires: the caller holds `carrier`.
  /// Cost: who frees a block that holds were entrusted to looks at all descriptors.
  void entrust(std::uint64_t name, const shared_block& carrier) noexcept MUSTER_EXCLUDES(mutex_);
  /// Whether no other handle of the block exists, in this process or in another.
  [[nodiscard]] bool is_sole(const shared_block& which) const MUSTER_EXCLUDES(mutex_);
  /// How many bytes a block has, as those see it that receive it: its maker has asked for as many, or for fewer.
  [[nodiscard]] std::size_t capacity_of(const shared_block& which) const noexcept;

  /// The bytes of a block that somebody else keeps alive meanwhile.
  /// Throws errc::corrupted when `ref` names no live block.
  [[nodiscard]] std::span<std::byte> view(block_ref ref) const;

  /// Has the pages of the arena's first `bytes` bytes there before they are asked for; whoever allocates gets those
  /// first. From then on this process keeps as much as that warm, also while it is unused, within the bounds of its
  /// options.
  /// Throws errc::invalid_argument for more than the arena has, errc::out_of_memory where that much is not available
  /// (nothing is touched then) or turns out not to be.
  void prefault(std::size_t bytes) MUSTER_EXCLUDES(mutex_);

  /// Frees what a dead participant owned; memory of its that the host has adopted stays until the host releases it.
  /// Requires: called in the host, after the kernel confirmed the death. Idempotent.
  void recover(participant_id dead) noexcept MUSTER_EXCLUDES(mutex_);

  [[nodiscard]] statistics read_statistics() const MUSTER_EXCLUDES(mutex_);
  /// Of every participant. Cost: a look at every extent that was ever claimed.
  [[nodiscard]] std::vector<participant_memory> read_participants() const;

  /// What this process keeps warm and prefault() has not asked for, and how many runs it has allocated and freed.
  struct warmth {
    std::size_t bytes = 0;
    std::uint64_t uses = 0;
  };
  [[nodiscard]] warmth warm() const noexcept MUSTER_EXCLUDES(mutex_);
  /// Gives back what this process keeps warm, except as much as prefault() has asked for.
  void trim() noexcept MUSTER_EXCLUDES(mutex_);
  /// The same, unless runs were allocated or freed since `before`. Returns what is still kept warm: if that is
  /// something, call this again after warm_time.
  warmth trim_unused(const warmth& before) noexcept MUSTER_EXCLUDES(mutex_);
  /// Tells `keeper` when something is kept warm; again after trim_unused() has returned nothing. nullptr: no call.
  /// Lifetime: borrows the keeper until no_longer_watched_by().
  void be_watched_by(warm_keeper* keeper) noexcept MUSTER_EXCLUDES(mutex_);
  /// Calls that keeper no more, if it is the present one.
  void no_longer_watched_by(const warm_keeper& keeper) noexcept MUSTER_EXCLUDES(mutex_);
  /// What all processes have claimed of it and nobody has written yet: it will be taken from what is available now.
  [[nodiscard]] std::size_t untouched_bytes() const;
  [[nodiscard]] std::size_t size_bytes() const noexcept { return bytes_.size(); }
  [[nodiscard]] domain* owner() const noexcept { return options_.owner; }
  /// As whom this process takes part in its domain.
  [[nodiscard]] participant_id self() const noexcept { return options_.self; }
  /// Of the process that has the memory; of every process where forked children inherit it.
  [[nodiscard]] fork_stamp stamp() const noexcept { return options_.inherited ? fork_stamp() : made_in_.stamp(); }

private:
  friend class block;
  friend class shared_block;

  // What this process knows of a block that it bound or adopted. The shared descriptor tells others the same; it is
  // written from here and never believed, because any participant can overwrite it.
  struct record {
    std::uint64_t offset = 0;
    std::uint64_t capacity = 0;
    std::uint32_t generation = 0;
    participant_id home = participant_id::none;
    block_state state = block_state::free;  // free: not ours
    bool is_own = false;  // a run that was allocated here, or a hold on one: of `capacity` bytes that are used

    [[nodiscard]] bool is_small() const noexcept;
    [[nodiscard]] extent_run run() const noexcept {
      return {.first = offset / extent_bytes, .count = extents_for(capacity)};
    }
  };

  void release(block_ref ref) noexcept MUSTER_EXCLUDES(mutex_);
  void lend(block_ref ref) noexcept MUSTER_EXCLUDES(mutex_);
  void release_live(block_ref ref) noexcept MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool resolves(const block_snapshot& found, block_ref ref) const noexcept;
  [[nodiscard]] bool is_within(const block_snapshot& found) const noexcept;
  [[nodiscard]] bool is_run(const block_snapshot& found) const noexcept;
  [[nodiscard]] static bool is_cell(const block_snapshot& found) noexcept;
  static constexpr std::uint64_t offset_of_cells = 1;  // where no block lies: one whose size was overwritten is none
  [[nodiscard]] bool is_small(const block_snapshot& found) const noexcept;
  record& record_of(std::uint32_t descriptor) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] record known_of(std::uint32_t descriptor) const noexcept MUSTER_REQUIRES(mutex_);
  void keep_or_free(std::uint32_t descriptor, const record& taken) noexcept MUSTER_REQUIRES(mutex_);
  void note_orphan(const record& adopted) noexcept MUSTER_REQUIRES(mutex_);
  record& record_of_bound(std::uint32_t descriptor) MUSTER_REQUIRES(mutex_);
  void publish(std::uint32_t descriptor, participant_id owner, block_state state) MUSTER_REQUIRES(mutex_);

  block allocate_small(std::size_t bytes) MUSTER_REQUIRES(mutex_);
  block allocate_run(std::size_t bytes, unsigned copies) MUSTER_REQUIRES(mutex_);
  block make_live(std::uint32_t descriptor, std::size_t bytes) MUSTER_REQUIRES(mutex_);
  block use_run(std::uint32_t descriptor, std::size_t bytes) MUSTER_REQUIRES(mutex_);
  std::uint32_t fresh_run(std::size_t bytes, unsigned copies) MUSTER_REQUIRES(mutex_);
  std::uint32_t bind(std::uint64_t offset, std::uint64_t capacity) MUSTER_REQUIRES(mutex_);
  std::optional<std::uint32_t> bind_free(std::uint64_t offset, std::uint64_t capacity) noexcept MUSTER_REQUIRES(mutex_);
  void reach(std::size_t end) const;
  [[nodiscard]] bool populate(extent_run run) noexcept MUSTER_REQUIRES(mutex_);
  void collapse(std::size_t offset, std::size_t bytes) noexcept MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::size_t place_for(std::size_t extents) const noexcept MUSTER_REQUIRES(mutex_);
  void release_here(std::uint32_t descriptor) MUSTER_REQUIRES(mutex_);
  void end_use(record& which) noexcept MUSTER_REQUIRES(mutex_) {
    if (std::exchange(which.is_own, false)) demand_.give(which.capacity);
  }
  void cache_run(std::uint32_t descriptor) MUSTER_REQUIRES(mutex_);
  void set_cached(std::size_t bytes) noexcept MUSTER_REQUIRES(mutex_);
  void release_orphan(std::uint32_t descriptor) MUSTER_REQUIRES(mutex_);
  void forget(std::uint32_t descriptor) MUSTER_REQUIRES(mutex_);
  void drop_run(std::uint32_t descriptor) noexcept MUSTER_REQUIRES(mutex_);
  void trim_cache(std::size_t keep_bytes) noexcept MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::size_t member_count() const noexcept;
  [[nodiscard]] std::size_t cache_limit() const noexcept MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::size_t idle_limit() const noexcept MUSTER_REQUIRES(mutex_);
  [[nodiscard]] warmth warm_beyond_idle() const noexcept MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool admit(std::size_t bytes, unsigned copies) MUSTER_REQUIRES(mutex_);
  std::size_t require_room(std::size_t bytes, unsigned copies, std::size_t needed) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] memory_budget budget() const;
  void discard(extent_run run) noexcept;
  void recover_block(std::uint32_t descriptor, participant_id dead) MUSTER_REQUIRES(mutex_);
  void recover_extents(participant_id dead) MUSTER_REQUIRES(mutex_);

  // Blocks that several hold: arena_shares.cpp.
  void let_go(detail::holding& left) noexcept MUSTER_EXCLUDES(mutex_);
  void require_own(const detail::holding& which) const;
  void share(detail::holding& alone) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] block_snapshot find_shared(std::uint64_t name) const;
  [[nodiscard]] bool is_shared(std::uint64_t name) const noexcept;
  std::uint32_t bind_hold(std::uint64_t target) MUSTER_REQUIRES(mutex_);
  std::uint32_t add_hold(std::uint64_t target) MUSTER_REQUIRES(mutex_);
  std::uint64_t send_new_hold(const shared_block& which, std::uint64_t carrier) MUSTER_EXCLUDES(mutex_);
  std::uint64_t send_hold(std::uint32_t hold) MUSTER_REQUIRES(mutex_);
  void drop_hold(std::uint32_t hold, std::uint64_t target) noexcept MUSTER_REQUIRES(mutex_);
  void set_hold_state(std::uint32_t hold, block_state state) MUSTER_REQUIRES(mutex_);
  std::uint64_t next_change() noexcept MUSTER_REQUIRES(mutex_);
  std::optional<share_word> change_count(std::uint32_t descriptor, int by, std::uint64_t change) noexcept;
  void take_over(std::uint64_t target) noexcept MUSTER_REQUIRES(mutex_);
  void drop_carried() noexcept MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool take_carried(std::uint32_t hold) MUSTER_REQUIRES(mutex_);
  void free_marked(std::uint32_t descriptor) noexcept MUSTER_REQUIRES(mutex_);
  [[nodiscard]] participant_entry* entry_of(participant_id who) const noexcept;
  void recover_shares(participant_id dead) MUSTER_REQUIRES(mutex_);
  void recover_hold(std::uint32_t hold, participant_id dead) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool has_changed(std::uint32_t descriptor, participant_id dead, std::uint64_t change) noexcept;
  [[nodiscard]] std::uint64_t present_name(std::uint32_t descriptor) const noexcept;
  [[noreturn]] void throw_exhausted(std::size_t bytes, unsigned copies, const std::string& reason) const
      MUSTER_REQUIRES(mutex_);

  const process_mark made_in_;
  const options options_;
  const std::span<std::byte> bytes_;
  const known_descriptor memfd_;  // borrowed
  extent_map extents_;
  block_table blocks_;

  mutable mutex mutex_;
  std::vector<std::unique_ptr<detail::slab>> slabs_ MUSTER_GUARDED_BY(mutex_);  // by size class
  std::vector<record> records_ MUSTER_GUARDED_BY(mutex_);                       // by descriptor
  std::vector<std::uint32_t> cache_ MUSTER_GUARDED_BY(mutex_);                  // freed runs, oldest first
  std::size_t cached_bytes_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t>* warm_told_ MUSTER_GUARDED_BY(mutex_) = nullptr;  // of that, to the other participants
  run_demand demand_ MUSTER_GUARDED_BY(mutex_);
  std::uint64_t run_uses_ MUSTER_GUARDED_BY(mutex_) = 0;  // runs allocated and freed
  std::size_t prefaulted_bytes_ MUSTER_GUARDED_BY(mutex_) = 0;
  warm_keeper* keeper_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  bool is_watched_ MUSTER_GUARDED_BY(mutex_) = false;
  std::size_t slab_extents_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::size_t live_blocks_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::size_t holds_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::size_t huge_bytes_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t change_ MUSTER_GUARDED_BY(mutex_) = 0;        // the latest of a count
  std::size_t admitted_bytes_ MUSTER_GUARDED_BY(mutex_) = 0;  // may be claimed without another look
  std::size_t extent_hint_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::size_t block_hint_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::array<std::uint32_t, 64> freed_ MUSTER_GUARDED_BY(mutex_){};  // descriptors to be tried before the hint
  std::size_t freed_count_ MUSTER_GUARDED_BY(mutex_) = 0;
  // Extents of dead participants in which blocks live on, with the number of those blocks.
  std::unordered_map<std::size_t, std::size_t> orphans_ MUSTER_GUARDED_BY(mutex_);
};

namespace detail {

/// For messages about what lies in the domain of `there` and is wanted in that of `here`: why this process has two, as
/// the last sentence.
///
/// Thread safety: safe.
[[nodiscard]] std::string_view why_apart(const arena& here, const arena& there) noexcept;

}  // namespace detail

}  // namespace muster
