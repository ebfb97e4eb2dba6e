// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/board.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <limits>

#include <muster/base/detail/futex.hpp>
#include <muster/base/error.hpp>
#include <muster/base/system_call.hpp>
#include <muster/memory/wait/parking.hpp>

namespace muster {

namespace {

using word = std::atomic<std::uint64_t>;

constexpr std::uint64_t magic = 0x6d7573746572'0106;  // "muster", board, layout version 6
constexpr std::size_t most_slots = 32768;

constexpr std::size_t words_for(std::size_t workers) { return (workers + 63) / 64; }

// With more workers the parent is told which rings have news; with fewer, looking at each costs less than telling.
constexpr std::size_t most_without_news = 64;

// The first bytes of a board. Layout: docs/formats/board.md.
struct header {
  std::uint64_t magic;
  std::uint64_t workers;
  std::uint64_t slots;
  std::uint64_t spin_nanoseconds;
  std::uint64_t processors;
  word active;
  alignas(128) std::atomic<std::uint32_t> bell_armed;
  alignas(128) std::array<word, words_for(most_workers)> sleeping;
  alignas(128) std::array<word, words_for(most_workers)> news;
  alignas(128) std::array<word, 1> spinning;
  alignas(128) place_word caller_place;
  alignas(128) std::array<module_entry, module_directory_size> modules;
};

constexpr std::size_t header_words = 6;  // those before bell_armed

// A lane's head lies on lines of its own, before its entries.
constexpr std::size_t lane_head_bytes = 128;

// Every slot has at most one live hint per lane, the rest are stale and can be swept.
constexpr std::size_t lane_entries_for(std::size_t slots) { return 2 * slots; }
constexpr std::size_t ring_entries_for(std::size_t slots) { return 2 * slots; }

struct layout {
  explicit layout(const board_sizes& sizes)
      : lines(round_up(sizeof(header))),
        slots(round_up(lines + sizes.workers * sizeof(worker_line))),
        lanes(round_up(slots + sizes.task_slots * sizeof(task_slot))),
        lane_bytes(lane_head_bytes + lane_entries_for(sizes.task_slots) * sizeof(word)),
        rings(round_up(lanes + (board::shared_lanes + sizes.workers) * lane_bytes)),
        requests(round_up(rings + sizes.workers * ring_entries_for(sizes.task_slots) * sizeof(word))),
        times(round_up(requests + sizes.workers * requests_per_worker * sizeof(request_cell))),
        total(round_up(times + sizes.task_slots * sizeof(task_times))) {}

