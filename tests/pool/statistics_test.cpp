// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/pool_statistics.hpp>
#include <muster/queue/task_timing.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>
#include <muster/queue/event.hpp>

#include "processes.hpp"

namespace muster::statistics_test {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

pool_options quiet(unsigned workers, bool timing) {
  return {.workers = workers, .timing = timing, .log = [](log_level, std::string_view) {}};
}

void take_time(int microseconds) { ::usleep(static_cast<unsigned>(microseconds)); }

TEST(WorkerStatistics, SayWhoDidHowMuch) {
  const pool pool(quiet(2, false));
  for (int each = 0; each < 3; ++each) pool.on(0).apply([] {});
  pool.on(1).apply([] {});
  const auto stats = pool.stats();
  ASSERT_THAT(stats.each_worker, SizeIs(2));
  EXPECT_EQ(stats.each_worker[0].tasks_done, 3U);
  EXPECT_EQ(stats.each_worker[1].tasks_done, 1U);
  for (const auto& each : stats.each_worker) {
    EXPECT_EQ(each.pid, pool.workers()[each.index].pid);
    EXPECT_EQ(each.incarnation, 1U);
    EXPECT_EQ(each.processes.started, 1U);
    EXPECT_EQ(each.working, 0ns);  // nobody has asked for times
    EXPECT_EQ(each.idle, 0ns);
  }
  EXPECT_THAT(stats.slowest, IsEmpty());
}

TEST(WorkerStatistics, TimesAreThoseOfTheTasksWhenTheyAreAskedFor) {
  const pool pool(quiet(2, true));
  pool.with({.label = "slow"}).on(0).apply(take_time, 50'000);
  pool.with({.label = "short"}).on(0).apply(take_time, 1'000);
  pool.on(1).apply([] {});
  const auto stats = pool.stats();
  EXPECT_GE(stats.each_worker[0].working, 51ms);
  EXPECT_LT(stats.each_worker[1].working, stats.each_worker[0].working);
  EXPECT_TRUE(test::eventually([&] { return pool.stats().each_worker[1].idle != 0ns; })) << "counted once it is ready";
  ASSERT_THAT(stats.slowest, SizeIs(3));
  EXPECT_EQ(stats.slowest[0].label, "slow");
  EXPECT_EQ(stats.slowest[0].worker, 0U);
  EXPECT_GE(stats.slowest[0].time, 50ms);
  EXPECT_EQ(stats.slowest[1].label, "short");
}

TEST(WorkerStatistics, StartingTakesAsLongAsTheInitializer) {
  auto options = quiet(1, false);
  options.initializer = [] { ::usleep(20'000); };
  const pool pool(options);
  pool.apply([] {});
  EXPECT_TRUE(test::eventually([&] { return pool.stats().each_worker[0].start_up != 0ns; })) << "it is heard later";
  EXPECT_GE(pool.stats().each_worker[0].start_up, 20ms);
}

TEST(WorkerStatistics, OnlyTheSlowestFewAreKept) {
  const pool pool(quiet(1, true));
  for (int each = 0; each < 20; ++each) pool.apply(take_time, each == 12 ? 20'000 : 0);
  const auto slowest = pool.stats().slowest;
  ASSERT_THAT(slowest, SizeIs(task_timing::most_slow_tasks));
  EXPECT_EQ(slowest[0].task, 13U);
  EXPECT_TRUE(std::is_sorted(slowest.begin(), slowest.end(), [](auto& a, auto& b) { return a.time > b.time; }));
}

TEST(WorkerStatistics, ATaskThatRunsCountsAsWork) {
  const pool pool(quiet(1, true));
  auto running = pool.apply_async(take_time, 2'000'000);
  EXPECT_TRUE(test::eventually([&] { return pool.stats().each_worker[0].working != 0ns; }));
  EXPECT_FALSE(running.wait_for(0s));
  running.cancel(cancellation::kill);
}

TEST(WorkerStatistics, DeathsAreCountedForTheWorkerThatDied) {
  const pool pool(quiet(2, false));
  EXPECT_THROW(pool.on(1).apply([] { ::raise(SIGKILL); }), worker_died);
  pool.on(1).apply([] {});  // by its successor
  const auto stats = pool.stats();
  EXPECT_EQ(stats.each_worker[0].processes.killed, 0U);
  EXPECT_EQ(stats.each_worker[1].processes.killed, 1U);
  EXPECT_EQ(stats.each_worker[1].processes.started, 2U);
  EXPECT_EQ(stats.each_worker[1].incarnation, 2U);
}

TEST(WorkerStatistics, BytesOfArgumentsAreThoseCopiedAndThoseReferenced) {
  const pool pool(quiet(1, false));
  const auto size_of = [](const std::vector<char>& bytes) { return bytes.size(); };
  EXPECT_EQ(pool.apply(size_of, std::vector<char>(100'000)), 100'000U);
  const auto copied = pool.stats().tasks.argument_bytes_copied;
  EXPECT_GE(copied, 100'000U);
  EXPECT_LT(copied, 101'000U);
  const auto shared = pool.share(std::array<char, 50'000>());
  EXPECT_EQ(pool.apply([](const shared_object<std::array<char, 50'000>>& it) { return it->size(); }, shared), 50'000U);
  EXPECT_GE(pool.stats().tasks.argument_bytes_referenced, 50'000U);
  EXPECT_LT(pool.stats().tasks.argument_bytes_copied, copied + 1'000);
  pool.map([](double x) { return x; }, std::vector<double>(10'000));
  EXPECT_GE(pool.stats().tasks.argument_bytes_copied, copied + 80'000);
}

// ---- memory

constexpr std::size_t eight_mebibytes = std::size_t{8} << 20U;

// Sleeps nowhere: who sleeps gives back what is kept warm.
void use_memory_until(const event& done, const event& used) {
  domain::of_program()->blocks().allocate_shared(eight_mebibytes).reset();
  used.set();
  while (!done.is_set()) ::usleep(1000);
}

TEST(MemoryStatistics, SayWhatIsUsedAndWhoKeepsWhatWarmAndItIsGivenBackWhenNobodyUsesIt) {
  const pool pool(quiet(2, false));
  const event done;
  const event used;
  const auto held = domain::of_program()->blocks().allocate_shared(2 * eight_mebibytes);
  const auto task = pool.on(1).apply_async(use_memory_until, done, used);
  used.wait();
  const auto stats = pool.stats();
  EXPECT_EQ(stats.each_worker[0].warm_bytes, 0U);
  EXPECT_GE(stats.each_worker[1].warm_bytes, eight_mebibytes);
  EXPECT_GE(stats.each_worker[1].held_bytes, stats.each_worker[1].warm_bytes);
  EXPECT_GE(stats.memory.warm_bytes, eight_mebibytes);
  EXPECT_GE(stats.memory.in_use_bytes(), 2 * eight_mebibytes);
  EXPECT_EQ(stats.memory.in_use_bytes() + stats.memory.warm_bytes, stats.memory.held_bytes);
  const auto page = to_prometheus(stats, "p");
  EXPECT_THAT(page, HasSubstr("\nmuster_worker_warm_bytes{pool=\"p\",worker=\"1\"} " +
                              std::to_string(stats.each_worker[1].warm_bytes) + '\n'));
  done.set();
  domain::of_program()->blocks().allocate_shared(eight_mebibytes).reset();
  EXPECT_TRUE(test::eventually([&] { return pool.stats().memory.warm_bytes == 0; }));
  EXPECT_EQ(pool.stats().each_worker[1].warm_bytes, 0U);
}

// ---- Prometheus

// The lines of one name.
std::vector<std::string> samples_of(const std::string& page, const std::string& name) {
  std::vector<std::string> found;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + '{')) found.push_back(line);
  }
  return found;
}

TEST(Prometheus, EverySampleHasAFamilyThatWasAnnouncedOnce) {
  const pool pool(quiet(2, true));
  pool.apply([] {});
  const auto page = to_prometheus(pool.stats(), "p");
  EXPECT_THAT(page, EndsWith("\n"));
  std::set<std::string> typed;
  std::string last;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash;
    std::string word;
    std::string name;
    if (line.starts_with("# ")) {
      words >> hash >> word >> name;
      std::string type;
      words >> type;
      if (word == "HELP") continue;
      ASSERT_EQ(word, "TYPE");
      EXPECT_TRUE(typed.insert(name).second) << name;
      EXPECT_EQ(type == "counter", name.ends_with("_total")) << name;
      EXPECT_THAT(page, HasSubstr("# HELP " + name + ' '));
      last = name;
    } else {
      EXPECT_TRUE(line.starts_with(last + "{pool=\"p\"")) << line;
      std::size_t used = 0;
      const auto value = line.substr(line.rfind(' ') + 1);
      static_cast<void>(std::stod(value, &used));
      EXPECT_EQ(used, value.size()) << line;
    }
  }
}

TEST(Prometheus, HasWhatWasCounted) {
  pool_statistics stats{};
  stats.tasks.accepted = 12;
  stats.pending = 3;
  stats.each_worker.resize(2);
  stats.each_worker[1].index = 1;
  stats.each_worker[1].working = 1500ms;
  stats.each_worker[1].processes.killed = 4;
  stats.memory.held_bytes = 300;
  stats.memory.warm_bytes = 100;
  const auto page = to_prometheus(stats, "a");
  EXPECT_THAT(page, HasSubstr("\nmuster_tasks_accepted_total{pool=\"a\"} 12\n"));
  EXPECT_THAT(page, HasSubstr("\nmuster_tasks_pending{pool=\"a\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("\nmuster_memory_in_use_bytes{pool=\"a\"} 200\n"));
  EXPECT_THAT(page, HasSubstr("\nmuster_memory_warm_bytes{pool=\"a\"} 100\n"));
  EXPECT_THAT(page, HasSubstr("\nmuster_worker_working_seconds_total{pool=\"a\",worker=\"1\"} 1.5\n"));
  EXPECT_THAT(page, HasSubstr("\nmuster_worker_ends_total{pool=\"a\",worker=\"1\",reason=\"killed\"} 4\n"));
  EXPECT_THAT(samples_of(page, "muster_worker_up"), SizeIs(2));
}

TEST(Prometheus, LabelsAreEscaped) {
  const auto page = to_prometheus({}, "a\"b\\c\nd");
  EXPECT_THAT(page, HasSubstr(R"({pool="a\"b\\c\nd"})"));
}

}  // namespace
}  // namespace muster::statistics_test
