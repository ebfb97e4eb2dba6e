// SPDX-License-Identifier: BSL-1.0
// A thread inside a worker overwrites what the parent and all workers share, while the pool works. Whatever happens,
// every call ends once, with its own value or an error, and the pool goes on. docs/design/integrity.md.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <random>
#include <ranges>
#include <thread>

#include <gtest/gtest.h>

#include <muster/base/detail/mutex.hpp>
#include <muster/base/text.hpp>
#include <muster/pool/pool.hpp>
#include <muster/queue/board.hpp>

#include "processes.hpp"
#include "seed.hpp"

namespace muster::evil_worker_test {
namespace {

using namespace std::chrono_literals;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

// ---- values that say whose they are

enum class kind : std::uint64_t { argument = 1, result = 2 };

// {number:24, check:40}: nobody makes one by accident.
constexpr std::uint64_t tag_of(std::uint64_t number, kind what) {
  auto check = (number + 1) * 0x9e3779b97f4a7c15U ^ static_cast<std::uint64_t>(what) * 0xff51afd7ed558ccdU;
  check ^= check >> 29U;
  check *= 0xc4ceb9fe1a85ec53U;
  return number << 40U | check >> 24U;
}
constexpr bool is_tag(std::uint64_t value, kind what) { return value == tag_of(value >> 40U, what); }

// In the worker: of an argument that was overwritten comes a result that is nobody's.
std::uint64_t answer(std::uint64_t argument) {
  return is_tag(argument, kind::argument) ? tag_of(argument >> 40U, kind::result) : 0;
}
std::vector<std::uint64_t> answer_all(const std::vector<std::uint64_t>& arguments) {
  std::vector<std::uint64_t> results;
  results.reserve(arguments.size());
  for (const auto each : arguments) results.push_back(answer(each));
  return results;
}
std::string answer_in_words(std::uint64_t argument) { return std::to_string(answer(argument)); }

// ---- the evil one, in a worker

enum class damage : std::uint32_t { bits, words, states, lines, domain };

// A file that this process has open, mapped once more.
class stolen_file {
public:
  explicit stolen_file(std::string_view name) {
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code failure;
      const auto target = std::filesystem::read_symlink(each.path(), failure).string();
      if (failure || target.find(name) == std::string::npos) continue;
      fd_ = std::atoi(each.path().filename().c_str());
      break;
    }
    struct stat status{};
    if (fd_ < 0 || ::fstat(fd_, &status) != 0) throw std::runtime_error("no such file");
    bytes_ = static_cast<std::size_t>(status.st_size);
    at_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (at_ == MAP_FAILED) throw std::runtime_error("it cannot be mapped");
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::span<std::atomic<std::uint64_t>> words() const {
    return {static_cast<std::atomic<std::uint64_t>*>(at_), bytes_ / 8};
  }

private:
  int fd_ = -1;
  std::size_t bytes_ = 0;
  void* at_ = nullptr;
};

class vandal {
public:
  vandal(damage how, unsigned seed)
      : how_(how),
        random_(seed),
        file_(how == damage::domain ? "memfd:muster-control" : "memfd:muster-board"),
        board_(how == damage::domain ? nullptr : std::make_unique<board>(unique_fd(::dup(file_.fd())))) {}

  void strike() {
    switch (how_) {
      case damage::bits: some_word() ^= std::uint64_t{1} << random_() % 64; break;
      case damage::words: some_word() = random_(); break;
      case damage::states: forge_state(); break;
      case damage::lines: overwrite_line(); break;
      case damage::domain: strike_domain(); break;
    }
  }

private:
  using word = std::atomic<std::uint64_t>;

  word& at(void* where) {
    return *reinterpret_cast<word*>(reinterpret_cast<std::uintptr_t>(where) & ~std::uintptr_t{7});
  }
  std::size_t below(std::size_t count) { return random_() % count; }
  // Slots are used from the first on: those are the ones that hurt.
  task_slot& some_slot() { return board_->slot(below(below(4) == 0 ? board_->sizes().task_slots : 24)); }
  worker_line& some_line() { return board_->line(below(board_->sizes().workers)); }