  static std::size_t round_up(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

  std::size_t lines;
  std::size_t slots;
  std::size_t lanes;
  std::size_t lane_bytes;
  std::size_t rings;
  std::size_t requests;
  std::size_t times;
  std::size_t total;
};

bool in_range(const board_sizes& sizes) {
  return sizes.workers >= 1 && sizes.workers <= most_workers && sizes.active <= sizes.workers &&
         sizes.task_slots >= 2 && sizes.task_slots <= most_slots && std::has_single_bit(sizes.task_slots);
}

void check(const board_sizes& sizes) {
  if (in_range(sizes)) return;
  throw error(errc::invalid_argument, text("a board of ", sizes.workers, " workers and ", sizes.task_slots,
                                           " slots was asked for; possible are 1 to ", most_workers,
                                           " workers, and a power of two of slots up to ", most_slots));
}

}  // namespace

board::board(const board_sizes& sizes, const spin_policy& spin, memfd_pages pages, mapping::inherit children)
    : sizes_(sizes), spin_(spin), pages_(pages) {
  check(sizes);
  const auto bytes = layout(sizes).total;
  file_ = make_memfd("muster-board", bytes, pages_);
  if (children == mapping::inherit::no) file_kept_.emplace(file_);
  memory_ = mapping(file_, bytes, children);
  set_active(sizes.active != 0 ? sizes.active : sizes.workers);
  restore_header();
  attach();
}

board::board(unique_fd file) : file_(std::move(file)) {
  file_kept_.emplace(file_);
  struct stat status{};
  system_call("fstat", ::fstat, file_.get(), &status);
  std::array<std::uint64_t, header_words> words{};
  const auto got = system_call("pread", ::pread, file_.get(), words.data(), sizeof words, 0);
  sizes_ = {.workers = words[1], .task_slots = words[2]};
  spin_ = {.budget = std::chrono::nanoseconds(words[3]), .processors = static_cast<unsigned>(words[4])};
  if (got != static_cast<ssize_t>(sizeof words) || words[0] != magic || !in_range(sizes_) ||
      layout(sizes_).total != static_cast<std::size_t>(status.st_size)) {
    throw error(errc::corrupted, text("file ", file_.get(), " is not a muster board of this version"));
  }
  memory_ = mapping(file_, layout(sizes_).total, mapping::inherit::no);
  attach();
  active_ = &reinterpret_cast<header*>(memory_.bytes().data())->active;
}

void board::set_active(std::size_t workers) noexcept {
  kept_active_.store(workers, std::memory_order_relaxed);
  used_.store(std::max(used(), workers), std::memory_order_relaxed);
  reinterpret_cast<header*>(memory_.bytes().data())->active.store(workers, std::memory_order_relaxed);
}

bool board::restore_header() noexcept {
  auto* const words = reinterpret_cast<std::uint64_t*>(memory_.bytes().data());
  const std::array<std::uint64_t, header_words> right = {magic,
                                                         sizes_.workers,
                                                         sizes_.task_slots,
                                                         static_cast<std::uint64_t>(spin_.budget.count()),
                                                         spin_.processors,
                                                         kept_active_};
  bool was_wrong = false;
  for (std::size_t index = 0; index < right.size(); ++index) {
    was_wrong |= std::atomic_ref(words[index]).exchange(right[index], std::memory_order_relaxed) != right[index];
  }
  return was_wrong;
}

void board::replace_file(unique_fd other) noexcept {
  if (file_kept_) {
    file_kept_->replace(std::move(other));
  } else {
    file_ = std::move(other);
  }
}

void board::renew() noexcept {
  try {
    auto fresh = make_memfd("muster-board", memory_.bytes().size(), pages_);
    memory_.replace(fresh);
    replace_file(std::move(fresh));
  } catch (const error&) {  // no descriptor, no memory: then the old file serves, which somebody may still map
    auto* const words = reinterpret_cast<std::uint64_t*>(memory_.bytes().data());
    for (std::size_t index = 0; index < memory_.bytes().size() / sizeof *words; ++index) {
      std::atomic_ref(words[index]).store(0, std::memory_order_relaxed);
    }
  }
  restore_header();
}

void board::attach() {
  auto* const start = memory_.bytes().data();
  const layout where(sizes_);
  auto& first = *reinterpret_cast<header*>(start);
  ring_entries_ = ring_entries_for(sizes_.task_slots);
  slots_ = {reinterpret_cast<task_slot*>(start + where.slots), sizes_.task_slots};
  lines_ = {reinterpret_cast<worker_line*>(start + where.lines), sizes_.workers};
  for (std::size_t index = 0; index < shared_lanes + sizes_.workers; ++index) {
    auto* const head = start + where.lanes + index * where.lane_bytes;
    lanes_.emplace_back(*reinterpret_cast<word*>(head), std::span(reinterpret_cast<word*>(head + lane_head_bytes),
                                                                  lane_entries_for(sizes_.task_slots)));
  }
  rings_ = {reinterpret_cast<word*>(start + where.rings), sizes_.workers * ring_entries_};
  requests_ = {reinterpret_cast<request_cell*>(start + where.requests), sizes_.workers * requests_per_worker};
  times_ = {reinterpret_cast<task_times*>(start + where.times), sizes_.task_slots};
  sleeping_ = std::span(first.sleeping).first(words_for(sizes_.workers));
  news_ = std::span(first.news).first(words_for(sizes_.workers));
  has_news_ = sizes_.workers > most_without_news;
  spinning_ = first.spinning;
  caller_place_ = &first.caller_place;
  bell_armed_ = &first.bell_armed;
  modules_ = first.modules.data();
}

completion_ring board::ring(std::size_t worker) noexcept {
  return {lines_[worker].ring_tail, rings_.subspan(worker * ring_entries_, ring_entries_)};
}

void board::enter(std::size_t worker, completion_ring::entry what) noexcept {
  ring(worker).push(what);
  if (has_news_) news().tell(worker);
}

std::uint64_t board::take_news(std::size_t group) noexcept {
  const auto rest = used() - std::min(used(), 64 * group);
  const auto there = rest < 64 ? (std::uint64_t{1} << rest) - 1 : ~std::uint64_t{0};
  return has_news_ ? news().take(group) & there : there;
}

std::optional<bool> board::has_news() noexcept {
  if (!has_news_) return std::nullopt;
  return news().is_any();
}

namespace {

void rouse(std::atomic<std::uint32_t>& parked) noexcept { futex_wake(futex_address(parked), 1, futex_scope::shared); }

}  // namespace

// None where the bit is of no worker.
std::atomic<std::uint32_t>* board::wake_word_of(std::size_t worker) noexcept {
  if (worker >= lines_.size()) return nullptr;
  note_woken(lines_[worker].place);
  return &lines_[worker].parked;
}

bool board::wake(std::size_t worker) noexcept {
  if (worker >= lines_.size() || !sleeping().remove(worker)) return false;
  parking::unpark(*wake_word_of(worker), rouse);
  return true;
}

bool board::wake_any() noexcept {
  return parking::wake_any(sleeping(), [this](std::size_t worker) { return wake_word_of(worker); }, rouse);
}

void board::wake_all() noexcept {
  for (std::size_t worker = 0; worker < used(); ++worker) wake_always(worker);
}

void board::wake_always(std::size_t worker) noexcept {
  sleeping().remove(worker);
  parking::unpark(lines_[worker].parked, rouse);
}

}  // namespace muster
