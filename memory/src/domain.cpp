// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/domain.hpp>

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>

#include <muster/base/error.hpp>
#include <muster/base/memfd.hpp>
#include <muster/base/memory_budget.hpp>
#include <muster/base/system_call.hpp>

namespace muster {

namespace {

constexpr std::uint64_t magic = 0x6d75737465720001;  // "muster", layout version 1

// The first bytes of the control file. Layout: docs/formats/domain.md.
struct header {
  std::uint64_t magic;
  std::uint64_t participants;
  std::uint64_t blocks;
  std::uint64_t extents;
  std::atomic<std::uint64_t> blocks_used;
  std::atomic<std::uint64_t> extents_used;
};

// The sizes as read once.
struct table_counts {
  std::uint64_t participants = 0;
  std::uint64_t blocks = 0;
  std::uint64_t extents = 0;
};

// Where the tables lie in the control file; the same sum in every process.
struct layout {
  explicit layout(const table_counts& sizes)
      : counts(sizes),
        participants(round_up(sizeof(header))),
        blocks(round_up(participants + counts.participants * sizeof(participant_entry))),
        extents(round_up(blocks + counts.blocks * sizeof(block_descriptor))),
        total(round_up(extents + counts.extents * sizeof(extent_map::word))) {}

  static std::size_t round_up(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

  template <class T>
  static std::span<T> table(const mapping& where, std::size_t offset, std::size_t count) {
    return {reinterpret_cast<T*>(where.bytes().data() + offset), count};
  }

  table_counts counts;
  std::size_t participants;
  std::size_t blocks;
  std::size_t extents;
  std::size_t total;
};

std::size_t default_arena_bytes() {
  auto bytes = available_memory().limit_bytes;
  rlimit address_space{};
  system_call("getrlimit", ::getrlimit, RLIMIT_AS, &address_space);
  if (address_space.rlim_cur != RLIM_INFINITY) bytes = std::min<std::uint64_t>(bytes, address_space.rlim_cur / 2);
  return bytes;
}

table_counts sizes_of(const domain_options& options) {
  constexpr std::size_t fewest_extents = 16;
  const auto bytes = options.arena_bytes != 0 ? options.arena_bytes : default_arena_bytes();
  if (options.max_participants < 2 || options.max_participants > UINT16_MAX || options.max_blocks == 0 ||
      options.max_blocks > UINT32_MAX || bytes > (std::size_t{1} << 46U)) {
    throw error(errc::invalid_argument,
                text("domain_options: arena_bytes ", bytes, " (at most 64 TiB), max_participants ",
                     options.max_participants, " (2 to 65535), max_blocks ", options.max_blocks, " (1 to 2^32-1)"));
  }
  return {.participants = options.max_participants,
          .blocks = options.max_blocks,
          .extents = std::max(extents_for(bytes), fewest_extents)};
}

table_counts read_sizes(const unique_fd& control) {
  struct stat file{};
  system_call("fstat", ::fstat, control.get(), &file);
  std::array<std::uint64_t, 4> words{};
  const auto got = system_call("pread", ::pread, control.get(), words.data(), sizeof words, 0);
  const table_counts found{.participants = words[1], .blocks = words[2], .extents = words[3]};
  const bool whole = got == static_cast<ssize_t>(sizeof words) && words[0] == magic;
  if (!whole || layout(found).total != static_cast<std::size_t>(file.st_size)) {
    throw error(errc::corrupted, text("file ", control.get(),
                                      " is not the control file of a muster domain of this "
                                      "version: was the host built from another version?"));
  }
  return found;
}

// Warm runs that one process keeps are missing for the others, so nobody keeps much of a small arena.
std::size_t cache_of(participant_id self, std::size_t arena_bytes) {
  const auto host = self == participant_id::host;
  const auto most = std::size_t{host ? 256U : 32U} << 20U;
  return std::min(most, arena_bytes / (host ? 8 : 64));
}

std::unique_ptr<arena> make_arena(const layout& where, const mapping& control, const mapping& payload,
                                  const unique_fd& file, participant_id self) {
  auto& marks = *reinterpret_cast<header*>(control.bytes().data());
  return std::make_unique<arena>(
      extent_map(layout::table<extent_map::word>(control, where.extents, where.counts.extents),
                 table_mark(marks.extents_used)),
      block_table(layout::table<block_descriptor>(control, where.blocks, where.counts.blocks),
                  table_mark(marks.blocks_used)),
      payload.bytes(), file, arena::options{.self = self, .cache_bytes = cache_of(self, payload.bytes().size())});
}

}  // namespace

domain::domain(const domain_options& options) : self_(participant_id::host) {
  const layout where(sizes_of(options));
  files_.control = make_memfd("muster-control", where.total);
  files_.arena = make_memfd("muster-arena", where.counts.extents * extent_bytes);
  control_ = mapping(files_.control, where.total, mapping::inherit::yes);
  payload_ = mapping(files_.arena, where.counts.extents * extent_bytes, mapping::inherit::yes);
  sizes_ = {.participants = where.counts.participants, .blocks = where.counts.blocks, .extents = where.counts.extents};
  restore_header();
  participants_ = std::make_unique<participant_table>(
      layout::table<participant_entry>(control_, where.participants, where.counts.participants), ::getpid());
  arena_ = make_arena(where, control_, payload_, files_.arena, self_);
  arena_recovery_ = recoveries_.add(recovery_stage::blocks, [this](participant_id dead) { arena_->recover(dead); });
}

domain::domain(domain_files files, participant_id self) : files_(std::move(files)), self_(self) {
  const layout where(read_sizes(files_.control));
  control_ = mapping(files_.control, where.total, mapping::inherit::no);
  payload_ = mapping(files_.arena, where.counts.extents * extent_bytes, mapping::inherit::no);
  arena_ = make_arena(where, control_, payload_, files_.arena, self_);
}

domain::~domain() = default;

bool domain::restore_header() noexcept {
  auto* const words = reinterpret_cast<std::uint64_t*>(control_.bytes().data());
  const std::array right = {magic, sizes_.participants, sizes_.blocks, sizes_.extents};
  bool was_wrong = false;
  for (std::size_t index = 0; index < right.size(); ++index) {
    was_wrong |= std::atomic_ref(words[index]).exchange(right[index], std::memory_order_relaxed) != right[index];
  }
  return was_wrong;
}

participant_table& domain::participants() noexcept { return *participants_; }

void domain::bury(participant_id dead) {
  recoveries_.run(dead);
  participants_->retire(dead);
}

}  // namespace muster
