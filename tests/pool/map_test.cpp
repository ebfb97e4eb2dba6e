// SPDX-License-Identifier: BSL-1.0
#include <sched.h>

#include <csignal>
#include <list>
#include <map>
#include <numeric>
#include <ranges>
#include <set>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

#include "processes.hpp"

namespace muster::map_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

int square(int x) { return x * x; }
int fail_at_seven(int x) { return x == 7 ? throw std::runtime_error("seven") : x; }
int die_at_seven(int x) {
  if (x == 7) ::raise(SIGKILL);
  return x;
}
std::string exclaim(const std::string& text) { return text + "!"; }

std::vector<int> numbers(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

class Map : public testing::Test {
protected:
  pool pool_{{.workers = 2, .quarantine_after = 0, .log = [](log_level, std::string_view) {}}};
};

TEST_F(Map, KeepsTheOrderOfTheElements) {
  const auto squares = pool_.map(square, numbers(5000));
  ASSERT_EQ(squares.size(), 5000U);
  for (int each = 0; each < 5000; ++each) ASSERT_EQ(squares[static_cast<std::size_t>(each)], each * each);
}

TEST_F(Map, OfNothingIsNothing) {
  EXPECT_TRUE(pool_.map(square, std::vector<int>()).empty());
  EXPECT_TRUE(pool_.map(exclaim, std::vector<std::string>()).empty());
}

TEST_F(Map, TakesAllKindsOfRanges) {
  EXPECT_THAT(pool_.map(square, {1, 2, 3}), ElementsAre(1, 4, 9));
  EXPECT_THAT(pool_.map(square, std::list{1, 2}), ElementsAre(1, 4));
  EXPECT_THAT(pool_.map(square, std::views::iota(1, 4)), ElementsAre(1, 4, 9));
  EXPECT_THAT(pool_.map(square, numbers(4) | std::views::transform([](int x) { return x + 1; })),
              ElementsAre(1, 4, 9, 16));
  EXPECT_THAT(pool_.map([](bool b) { return !b; }, std::vector<bool>{true, false}), ElementsAre(false, true));
  EXPECT_THAT(
      pool_.map([](std::pair<std::string, int> p) { return p.second; }, std::map<std::string, int>{{"a", 1}, {"b", 2}}),
      ElementsAre(1, 2));
}

TEST_F(Map, ElementsAndResultsOfVariableSize) {
  std::vector<std::string> words;
  for (int each = 0; each < 1000; ++each) words.push_back(std::string(static_cast<std::size_t>(each % 100), 'a'));
  const auto all = pool_.map(exclaim, words);
  ASSERT_EQ(all.size(), 1000U);
  for (std::size_t each = 0; each < 1000; ++each) ASSERT_EQ(all[each], words[each] + "!");
}

TEST_F(Map, ResultsLargerThanTheirFirstBlock) {
  const auto all = pool_.with({.chunk = 50}).map([](int x) { return std::vector<int>(1000, x); }, numbers(100));
  ASSERT_EQ(all.size(), 100U);
  EXPECT_EQ(all[99], std::vector<int>(1000, 99));
}

TEST_F(Map, OfAFunctionWithoutResultReturnsNothing) {
  static_assert(std::is_void_v<decltype(pool_.map([](int) {}, std::vector<int>()))>);
  pool_.map([](int) {}, numbers(100));
  EXPECT_THROW(pool_.map(
                   [](int x) {
                     if (x == 50) throw std::runtime_error("fifty");
                   },
                   numbers(100)),
               std::runtime_error);
}

TEST_F(Map, AGivenChunkSizeGivesTheSame) {
  for (const std::size_t chunk : {1U, 2U, 7U, 1000U}) {
    EXPECT_EQ(pool_.with({.chunk = chunk}).map(square, numbers(50)), pool_.map(square, numbers(50))) << chunk;
  }
}

TEST_F(Map, BoundValuesAreSharedByAllElements) {
  const auto add = muster::bind_front(
      [](const std::vector<int>& table, int x) { return table.at(static_cast<std::size_t>(x)) + x; }, numbers(100));
  const auto sums = pool_.map(add, numbers(100));
  EXPECT_EQ(sums[30], 60);
}

struct counted {
  static inline int loads = 0;
  int value = 0;
  template <class Archive>
  void save(Archive& archive) const {
    archive(value);
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(value);
    ++loads;
  }
};

TEST_F(Map, BoundValuesAreDecodedOnceByAWorkerThatIsKeptBusy) {
  pool one({.workers = 1});
  auto first = one.apply_async([] {
    while (!this_task::stop_requested()) ::sched_yield();
  });
  auto loads =
      one.with({.chunk = 10})
          .map_async(muster::bind_front([](const counted&, int) { return counted::loads; }, counted{1}), numbers(100));
  first.cancel();  // now that all chunks are there
  EXPECT_EQ(loads.get().back(), 1);
}

TEST_F(Map, BoundValuesAreDecodedOnceByEachOfSeveralWorkers) {
  pool three({.workers = 3});
  std::vector<future<void>> busy;
  for (std::size_t worker = 0; worker < 3; ++worker) {
    busy.push_back(three.on(worker).apply_async([] {
      while (!this_task::stop_requested()) ::sched_yield();
    }));
  }
  const auto loads_of = [](const counted& in, int) { return std::pair(::getpid(), counted::loads * in.value); };
  auto all = three.with({.chunk = 5}).map_async(muster::bind_front(loads_of, counted{1}), numbers(150));
  for (auto& each : busy) each.cancel();  // now that all thirty chunks are there
  std::set<std::pair<pid_t, int>> seen;
  for (const auto& each : all.get()) seen.insert(each);
  EXPECT_LE(seen.size(), 3U);
  for (const auto& [pid, loads] : seen) EXPECT_EQ(loads, 1) << pid;
}

TEST_F(Map, StarmapUnpacksTuples) {
  std::vector<std::tuple<int, std::string>> pairs = {{1, "a"}, {2, "b"}};
  EXPECT_THAT(
      pool_.starmap([](int n, const std::string& s) { return std::string(static_cast<std::size_t>(n), s[0]); }, pairs),
      ElementsAre("a", "bb"));
}

TEST_F(Map, TheFirstFailureIsThrownWithItsElement) {
  try {
    pool_.with({.label = "sevens"}).map(fail_at_seven, numbers(1000));
    FAIL();
  } catch (const std::runtime_error& caught) {
    EXPECT_STREQ(caught.what(), "seven");
    const auto* info = remote_info(caught);
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->place().element, 7U);
    EXPECT_EQ(info->place().label, "sevens");
    EXPECT_GT(info->place().pid, 0);
  }
  EXPECT_EQ(pool_.map(square, numbers(3))[2], 4);
}

