// SPDX-License-Identifier: BSL-1.0
// Calls of all kinds while workers are killed at random. MUSTER_SOAK_SECONDS makes it longer (scripts/soak).
#include <csignal>
#include <cstdlib>
#include <random>
#include <ranges>
#include <thread>

#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "seed.hpp"
#include "soak_time.hpp"

namespace muster::soak_test {
namespace {

using namespace std::chrono_literals;

int square(int x) { return x * x; }
std::string repeat(const std::string& text, int times) {
  std::string all;
  for (; times > 0; --times) all += text;
  return all;
}

constexpr task_options patient{.retries = 1000000};

struct counts {
  std::atomic<std::uint64_t> calls = 0;
  std::atomic<std::uint64_t> wrong = 0;
  std::atomic<std::uint64_t> callbacks_wanted = 0;
  std::atomic<std::uint64_t> callbacks_seen = 0;

  void check(bool right) {
    ++calls;
    if (!right) ++wrong;
  }
};

void call_in_all_ways(pool& pool, unsigned seed, const std::atomic<bool>& stop, counts& seen) {
  std::minstd_rand random(seed);
  while (!stop) {
    const int n = static_cast<int>(random() % 1000);
    switch (random() % 6) {
      case 0: seen.check(pool.with(patient).apply(square, n) == n * n); break;
      case 1: seen.check(pool.with(patient).apply(repeat, "muster", n).size() == 6U * static_cast<unsigned>(n)); break;
      case 2: {
        const auto all = pool.with(patient).map(square, std::views::iota(0, n));
        seen.check(all.size() == static_cast<std::size_t>(n) && (n == 0 || all.back() == (n - 1) * (n - 1)));
        break;
      }
      case 3: {
        std::uint64_t sum = 0;
        for (const int each : pool.with(patient).imap_unordered([](int x) { return x; }, std::views::iota(0, n))) {
          sum += static_cast<std::uint64_t>(each);
        }
        seen.check(sum == static_cast<std::uint64_t>(n) * static_cast<std::uint64_t>(n > 0 ? n - 1 : 0) / 2);
        break;
      }
      case 4: {
        const auto texts = pool.with(patient).map([](int x) { return std::to_string(x); }, std::views::iota(0, n));
        seen.check(n == 0 || texts.back() == std::to_string(n - 1));
        break;
      }
      default:
        ++seen.callbacks_wanted;
        pool.with(patient).apply_async(square, n).on_complete(
            [&seen, n](int value) {
              ++seen.callbacks_seen;
              if (value != n * n) ++seen.wrong;
            },
            [&seen](const error_info&) {
              ++seen.callbacks_seen;
              ++seen.wrong;
            });
    }
  }
}

TEST(Soak, RandomKillsLoseDoubleAndCorruptNothing) {
  const auto seed = test::seed();
  counts seen;
  std::uint64_t kills = 0;
  {
    // Workers are also killed while they start, any number of times in a row.
    pool pool({.workers = 3, .quarantine_after = 0, .start_tries = 1000000, .log = [](log_level, std::string_view) {}});
    std::atomic<bool> stop = false;
    std::thread one([&] { call_in_all_ways(pool, seed, stop, seen); });
    std::thread two([&] { call_in_all_ways(pool, seed + 1, stop, seen); });
    std::minstd_rand random(seed + 2);
    const auto end = deadline::after(test::soak_time(5s));
    auto next_report = deadline::after(60s);
    while (!end.expired()) {
      if (next_report.expired()) {
        std::printf("%llu calls, %llu kills\n", static_cast<unsigned long long>(seen.calls),
                    static_cast<unsigned long long>(kills));
        std::fflush(stdout);
        next_report = deadline::after(60s);
      }
      test::work_for(std::chrono::microseconds(500 + random() % 4000));  // the rate of killing
      const auto victim = pool.workers()[random() % 3];
      if (victim.pid != 0 && ::kill(victim.pid, SIGKILL) == 0) ++kills;
    }
    stop = true;
    one.join();
    two.join();
    pool.drain();
    const auto stats = pool.stats();
    EXPECT_EQ(stats.tasks.accepted, stats.tasks.ended);
    EXPECT_EQ(stats.tasks.corrupted, 0U);
    EXPECT_EQ(stats.tasks.damaged, 0U) << "a death is no damage";
    EXPECT_TRUE(test::eventually([&] { return pool.stats().memory.live_blocks == 0; }))
        << pool.stats().memory.live_blocks;
    std::printf("%llu calls, %llu kills, %llu workers started, %llu tasks retried, %llu requeued\n",
                static_cast<unsigned long long>(seen.calls), static_cast<unsigned long long>(kills),
                static_cast<unsigned long long>(stats.workers.started),
                static_cast<unsigned long long>(stats.tasks.retried),
                static_cast<unsigned long long>(stats.tasks.requeued));
  }
  EXPECT_EQ(seen.wrong, 0U);
  EXPECT_EQ(seen.callbacks_seen, seen.callbacks_wanted);
  EXPECT_GT(seen.calls, 0U);
  EXPECT_GT(kills, 0U);
}

// Predecessor's list, 2. Only workers that are at work are killed: where a start takes longer than the time between two
// kills, as with sanitizers, hardly any would come to work.
TEST(Soak, TwoHundredKillsDuringTwentyThousandTasks) {
  const auto seed = test::seed(7);
  pool pool({.workers = 2, .quarantine_after = 0, .start_tries = 1000000, .log = [](log_level, std::string_view) {}});
  std::atomic<bool> done = false;
  std::atomic<int> kills = 0;
  std::thread killer([&] {
    std::minstd_rand random(seed);
    while (!done || kills < 200) {
      const auto victim = pool.workers()[random() % 2];
      const bool works = victim.state == worker_lifecycle::state::working;
      if (works && ::kill(victim.pid, SIGKILL) == 0) ++kills;
      test::work_for(std::chrono::milliseconds(2));  // the rate of killing
    }
  });
  std::vector<future<int>> futures;
  for (int each = 0; each < 20000; ++each) futures.push_back(pool.apply_async(square, each % 1000));
  int failed = 0;
  for (int each = 0; each < 20000; ++each) {
    const auto result = futures[static_cast<std::size_t>(each)].get_result();
    if (result) {
      ASSERT_EQ(*result, (each % 1000) * (each % 1000));
    } else {
      ASSERT_EQ(result.error(), errc::worker_died);
      ++failed;
    }
  }
  done = true;
  killer.join();
  EXPECT_LE(failed, kills);
}

}  // namespace
}  // namespace muster::soak_test