  word& some_word() {
    auto& slot = some_slot();
    auto& line = some_line();
    auto* const bell = reinterpret_cast<std::byte*>(&board_->bell_armed());
    const auto words = file_.words();
    switch (below(14)) {
      case 0:
      case 1:
      case 2: return slot.word;
      case 3: return at(&slot.token);
      case 4: return at(&slot.reply_bytes);
      case 5: return at(slot.reply.data() + 8 * below(7));
      case 6: return at(&line.parked);  // and order
      case 7: return line.current;
      case 8: return line.element;
      case 9: return below(2) == 0 ? line.finished : at(&line.leaving);
      case 10: return line.ring_tail;
      case 11: return at(bell);
      case 12: return at(bell + 128 * (1 + below(3)));                        // sleeping, news, spinning
      default: return words[words.size() - 1 - below(words.size() * 3 / 5)];  // lanes and rings, to the file's end
    }
  }

  // What a word could well say.
  void forge_state() {
    auto& word = some_slot().word;
    const slot_word found(word);
    const auto flags = static_cast<slot_flag>(random_() % 256);
    word =
        slot_word(found.generation(), static_cast<unsigned>(below(5)), flags, static_cast<slot_state>(below(4))).bits();
  }

  void overwrite_line() {
    const auto words = file_.words();
    const auto line = below(3) == 0 ? below(words.size() / 8) : below(2048);  // the first of them are used most
    for (std::size_t each = 0; each < 8; ++each) words[(line * 8 + each) % words.size()] = random_();
  }

  // The header, the participants, and the used parts of the tables of blocks and extents.
  void strike_domain() {
    const auto words = file_.words();
    const auto page = [](std::size_t bytes) { return (bytes + 4095) / 4096 * 512; };
    constexpr std::size_t participants = 1024;
    constexpr std::size_t descriptors = std::size_t{1} << 16U;
    const auto blocks_at = 512 + page(participants * 8);
    const auto extents_at = blocks_at + page(descriptors * 64);
    std::array<std::size_t, 4> places = {below(6), 512 + below(16), blocks_at + below(64 * 8), extents_at + below(128)};
    auto& hit = words[places[below(places.size())]];
    if (below(2) == 0) {
      hit ^= std::uint64_t{1} << random_() % 64;
    } else {
      hit = random_();
    }
  }

  damage how_;
  std::mt19937_64 random_;
  stolen_file file_;
  std::unique_ptr<board> board_;
};

// Starts the evil thread of this worker; it ends with its process, or after some time. The result says where it is.
int corrupt(damage how, unsigned seed, std::chrono::microseconds pause, std::chrono::milliseconds time) {
  auto villain = std::make_shared<vandal>(how, seed);
  std::thread([villain, pause, time] {
    const auto end = deadline::after(time);
    while (!end.expired()) {
      villain->strike();
      test::work_for(pause);  // the rate of damage
    }
  }).detach();
  return this_worker::id();
}

// ---- the load

struct tally {
  std::atomic<std::uint64_t> asked = 0;
  std::atomic<std::uint64_t> own = 0;
  std::atomic<std::uint64_t> nobodys = 0;  // a payload that was overwritten
  std::atomic<std::uint64_t> anothers = 0;
  std::atomic<std::uint64_t> failed = 0;
  std::atomic<std::uint64_t> crashes = 0;  // workers that died of anything but our SIGKILL
  std::atomic<std::uint64_t> unended = 0;
  mutex guard;
  std::map<std::string, std::uint64_t> reasons MUSTER_GUARDED_BY(guard);

  void count(std::uint64_t value, std::uint64_t number) {
    if (!is_tag(value, kind::result)) {
      ++nobodys;
    } else {
      ++(value >> 40U == number ? own : anothers);
    }
  }
  void count_error(const error_info& error) {
    ++failed;
    if (error.code() == errc::worker_died && error.status() != exit_status::killed(SIGKILL)) ++crashes;
    const scoped_lock lock(guard);
    ++reasons[make_error_code(error.code()).message()];
  }
  [[nodiscard]] std::uint64_t ended() const { return own + nobodys + anothers + failed; }
};

class load {
public:
  load(pool& on, tally& seen, unsigned seed, bool blocks_are_safe)
      : pool_(on), seen_(seen), random_(seed), blocks_are_safe_(blocks_are_safe) {}

  void run(const std::atomic<bool>& stop) {
    while (!stop) {
      try {
        call();
      } catch (const std::exception&) {  // refused: there was no memory for it, so nothing was asked for
        ++refused;
      }
    }
    while (!window_.empty()) take();
  }

  std::uint64_t refused = 0;

private:
  struct entry {
    future<std::uint64_t> result;
    std::uint64_t number = 0;
  };

  std::uint64_t next() { return numbers.fetch_add(1) % (1U << 24U); }
  submitter how() { return pool_.with({.retries = static_cast<unsigned>(random_() % 4)}); }

