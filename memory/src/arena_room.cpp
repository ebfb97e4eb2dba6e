// SPDX-License-Identifier: BSL-1.0
// Where an arena's memory comes from and goes back to: the system, or what this process keeps warm.
#include <fcntl.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include <muster/base/error.hpp>
#include <muster/base/memory_budget.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/detail/arena.hpp>

namespace muster {

namespace {

// What a request must leave over for everybody else, and how much is admitted without another look once there was
// plenty. All that take part may use what they were granted when memory has become short meanwhile: of those that do,
// the n-th was granted an n-th of this at most, which together is less than the reserve, for a thousand of them too.
constexpr std::size_t reserve_bytes = std::size_t{64} << 20U;
constexpr std::size_t most_admitted_ahead = reserve_bytes / 8;
constexpr std::size_t part_admitted_ahead = 64;
constexpr std::size_t populate_from_bytes = std::size_t{1} << 20U;
constexpr std::size_t huge_page_bytes = arena::alignment;

constexpr std::size_t round_up(std::size_t number, std::size_t step) { return (number + step - 1) / step * step; }

}  // namespace

// Whatever this process reads or writes begins here: a block of its own when its memory is claimed, or taken from the
// cache, into which memory comes that another process has claimed; one of another process when its name is resolved.
void arena::reach(std::size_t end) const {
  if (options_.reserved != nullptr) options_.reserved->open(end);
}

// One call for many pages costs less than a fault for each. It may fail for want of support; then the pages come by
// fault, as for a small run. False when there is no memory: a fault would be a SIGBUS. Then it has no pages.
bool arena::populate(extent_run run) noexcept {
  try {
    reach(run.offset_bytes() + run.size_bytes());
  } catch (const error&) {
    return false;
  }
  if (run.size_bytes() < populate_from_bytes && !options_.populates_all) return true;
  const auto populate_all = [&](int how) {
    return ::madvise(bytes_.data() + run.offset_bytes(), run.size_bytes(), how);
  };
  const int failed = try_system_call("madvise", populate_all, MADV_POPULATE_WRITE);
  if (failed != 0 && (errno == ENOMEM || errno == EFAULT)) {
    discard(run);
    return false;
  }
  collapse(run.offset_bytes(), run.size_bytes());
  return true;
}

// Huge pages are wanted where they can be: then a run that has room for one begins with one.
std::size_t arena::place_for(std::size_t extents) const noexcept {
  const bool huge = options_.huge_pages == huge_pages::where_possible && extents * extent_bytes >= huge_page_bytes;
  return huge ? round_up(extent_hint_, huge_page_bytes / extent_bytes) : extent_hint_;
}

// Every huge page by itself: where one cannot be had, others can.
void arena::collapse(std::size_t offset, std::size_t bytes) noexcept {
  if (options_.huge_pages == huge_pages::none) return;
  for (auto at = round_up(offset, huge_page_bytes); at + huge_page_bytes <= offset + bytes; at += huge_page_bytes) {
    if (::madvise(bytes_.data() + at, huge_page_bytes, MADV_COLLAPSE) == 0) huge_bytes_ += huge_page_bytes;
  }
}

void arena::prefault(std::size_t bytes) {
  if (bytes == 0) return;
  if (bytes > bytes_.size()) {
    throw error(errc::invalid_argument, text(text_of_bytes(bytes), " were to be prefaulted, but the arena has ",
                                             text_of_bytes(bytes_.size()), ": ask for less, or for a larger arena"));
  }
  const scoped_lock lock(mutex_);
  static_cast<void>(admit(bytes, 0));
  const auto populate_all = [&] { return ::madvise(bytes_.data(), bytes, MADV_POPULATE_WRITE); };
  reach(bytes);
  try {
    system_call("madvise MADV_POPULATE_WRITE", populate_all);
  } catch (const error& failure) {
    throw_exhausted(bytes, 0, text("prefaulting failed: ", failure.what()));
  }
  collapse(0, bytes);
  prefaulted_bytes_ = std::max(prefaulted_bytes_, bytes);
}

// True if it has looked: then who has claimed the memory looks again.
bool arena::admit(std::size_t bytes, unsigned copies) {
  const auto needed = bytes * (std::size_t{1} + copies);
  const bool looks = needed > admitted_bytes_;
  if (looks) {
    const auto left = require_room(bytes, copies, needed);
    admitted_bytes_ = needed + std::min(left / part_admitted_ahead, most_admitted_ahead / member_count());
  }
  admitted_bytes_ -= needed;
  return looks;
}

// What is left over when `needed` more bytes have been taken than are claimed by now. The cache is given up first.
std::size_t arena::require_room(std::size_t bytes, unsigned copies, std::size_t needed) {
  auto untouched = untouched_bytes();
  auto found = budget();
  const auto is_enough = [&] { return found.available_bytes >= needed + untouched + reserve_bytes; };
  if (!is_enough() && !cache_.empty()) {
    trim_cache(0);
    untouched = untouched_bytes();
    found = budget();
  }
  if (!is_enough()) {
    throw_exhausted(bytes, copies,
                    text("only ", text_of_bytes(found.available_bytes), " are available (", found.limited_by,
                         "), of which ", text_of_bytes(untouched), " are for blocks that were not written yet and ",
                         text_of_bytes(reserve_bytes), " are kept in reserve"));
  }
  return found.available_bytes - needed - untouched - reserve_bytes;
}

memory_budget arena::budget() const { return options_.budget ? options_.budget() : available_memory(); }

std::size_t arena::untouched_bytes() const {
  struct stat file{};
  system_call("fstat", ::fstat, memfd_.get(), &file);
  const auto held = extents_.held_count() * extent_bytes;
  return held - std::min(held, static_cast<std::size_t>(file.st_blocks) * 512);
}

void arena::throw_exhausted(std::size_t bytes, unsigned copies, const std::string& reason) const {
  const auto copying = copies == 0 ? std::string()
                                   : text(" (and as much again for ", copies, " private cop", copies == 1 ? "y" : "ies",
                                          " where it is used)");
  const auto held = extents_.held_count() * extent_bytes;
  throw error(errc::out_of_memory, text("a shared block of ", text_of_bytes(bytes), " is needed", copying, ", but ",
                                        reason, "; the arena has ", text_of_bytes(bytes_.size()), ", ",
                                        text_of_bytes(held), " of it in use, of which ", text_of_bytes(cached_bytes_),
                                        " are cached by this process, and ", text_of_bytes(bytes_.size() - held),
                                        " free: send less at a time, keep fewer results, or raise the limit"));
}

// Gives the pages back to the system; reading them afterwards finds zeros.
void arena::discard(extent_run run) noexcept {
  if (!memfd_.is_same()) return;  // user code has closed it, and may have opened another file with its number
  static_cast<void>(::fallocate(memfd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(run.offset_bytes()), static_cast<off_t>(run.size_bytes())));
}

}  // namespace muster
