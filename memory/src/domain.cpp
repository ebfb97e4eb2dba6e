// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/domain.hpp>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>

#include <muster/base/detail/futex.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/error.hpp>
#include <muster/base/memfd.hpp>
#include <muster/base/memory_budget.hpp>
#include <muster/base/of_process.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>

#include "neighbours.hpp"

namespace muster {

namespace {

constexpr std::size_t most_arena_bytes = std::size_t{1} << 46U;

constexpr auto opened_as_used = mapping::opened::nothing;

constexpr std::uint64_t magic = 0x6d75737465720006;  // "muster", layout version 6

// The first bytes of the control file. Layout: docs/formats/domain.md.
struct header {
  std::uint64_t magic;
  std::uint64_t participants;
  std::uint64_t blocks;
  std::uint64_t extents;
  std::atomic<std::uint64_t> blocks_used;
  std::atomic<std::uint64_t> extents_used;
  std::atomic<std::uint32_t> deaths;
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
  // RLIM_INFINITY is the largest number; half of it is no limit either.
  const auto limit_of = [](auto which) {
    rlimit found{};
    system_call("getrlimit", ::getrlimit, which, &found);
    return std::uint64_t{found.rlim_cur};
  };
  return std::min({available_memory().limit_bytes, limit_of(RLIMIT_AS) / 2, limit_of(RLIMIT_FSIZE),
                   std::uint64_t{most_arena_bytes}}) /
         extent_bytes * extent_bytes;
}

std::size_t default_block_count(std::size_t arena_bytes) {
  return std::clamp(arena_bytes >> 10U, std::size_t{1} << 16U, std::size_t{1} << 20U);
}

table_counts sizes_of(const domain_options& options) {
  constexpr std::size_t fewest_extents = 16;
  const auto bytes = options.arena_bytes != 0 ? options.arena_bytes : default_arena_bytes();
  if (options.max_participants < 2 || options.max_participants > UINT16_MAX || options.max_blocks > UINT32_MAX ||
      bytes > most_arena_bytes) {
    throw error(errc::invalid_argument,
                text("domain_options: arena_bytes ", bytes, " (at most 64 TiB), max_participants ",
                     options.max_participants, " (2 to 65535), max_blocks ", options.max_blocks, " (at most 2^32-1)"));
  }
  return {.participants = options.max_participants,
          .blocks = options.max_blocks != 0 ? options.max_blocks : default_block_count(bytes),
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
                                  const unique_fd& file, participant_id self, domain& owner, huge_pages pages,
                                  bool populates, bool inherited) {
  auto& marks = *reinterpret_cast<header*>(control.bytes().data());
  return std::make_unique<arena>(
      extent_map(layout::table<extent_map::word>(control, where.extents, where.counts.extents),
                 table_mark(marks.extents_used)),
      block_table(layout::table<block_descriptor>(control, where.blocks, where.counts.blocks),
                  table_mark(marks.blocks_used)),
      payload.bytes(), file,
      arena::options{
          .self = self,
          .cache_bytes = cache_of(self, payload.bytes().size()),
          .shared_cache_bytes = payload.bytes().size() / 8,
          .members = layout::table<participant_entry>(control, where.participants, where.counts.participants),
          .huge_pages = pages,
          .populates_all = populates,
          .owner = &owner,
          .reserved = &payload,
          .inherited = inherited,
          .budget = [&owner] { return detail::budget_beside_neighbours(owner.blocks()); }});
}

// The one process-wide object that the design calls for: pools of one program share their tensors through it. It does
// not own: the domain lives as long as something uses it. The lock is held while a domain is made, which takes long.
struct program_domain {
  mutex guard;
  std::weak_ptr<domain> joined MUSTER_GUARDED_BY(guard);
  std::weak_ptr<domain> hosted MUSTER_GUARDED_BY(guard);
};

constinit of_process<program_domain> program_domains;

}  // namespace

std::shared_ptr<domain> domain::of_program(const domain_options& options) {
  auto joined = entered();
  return joined ? joined : hosted_by_program(options);
}

std::shared_ptr<domain> domain::entered() {
  auto& program = program_domains.get();
  const scoped_lock lock(program.guard);
  auto joined = program.joined.lock();
  return joined && joined->made_in_.is_here() ? joined : nullptr;
}

std::shared_ptr<domain> domain::hosted_by_program(const domain_options& options) {
  auto& program = program_domains.get();
  const scoped_lock lock(program.guard);
  if (auto existing = program.hosted.lock(); existing && existing->made_in_.is_here()) {
    if (options.inherited && !existing->inherited_) {
      throw error(errc::invalid_argument,
                  "a domain was asked for that forked children inherit (domain_options::inherited), but this program's "
                  "pools and tensors share one already that they do not: ask for it before the first of them is made, "
                  "and keep it");
    }
    const auto size = existing->blocks().size_bytes();
    if (options.arena_bytes <= size) return existing;
    throw error(errc::invalid_argument,
                text("an arena of ", text_of_bytes(options.arena_bytes),
                     " was asked for, but this program's pools and tensors share one of ", text_of_bytes(size),
                     " already: ask for it before the first of them is made, or set isolated"));
  }
  auto made = std::make_shared<domain>(options);
  program.hosted = made;
  return made;
}

std::shared_ptr<domain> domain::of(const shared_block& which) noexcept {
  auto* const arena = which.owner();
  return arena != nullptr && arena->owner() != nullptr ? arena->owner()->weak_from_this().lock() : nullptr;
}

void domain::enter(const std::shared_ptr<domain>& joined) {
  auto& program = program_domains.get();
  const scoped_lock lock(program.guard);
  program.joined = joined;
}

// Before the files are mapped: a child that is forked in between has less.
void domain::keep_from_children() {
  if (inherited_) return;
  control_kept_.emplace(files_.control);
  arena_kept_.emplace(files_.arena);
}

domain::domain(const domain_options& options) : inherited_(options.inherited), self_(participant_id::host) {
  const layout where(sizes_of(options));
  const bool populates = options.populates.value_or(never_overcommits());
  files_.control =
      make_memfd("muster-control", where.total, populates ? memfd_pages::at_once : memfd_pages::when_touched);
  files_.arena = make_memfd("muster-arena", where.counts.extents * extent_bytes);
  keep_from_children();
  const auto children = inherited_ ? mapping::inherit::yes : mapping::inherit::no;
  control_ = mapping(files_.control, where.total, children);
  payload_ = mapping(files_.arena, where.counts.extents * extent_bytes, children, arena::alignment, opened_as_used);
  sizes_ = {.participants = where.counts.participants, .blocks = where.counts.blocks, .extents = where.counts.extents};
  restore_header();
  members_ = layout::table<participant_entry>(control_, where.participants, where.counts.participants);
  participants_ = std::make_unique<participant_table>(members_, ::getpid());
  arena_ = make_arena(where, control_, payload_, files_.arena, self_, *this, options.huge_pages, populates, inherited_);
  neighbour_ = std::make_unique<detail::neighbour>(*arena_);
  arena_->prefault(options.prefault_bytes);
  deposits_ = std::make_unique<descriptor_store>(*arena_, *participants_, recoveries_);
  dead_counts_ = deposits_->on_depositor_death([](const shared_block& anchor) {
    auto& count = *reinterpret_cast<std::uint64_t*>(anchor.data());
    std::atomic_ref(count).fetch_or(descriptor_exchange::dead_count, std::memory_order_seq_cst);
  });
  arena_recovery_ = recoveries_.add(recovery_stage::blocks, [this](participant_id dead) { arena_->recover(dead); });
}

domain::domain(domain_files files, participant_id self) : files_(std::move(files)), inherited_(false), self_(self) {
  keep_from_children();
  const layout where(read_sizes(files_.control));
  control_ = mapping(files_.control, where.total, mapping::inherit::no);
  payload_ = mapping(files_.arena, where.counts.extents * extent_bytes, mapping::inherit::no, arena::alignment,
                     opened_as_used);
  members_ = layout::table<participant_entry>(control_, where.participants, where.counts.participants);
  arena_ = make_arena(where, control_, payload_, files_.arena, self_, *this, huge_pages::none, never_overcommits(),
                      inherited_);
  neighbour_ = std::make_unique<detail::neighbour>(*arena_);
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

descriptor_exchange& domain::descriptors() {
  if (deposits_) {
    made_in_.require_here("a domain");
    return *deposits_;
  }
  if (exchange_) return *exchange_;
  throw error(errc::invalid_argument,
              text("participant ", index_of(self_),
                   " cannot exchange descriptors: it has no connection to the host of its domain, as workers of pools "
                   "and programs that joined by muster::join have"));
}

const std::atomic<std::uint32_t>& domain::deaths() const noexcept {
  return reinterpret_cast<const header*>(control_.bytes().data())->deaths;
}

bool domain::sleep(std::span<const futex_expectation> words, deadline until) const {
  for (auto seen = arena_->warm(); seen.bytes != 0; seen = arena_->trim_unused(seen)) {
    const auto soon = deadline::after(warm_time);
    if (until.when() <= soon.when()) break;
    if (futex_wait_any(words, futex_scope::shared, soon)) return true;
  }
  return futex_wait_any(words, futex_scope::shared, until);
}

std::uint64_t domain::occupant(participant_id id) const noexcept {
  return index_of(id) < members_.size() ? members_[index_of(id)].word.load(std::memory_order_acquire) : 0;
}

// Whoever waits for something looks again after every death: the dead one may have owed him a wake.
void domain::bury(participant_id dead) {
  participants_->withdraw(dead);
  recoveries_.run(dead);
  deposits_->bury(dead);
  participants_->retire(dead);
  auto& deaths = reinterpret_cast<header*>(control_.bytes().data())->deaths;
  deaths.fetch_add(1, std::memory_order_acq_rel);
  futex_wake(futex_address(deaths), INT_MAX, futex_scope::shared);
  keepsakes_.tidy();
  deposits_->tidy();  // keepsakes may have held anchors
}

}  // namespace muster