  void call() {
    switch (random_() % 12) {
      case 0: return one_in_words();
      case 1: return many_in_blocks();
      case 2: return mapped();
      case 3: return streamed();
      case 4:
      case 5: return with_callback();
      default: return submitted();
    }
  }

  void submitted() {
    const auto number = next();
    auto result = how().apply_async(answer, tag_of(number, kind::argument));
    ++seen_.asked;
    window_.push_back({std::move(result), number});
    if (random_() % 16 == 0) window_.back().result.cancel();
    while (window_.size() > 16) take();
  }

  void take() {
    auto front = std::move(window_.front());
    window_.pop_front();
    if (!wait(front.result)) return;
    const auto result = front.result.get_result();
    result ? seen_.count(*result, front.number) : seen_.count_error(result.error());
  }

  template <class R>
  bool wait(future<R>& result) {
    if (result.wait_for(60s)) return true;
    ++seen_.unended;
    return false;
  }

  void one_in_words() {
    const auto number = next();
    auto future = how().apply_async(answer_in_words, tag_of(number, kind::argument));
    ++seen_.asked;
    if (!wait(future)) return;
    const auto result = future.get_result();
    result ? seen_.count(std::strtoull(result->c_str(), nullptr, 10), number) : seen_.count_error(result.error());
  }

  void many_in_blocks() {
    const auto first = next();
    const std::vector<std::uint64_t> arguments(200 + random_() % 4000, tag_of(first, kind::argument));
    auto future = how().apply_async(answer_all, arguments);
    ++seen_.asked;
    if (!wait(future)) return;
    const auto result = future.get_result();
    if (!result) return seen_.count_error(result.error());
    const bool whole = result->size() == arguments.size();
    const auto right = tag_of(first, kind::result);
    const auto wrong = std::ranges::find_if(*result, [&](std::uint64_t each) { return each != right; });
    if (whole && wrong == result->end()) {
      ++seen_.own;
    } else if (wrong != result->end() && blocks_are_safe_) {
      seen_.count(*wrong, first);
    } else {
      ++seen_.nobodys;
    }
  }

  void mapped() {
    std::vector<std::uint64_t> arguments;
    for (auto left = 1 + random_() % 500; left > 0; --left) arguments.push_back(tag_of(next(), kind::argument));
    seen_.asked += arguments.size();
    const auto results =
        pool_.with({.retries = 2, .chunk = 1 + random_() % 50}).collect_errors().map(answer, arguments);
    for (std::size_t each = 0; each < arguments.size(); ++each) {
      results[each] ? count_in_block(*results[each], arguments[each] >> 40U) : seen_.count_error(results[each].error());
    }
  }

  void streamed() {
    const auto first = numbers.fetch_add(1000) % (1U << 23U);
    const auto count = 1 + random_() % 300;
    seen_.asked += count;
    auto results =
        pool_.with({.retries = 2, .chunk = 7})
            .imap(answer, quick(std::views::iota(first, first + count) | std::views::transform([](std::uint64_t each) {
                                  return tag_of(each, kind::argument);
                                })));
    std::uint64_t number = first;
    while (auto result = results.next_result()) {
      *result ? count_in_block(**result, number) : seen_.count_error(result->error());
      ++number;
    }
    if (number != first + count) seen_.unended += first + count - number;
  }

  void count_in_block(std::uint64_t value, std::uint64_t number) {
    const bool own = value == tag_of(number, kind::result);
    if (own || blocks_are_safe_) {
      seen_.count(value, number);
    } else {
      ++seen_.nobodys;
    }
  }

  void with_callback() {
    const auto number = next();
    auto future = how().apply_async(answer, tag_of(number, kind::argument));
    ++seen_.asked;
    future.on_complete([&seen = seen_, number](std::uint64_t value) { seen.count(value, number); },
                       [&seen = seen_](const error_info& error) { seen.count_error(error); });
  }

  static inline std::atomic<std::uint64_t> numbers = 0;