TEST_F(Map, AFailureKeepsTheRestFromBeingBegun) {
  EXPECT_THROW(pool_.with({.chunk = 10})
                   .map(
                       [](int x) {
                         if (x == 0) throw std::runtime_error("at once");
                         test::work_for(1ms);
                       },
                       numbers(10000)),
               std::runtime_error);
  pool_.drain();  // ten seconds of work if it were all done
  EXPECT_LT(pool_.stats().tasks.ended, 100U);
}

TEST_F(Map, CollectErrorsGivesAResultForEveryElement) {
  const auto results = pool_.collect_errors().map(fail_at_seven, numbers(20));
  ASSERT_EQ(results.size(), 20U);
  for (int each = 0; each < 20; ++each) {
    const auto& result = results[static_cast<std::size_t>(each)];
    if (each == 7) {
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().message(), "seven");
      EXPECT_EQ(result.error().place().element, 7U);
    } else {
      ASSERT_TRUE(result);
      EXPECT_EQ(*result, each);
    }
  }
}

TEST_F(Map, CollectErrorsWhenEverythingFails) {
  const auto results =
      pool_.collect_errors().map([](int) -> std::string { throw std::logic_error("no"); }, numbers(200));
  ASSERT_EQ(results.size(), 200U);
  for (const auto& each : results) EXPECT_EQ(each.error().type_name(), "std::logic_error");
}

TEST_F(Map, ADeathCostsOneElementOfAChunk) {
  const auto results = pool_.with({.chunk = 100}).collect_errors().map(die_at_seven, numbers(100));
  ASSERT_EQ(results.size(), 100U);
  for (int each = 0; each < 100; ++each) {
    const auto& result = results[static_cast<std::size_t>(each)];
    if (each == 7) {
      EXPECT_EQ(result.error(), errc::worker_died);
      EXPECT_EQ(result.error().status().signal(), SIGKILL);
      EXPECT_THAT(result.error().describe(), HasSubstr("element 7"));
    } else {
      ASSERT_TRUE(result) << each << ": " << result.error().describe();
      EXPECT_EQ(*result, each);
    }
  }
}

TEST_F(Map, ADeathCostsOneElementAlsoWithEncodedResults) {
  const auto results = pool_.with({.chunk = 50})
                           .collect_errors()
                           .map(
                               [](int x) {
                                 if (x % 10 == 7) ::raise(SIGKILL);
                                 return std::string(static_cast<std::size_t>(x * 100), 'r');
                               },
                               numbers(50));
  for (int each = 0; each < 50; ++each) {
    const auto& result = results[static_cast<std::size_t>(each)];
    if (each % 10 == 7) {
      EXPECT_EQ(result.error(), errc::worker_died);
    } else {
      ASSERT_TRUE(result) << each << ": " << result.error().describe();
      EXPECT_EQ(result->size(), static_cast<std::size_t>(each * 100));
    }
  }
  EXPECT_TRUE(test::eventually([&] { return pool_.stats().memory.live_blocks == 0; }));
}

TEST_F(Map, ADeathFailsAMapThatDoesNotCollect) { EXPECT_THROW(pool_.map(die_at_seven, numbers(100)), worker_died); }

