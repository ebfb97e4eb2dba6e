// SPDX-License-Identifier: BSL-1.0
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/effective_cpus.hpp>
#include <muster/pool/pool.hpp>
#include <muster/queue/event.hpp>

namespace muster::apply_test {
namespace {

using testing::HasSubstr;

int add(int a, int b) { return a + b; }

struct greeter {
  std::string word;
  std::string operator()(const std::string& name) const { return word + ' ' + name; }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(word);
  }
};

struct image {
  int width = 0;
  std::vector<float> pixels;
  [[nodiscard]] std::size_t size() const { return pixels.size(); }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(width, pixels);
  }
};

struct plain {
  int a;
  double b;
  friend bool operator==(const plain&, const plain&) = default;
};

class Apply : public testing::Test {
protected:
  pool pool_{{.workers = 2}};
};

TEST_F(Apply, RunsInAnotherProcess) {
  EXPECT_NE(pool_.apply([] { return ::getpid(); }), ::getpid());
}

TEST_F(Apply, TakesFunctionsLambdasAndFunctors) {
  EXPECT_EQ(pool_.apply(add, 2, 3), 5);
  EXPECT_EQ(pool_.apply(&add, 2, 3), 5);
  EXPECT_EQ(pool_.apply([](int a, int b) { return a * b; }, 2, 3), 6);
  EXPECT_EQ(pool_.apply([](auto a, auto b) { return a * b; }, 2, 3.5), 7);
  EXPECT_EQ(pool_.apply(greeter{"good day"}, "you"), "good day you");
  EXPECT_EQ(pool_.apply(std::plus<>(), 2, 3), 5);
}

TEST_F(Apply, TakesBoundArgumentsAndTrivialCaptures) {
  EXPECT_EQ(pool_.apply(muster::bind_front(add, 40), 2), 42);
  EXPECT_EQ(pool_.apply(muster::bind_front([](const std::string& a, const std::string& b) { return a + b; }, "a", "b")),
            "ab");
  int offset = 10;
  EXPECT_EQ(pool_.apply(trivial_capture([offset](int x) { return x + offset; }), 5), 15);
}

TEST_F(Apply, TakesMembers) {
  EXPECT_EQ(pool_.apply(fn<&image::size>, image{.width = 1, .pixels = {1, 2, 3}}), 3U);
  EXPECT_EQ(pool_.apply(fn<&image::width>, image{.width = 7, .pixels = {}}), 7);
}

TEST_F(Apply, ResultsOfAllKindsComeBack) {
  pool_.apply([] {});
  EXPECT_TRUE(pool_.apply([] { return true; }));
  EXPECT_EQ(pool_.apply([] { return plain{1, 2.5}; }), (plain{1, 2.5}));
  EXPECT_EQ(pool_.apply([] { return std::string(100000, 'x'); }), std::string(100000, 'x'));
  EXPECT_EQ(pool_.apply([] { return std::map<std::string, std::vector<int>>{{"a", {1, 2}}}; }),
            (std::map<std::string, std::vector<int>>{{"a", {1, 2}}}));
  EXPECT_EQ(*pool_.apply([] { return std::make_unique<int>(4); }), 4);
  EXPECT_EQ(pool_.apply(
                [](const std::string& s) -> const std::string& {
                  static std::string kept;
                  return kept = s + "!";
                },
                "by reference"),
            "by reference!");
  EXPECT_EQ(pool_.apply([](std::filesystem::path p) { return p / "b"; }, std::filesystem::path("/a")), "/a/b");
}

TEST_F(Apply, ArgumentsArriveAsCopiesThatTheFunctionMayKeep) {
  std::string local = "mine";
  EXPECT_EQ(pool_.apply([](std::string&& s) { return std::move(s) + " taken"; }, local), "mine taken");
  EXPECT_EQ(local, "mine");
  EXPECT_EQ(pool_.apply([](std::unique_ptr<int> p) { return *p; }, std::make_unique<int>(9)), 9);
}