  pool& pool_;
  tally& seen_;
  std::minstd_rand random_;
  const bool blocks_are_safe_;
  std::deque<entry> window_;
};

// ---- the runs

class EvilWorker : public testing::Test {
protected:
  // Every one of them dies with its crew, or ends after a while; so another is made again and again.
  void torment(damage how, std::chrono::microseconds pause, std::chrono::milliseconds time) {
    const auto seed = test::seed();
    if (sanitized) time /= 3;
    std::atomic<bool> stop = false;
    load one(pool_, seen_, seed, how != damage::domain);
    load two(pool_, seen_, seed + 1, how != damage::domain);
    std::thread first([&] { one.run(stop); });
    std::thread second([&] { two.run(stop); });
    const auto end = deadline::after(time);
    std::uint64_t villains = 0;
    for (unsigned round = 0; !end.expired(); ++round) {
      auto made = pool_.apply_async(corrupt, how, seed + round, pause, std::chrono::milliseconds(600));
      if (made.wait_for(60s)) villains += made.get_result() ? 1U : 0U;
      test::work_for(200ms);  // their lives overlap
    }
    stop = true;
    first.join();
    second.join();
    report(villains, one.refused + two.refused);
  }

  void report(std::uint64_t villains, std::uint64_t refused) {
    const auto now = pool_.stats();
    std::printf(
        "%llu villains; %llu asked: %llu own, %llu nobody's, %llu failed, %llu refused; %llu corrupted, %llu "
        "damages, %llu suspects, %llu replacements, %llu starts\n",
        ull(villains), ull(seen_.asked), ull(seen_.own), ull(seen_.nobodys), ull(seen_.failed), ull(refused),
        ull(now.tasks.corrupted), ull(now.tasks.damaged), ull(now.workers.suspected), ull(now.workers.replacements),
        ull(now.workers.started));
    const scoped_lock lock(seen_.guard);
    for (const auto& [reason, times] : seen_.reasons) std::printf("  %6llu %s\n", ull(times), reason.c_str());
  }

  static unsigned long long ull(std::uint64_t number) { return number; }

  bool all_is_well() {
    const std::vector<std::uint64_t> arguments(100, tag_of(7, kind::argument));
    const std::vector<std::uint64_t> right(100, tag_of(7, kind::result));
    const auto one = pool_.apply_async(answer, arguments[0]).get_result();
    const auto many = pool_.apply_async(answer_all, arguments).get_result();
    const auto mapped = pool_.collect_errors().map(answer, arguments);
    return one && *one == right[0] && many && *many == right &&
           std::ranges::all_of(mapped, [&](const auto& each) { return each && *each == right[0]; });
  }

  // What was overwritten and not yet used may still cost something; then all is well.
  void expect_recovered() {
    int in_a_row = 0;
    EXPECT_TRUE(test::eventually([&] {
      in_a_row = all_is_well() ? in_a_row + 1 : 0;
      return in_a_row == 100;
    }));
    EXPECT_TRUE(test::eventually([&] { return seen_.ended() + seen_.unended >= seen_.asked; }));
    EXPECT_EQ(seen_.ended(), seen_.asked) << "every call ends once";
    EXPECT_EQ(seen_.unended, 0U);
    EXPECT_EQ(seen_.anothers, 0U) << "nobody gets another's value";
    EXPECT_EQ(seen_.crashes, 0U) << "nobody crashes";
    EXPECT_GT(seen_.own, 0U);
    pool_.drain();
    const auto now = pool_.stats();
    EXPECT_EQ(now.tasks.accepted, now.tasks.ended);
    EXPECT_TRUE(test::eventually([&] { return pool_.stats().memory.live_blocks == 0; }))
        << pool_.stats().memory.live_blocks;
    pool_.join();
  }

  tally seen_;
  pool pool_{{.workers = 3,
              .quarantine_after = 0,
              .arena_bytes = std::size_t{256} << 20U,
              .isolated = true,
              .log = [](log_level, std::string_view) {}}};
};

TEST_F(EvilWorker, FlipsBitsOfTheBoard) {
  torment(damage::bits, 2ms, 6s);
  EXPECT_GT(pool_.stats().tasks.damaged, 0U);
  expect_recovered();
}

TEST_F(EvilWorker, OverwritesWordsOfTheBoard) {
  torment(damage::words, 2ms, 6s);
  EXPECT_GT(pool_.stats().tasks.damaged, 0U);
  EXPECT_GT(pool_.stats().workers.replacements, 0U);
  expect_recovered();
}

TEST_F(EvilWorker, ForgesStatesOfTasks) {
  torment(damage::states, 5ms, 5s);
  expect_recovered();
}

TEST_F(EvilWorker, OverwritesWholeLinesOfTheBoard) {
  torment(damage::lines, 5ms, 6s);
  EXPECT_GT(pool_.stats().tasks.damaged, 0U);
  expect_recovered();
}

TEST_F(EvilWorker, OverwritesTablesOfTheDomain) {
  torment(damage::domain, 5ms, 5s);
  expect_recovered();
}

}  // namespace
}  // namespace muster::evil_worker_test
