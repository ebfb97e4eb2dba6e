// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <muster/base/mutex.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/memory/block.hpp>
#include <muster/memory/block_table.hpp>
#include <muster/memory/extent_map.hpp>

namespace muster {

namespace detail {
class slab;
}

/// One process's allocator over the shared arena.
///
/// It works as follows. The process claims *extents* (64 KiB) of the arena, and divides them by tables in its own
/// private memory: small blocks (up to 16 KiB) are cut from single extents by size class, larger ones are *runs* of
/// whole extents. Nothing that an allocator needs lies in shared memory except the ownership words of extents and
/// blocks, so a process that dies at any instruction leaves nothing to repair, only names to look for: see `recover`.
/// Freed runs are cached up to a watermark, above it their pages go back to the system.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: each process has its own arena object over the same memory.
/// Cost: a warm allocation takes one uncontended lock and no system call; a fresh run is checked against the memory
/// that is left (about 0.1 ms) and then populated.
class arena {
public:
  struct options {
    participant_id self = participant_id::host;
    std::size_t cache_bytes = std::size_t{256} << 20U;  ///< freed runs kept warm
  };

  struct statistics {
    std::size_t live_blocks = 0;   ///< allocated or adopted here, and not yet released or lent
    std::size_t held_bytes = 0;    ///< extents claimed by all processes
    std::size_t cached_bytes = 0;  ///< of those, freed runs kept warm by this one
  };

  /// Lifetime: borrows the tables and the memory; `memfd` is the file behind `bytes`.
  arena(extent_map extents, block_table blocks, std::span<std::byte> bytes, const unique_fd& memfd, options settings);
  ~arena();
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  /// A block of `bytes` bytes, aligned to 64; its contents are undefined.
  ///
  /// `copies` says how many further copies of the same size its use will make in private memory (a receiver that
  /// decodes it makes one): they are counted when the request is admitted.
  /// Throws errc::out_of_memory with what was needed and what there was; nothing is touched then.
  [[nodiscard]] block allocate(std::size_t bytes, unsigned copies = 0) MUSTER_EXCLUDES(mutex_);

  /// Takes over a block that another process lent, or that belongs to this one already.
  /// Throws errc::corrupted when `ref` names no such block.
  [[nodiscard]] block adopt(block_ref ref) MUSTER_EXCLUDES(mutex_);

  /// Frees a block that was lent and that nobody has adopted. Requires: nobody will.
  void reclaim(block_ref ref) MUSTER_EXCLUDES(mutex_);

  /// The bytes of a block that somebody else keeps alive meanwhile.
  /// Throws errc::corrupted when `ref` names no live block.
  [[nodiscard]] std::span<std::byte> view(block_ref ref) const;

  /// Frees what a dead participant owned; memory of its that the host has adopted stays until the host releases it.
  /// Requires: called in the host, after the kernel confirmed the death. Idempotent.
  void recover(participant_id dead) noexcept MUSTER_EXCLUDES(mutex_);

  [[nodiscard]] statistics read_statistics() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t size_bytes() const noexcept { return bytes_.size(); }

private:
  friend class block;

  // What this process knows of a block that it bound or adopted. The shared descriptor tells others the same; it is
  // written from here and never believed, because any participant can overwrite it.
  struct record {
    std::uint64_t offset = 0;
    std::uint64_t capacity = 0;
    std::uint32_t generation = 0;
    participant_id home = participant_id::none;
    block_state state = block_state::free;  // free: not ours

    [[nodiscard]] bool is_small() const noexcept;
    [[nodiscard]] extent_run run() const noexcept {
      return {.first = offset / extent_bytes, .count = extents_for(capacity)};
    }
  };

  void release(block_ref ref) noexcept MUSTER_EXCLUDES(mutex_);
  void lend(block_ref ref) noexcept MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool resolves(const block_snapshot& found, block_ref ref) const noexcept;
  record& record_of(std::uint32_t descriptor) MUSTER_REQUIRES(mutex_);
  void publish(std::uint32_t descriptor, participant_id owner, block_state state) MUSTER_REQUIRES(mutex_);

  block allocate_small(std::size_t bytes) MUSTER_REQUIRES(mutex_);
  block allocate_run(std::size_t bytes, unsigned copies) MUSTER_REQUIRES(mutex_);
  block make_live(std::uint32_t descriptor, std::size_t bytes) MUSTER_REQUIRES(mutex_);
  std::uint32_t fresh_run(std::size_t bytes, unsigned copies) MUSTER_REQUIRES(mutex_);
  std::uint32_t bind(std::uint64_t offset, std::uint64_t capacity) MUSTER_REQUIRES(mutex_);
  void populate(extent_run run) noexcept;
  void release_here(std::uint32_t descriptor) MUSTER_REQUIRES(mutex_);
  void release_orphan(std::uint32_t descriptor) MUSTER_REQUIRES(mutex_);
  void forget(std::uint32_t descriptor) MUSTER_REQUIRES(mutex_);
  void drop_run(std::uint32_t descriptor) noexcept MUSTER_REQUIRES(mutex_);
  void trim_cache(std::size_t keep_bytes) noexcept MUSTER_REQUIRES(mutex_);
  void admit(std::size_t bytes, unsigned copies) MUSTER_REQUIRES(mutex_);
  void discard(extent_run run) noexcept;
  void recover_block(std::uint32_t descriptor, participant_id dead) MUSTER_REQUIRES(mutex_);
  void recover_extents(participant_id dead) MUSTER_REQUIRES(mutex_);
  [[noreturn]] void throw_exhausted(std::size_t bytes, unsigned copies, const std::string& reason) const
      MUSTER_REQUIRES(mutex_);

  const options options_;
  const std::span<std::byte> bytes_;
  const int memfd_;  // borrowed
  extent_map extents_;
  block_table blocks_;

  mutable mutex mutex_;
  std::vector<std::unique_ptr<detail::slab>> slabs_ MUSTER_GUARDED_BY(mutex_);  // by size class
  std::vector<record> records_ MUSTER_GUARDED_BY(mutex_);                       // by descriptor
  std::vector<std::uint32_t> cache_ MUSTER_GUARDED_BY(mutex_);                  // freed runs, oldest first
  std::size_t cached_bytes_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::size_t live_blocks_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::size_t admitted_bytes_ MUSTER_GUARDED_BY(mutex_) = 0;  // may be claimed without another look
  std::size_t extent_hint_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::size_t block_hint_ MUSTER_GUARDED_BY(mutex_) = 0;
  // Extents of dead participants in which blocks live on, with the number of those blocks.
  std::unordered_map<std::size_t, std::size_t> orphans_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