TEST_F(Apply, SeveralMebibytesTravelBothWays) {
  std::vector<std::uint32_t> numbers(3'000'000);
  std::iota(numbers.begin(), numbers.end(), 0U);
  const auto back = pool_.apply(
      [](std::vector<std::uint32_t> v) {
        for (auto& each : v) ++each;
        return v;
      },
      numbers);
  EXPECT_EQ(back.size(), numbers.size());
  EXPECT_EQ(back.back(), 3'000'000U);
}

TEST_F(Apply, ManyThreadsMaySubmit) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      for (int round = 0; round < 300; ++round) {
        if (pool_.apply(add, seed, round) != seed + round) ++wrong;
      }
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Apply, AStandardExceptionComesBackAsItself) {
  try {
    pool_.with({.label = "index it"}).apply([] { return std::vector<int>().at(3); });
    FAIL();
  } catch (const std::out_of_range& caught) {
    const auto* info = remote_info(caught);
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->place().label, "index it");
    EXPECT_GE(info->place().worker, 0);
    EXPECT_GT(info->place().pid, 0);
    EXPECT_THAT(info->describe(), HasSubstr("vector::_M_range_check"));
  }
}

TEST_F(Apply, AnIsolatedPoolSharesNothingAndWorks) {
  pool other({.workers = 1, .arena_bytes = std::size_t{16} << 20U, .isolated = true});
  EXPECT_EQ(other.apply(add, 1, 1), 2);
  EXPECT_EQ(pool_.apply(add, 1, 1), 2);
}

TEST_F(Apply, TwoPoolsOfAProgramWorkSideBySide) {
  pool other({.workers = 1, .name = "other"});
  auto one = pool_.apply_async(add, 1, 1);
  auto two = other.apply_async(add, 2, 2);
  EXPECT_EQ(one.get() + two.get(), 6);
}

TEST_F(Apply, APoolMayBeMadeInsideATask) {
  EXPECT_EQ(pool_.apply([] {
    pool inner({.workers = 1, .arena_bytes = std::size_t{16} << 20U});
    return inner.apply(add, 20, 22);
  }),
            42);
}

TEST_F(Apply, StatisticsCountTasks) {
  for (int round = 0; round < 10; ++round) pool_.apply(add, 1, round);
  const auto stats = pool_.stats();
  EXPECT_EQ(stats.tasks.accepted, 10U);
  EXPECT_EQ(stats.tasks.ended, 10U);
  EXPECT_EQ(stats.pending, 0U);
  EXPECT_EQ(stats.workers.started, 2U);
  EXPECT_EQ(pool_.size(), 2U);
  EXPECT_EQ(pool_.workers().size(), 2U);
}

TEST_F(Apply, TheMemoryOfPayloadsIsFreed) {
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(pool_.apply([](const std::string& s) { return s; }, std::string(100000, 'x')).size(), 100000U);
  }
  EXPECT_EQ(pool_.stats().memory.live_blocks, 0U);
}

// Who waits while all processors are busy may sleep on a later task first.
TEST_F(Apply, ATaskIsWaitedForThoughNoneOfManyBehindItEnds) {
  const event end;
  const auto wait_for = [](const event& until) { until.wait(); };
  const auto workers = static_cast<unsigned>(effective_cpus() + 1);
  const pool pool({.workers = workers});
  std::vector<future<void>> stuck;
  for (unsigned each = 1; each < workers; ++each) stuck.push_back(pool.apply_async(wait_for, end));
  auto quick = pool.apply_async([] { return 7; });
  for (int each = 0; each < 100; ++each) stuck.push_back(pool.apply_async(wait_for, end));
  EXPECT_EQ(quick.get(), 7);
  end.set();
  for (auto& each : stuck) each.get();
}

}  // namespace
}  // namespace muster::apply_test