TEST_F(Map, RetriesRunTheElementAgain) {
  // Dies the first two times: every death leaves a mark in a file that the attempts share.
  const auto die_twice = muster::bind_front(
      [](const std::string& file, int x) {
        if (x != 5) return x;
        std::FILE* const log = std::fopen(file.c_str(), "a+");
        std::fputc('x', log);
        std::fflush(log);
        const auto attempts = std::ftell(log);
        std::fclose(log);
        if (attempts <= 2) ::raise(SIGKILL);
        return 100 + static_cast<int>(attempts);
      },
      "/tmp/muster-test-attempts-" + std::to_string(::getpid()));
  const auto file = std::get<0>(die_twice.bound);
  EXPECT_EQ(pool_.with({.retries = 2}).map(die_twice, numbers(10))[5], 103);
  std::remove(file.c_str());
  EXPECT_THROW(pool_.with({.retries = 1}).map(die_twice, numbers(10)), worker_died);
  std::remove(file.c_str());
}

struct refuses_three {
  int value = 0;
  template <class Archive>
  void save(Archive& archive) const {
    archive(value);
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(value);
    if (value == 3) throw std::runtime_error("three is not allowed here");
  }
};

TEST_F(Map, AnElementThatCannotBeDecodedFailsAlone) {
  std::vector<refuses_three> elements;
  for (const int each : numbers(6)) elements.push_back({each});
  const auto results =
      pool_.with({.chunk = 6}).collect_errors().map([](const refuses_three& e) { return e.value; }, elements);
  for (std::size_t each = 0; each < 6; ++each) {
    if (each == 3) {
      EXPECT_EQ(results[each].error(), errc::not_serializable);
      EXPECT_THAT(results[each].error().message(), HasSubstr("three is not allowed here"));
    } else {
      EXPECT_EQ(*results[each], static_cast<int>(each));
    }
  }
}

// Its own function throws when the third is decoded.
struct picky {
  int x = 0;
  template <class Archive>
  void save(Archive& archive) const {
    archive(x);
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(x);
    if (x == 3) throw std::runtime_error("three is not taken");
  }
};

void expect_that_only_the_third_failed(const std::vector<result<picky>>& all) {
  ASSERT_EQ(all.size(), 10U);
  for (std::size_t each = 0; each < all.size(); ++each) {
    ASSERT_EQ(all[each].has_value(), each != 3);
    if (each != 3) continue;
    EXPECT_THAT(all[each].error().describe(), HasSubstr("three is not taken"));
    EXPECT_EQ(all[each].error().place().element, 3U);
  }
}

TEST_F(Map, AResultWhoseOwnFunctionThrowsFailsAlone) {
  const auto make = [](int x) { return picky{x}; };
  expect_that_only_the_third_failed(pool_.collect_errors().map(make, numbers(10)));
  const auto bound =
      muster::bind_front([](const std::string& /*large*/, int x) { return picky{x}; }, std::string(10'000, 'x'));
  std::vector<result<picky>> streamed;
  for (auto& each : pool_.imap(bound, numbers(10)).as_results()) streamed.push_back(each);
  expect_that_only_the_third_failed(streamed);
  EXPECT_THROW(pool_.map(make, numbers(10)), std::exception);
}

TEST_F(Map, ManyMapsAtOnce) {
  std::vector<future<std::vector<int>>> maps;
  for (int each = 0; each < 20; ++each) maps.push_back(pool_.map_async(square, numbers(500)));
  for (auto& each : maps) EXPECT_EQ(each.get()[20], 400);
}

TEST_F(Map, ACancelledMapEndsSoon) {
  auto slow = pool_.with({.chunk = 1}).map_async([](int) { test::work_for(10ms); }, numbers(10000));
  EXPECT_TRUE(slow.cancel());
  EXPECT_EQ(slow.get_result().error(), errc::cancelled);
}

TEST_F(Map, ADroppedMapDoesNoHarm) {
  for (int each = 0; each < 50; ++each) static_cast<void>(pool_.map_async(square, numbers(100)));
  EXPECT_EQ(pool_.map(square, numbers(3))[2], 4);
}

// Predecessor's list, 8.
TEST_F(Map, AsyncReturnsBeforeTheWorkIsDone) {
  auto slow = pool_.map_async(
      [](int x) {
        test::work_for(10ms);
        return x;
      },
      numbers(200));
  EXPECT_FALSE(slow.ready()) << "two seconds of work cannot be done";
  EXPECT_EQ(slow.get()[199], 199);
}

TEST_F(Map, WorksWhileAllSlotsAreTakenByResultsThatNobodyHasTaken) {
  std::vector<future<int>> untaken;
  for (int each = 0; each < 1022; ++each) untaken.push_back(pool_.apply_async(square, each));
  for (auto& each : untaken) each.wait();
  EXPECT_EQ(pool_.with({.chunk = 1}).map(square, numbers(100))[99], 99 * 99);
  EXPECT_EQ(untaken[30].get(), 900);
}

TEST_F(Map, MoreChunksAtOnceThanThereAreSlots) {
  pool small({.workers = 65});
  EXPECT_EQ(small.with({.chunk = 1}).map(square, numbers(3000))[2999], 2999 * 2999);
}

}  // namespace
}  // namespace muster::map_test
