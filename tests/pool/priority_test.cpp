// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/queue/event.hpp>

#include "waiting_tasks.hpp"

namespace muster::priority_test {
namespace {

using test::occupied;
using test::quiet;

// Tasks of one worker in the order in which they are run.
int next_number() {
  static int number = 0;  // of this process
  return number++;
}

std::vector<future<int>> submit(const submitter& to, int count) {
  std::vector<future<int>> futures;
  for (int each = 0; each < count; ++each) futures.push_back(to.apply_async(next_number));
  return futures;
}

std::vector<int> values_of(std::vector<future<int>>& futures) {
  std::vector<int> values;
  for (auto& each : futures) values.push_back(each.get());
  return values;
}

TEST(Priority, TheMostUrgentOfThoseThatWaitComesFirst) {
  const pool pool(quiet(1));
  std::vector<future<int>> low;
  std::vector<future<int>> normal;
  std::vector<future<int>> high;
  {
    const occupied until_all_wait(pool);
    low = submit(pool.with({.priority = priority::low}), 4);
    normal = submit(pool.with({}), 4);
    high = submit(pool.with({.priority = priority::high}), 4);
  }
  EXPECT_THAT(values_of(high), testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values_of(normal), testing::ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(values_of(low), testing::ElementsAre(8, 9, 10, 11));
}

TEST(Priority, OneThatCameLastOvertakesThousands) {
  const pool pool(quiet(1));
  std::vector<future<int>> others;
  future<int> urgent;
  {
    const occupied until_all_wait(pool);
    others = submit(pool.with({.priority = priority::low}), 5000);  // more than there are slots
    urgent = pool.with({.priority = priority::high}).apply_async(next_number);
  }
  EXPECT_LE(urgent.get(), 2);
  for (auto& each : others) each.get();
}

TEST(Priority, TheLeastUrgentDoNotStarve) {
  const pool pool(quiet(1));
  std::vector<future<int>> urgent;
  future<int> patient;
  {
    const occupied until_all_wait(pool);
    urgent = submit(pool.with({.priority = priority::high}), 3000);
    patient = pool.with({.priority = priority::low}).apply_async(next_number);
  }
  EXPECT_LE(patient.get(), 1100) << "it waits for a slot, and then for 16 looks";
  for (auto& each : urgent) each.get();
}

TEST(Priority, OfMapsIsThatOfTheirElements) {
  const pool pool(quiet(1));
  const auto number_of = [](int /*x*/) { return next_number(); };
  const std::vector<int> input(20);
  future<std::vector<int>> patient;
  future<std::vector<int>> urgent;
  {
    const occupied until_both_wait(pool);
    patient = pool.with({.priority = priority::low, .chunk = 1}).map_async(number_of, input);
    urgent = pool.with({.priority = priority::high, .chunk = 20}).map_async(number_of, input);
  }
  EXPECT_LE(urgent.get().front(), 1);
  EXPECT_GE(patient.get().back(), 39);
}

}  // namespace
}  // namespace muster::priority_test
