// SPDX-License-Identifier: BSL-1.0
// The results that the predecessor's pool tests expect, with two workers, as theirs.
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

namespace muster::predecessor_test {
namespace {

using testing::ElementsAre;

double sum_of_doubled(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0, [](double sum, double each) { return sum + 2 * each; });
}
double sum_of_both(const std::vector<double>& x, double factor) { return sum_of_doubled(x) * factor; }

std::vector<std::vector<double>> multiples_of_ones() {
  std::vector<std::vector<double>> all;
  for (int i = 0; i < 5; ++i) all.emplace_back(10, i);
  return all;
}

class PredecessorPool : public testing::Test {
protected:
  pool pool_{{.workers = 2}};
};

TEST_F(PredecessorPool, Apply) { EXPECT_EQ(pool_.apply(sum_of_doubled, std::vector<double>(10, 1.0)), 20); }

TEST_F(PredecessorPool, ApplyAsync) {
  EXPECT_EQ(pool_.apply_async(sum_of_doubled, std::vector<double>(10, 1.0)).get(), 20);
}

TEST_F(PredecessorPool, Map) {
  EXPECT_THAT(pool_.map(sum_of_doubled, multiples_of_ones()), ElementsAre(0, 20, 40, 60, 80));
}

TEST_F(PredecessorPool, MapAsync) {
  EXPECT_THAT(pool_.map_async(sum_of_doubled, multiples_of_ones()).get(), ElementsAre(0, 20, 40, 60, 80));
}

TEST_F(PredecessorPool, Imap) {
  std::vector<double> results;
  for (const double each : pool_.imap(sum_of_doubled, multiples_of_ones())) results.push_back(each);
  EXPECT_THAT(results, ElementsAre(0, 20, 40, 60, 80));
}

TEST_F(PredecessorPool, ImapUnordered) {
  std::vector<double> results;
  for (const double each : pool_.imap_unordered(sum_of_doubled, multiples_of_ones())) results.push_back(each);
  std::sort(results.begin(), results.end());
  EXPECT_THAT(results, ElementsAre(0, 20, 40, 60, 80));
}

TEST_F(PredecessorPool, Starmap) {
  std::vector<std::pair<std::vector<double>, double>> pairs;
  for (const auto& each : multiples_of_ones()) pairs.emplace_back(each, 1.0);
  EXPECT_THAT(pool_.starmap(sum_of_both, pairs), ElementsAre(0, 20, 40, 60, 80));
  EXPECT_THAT(pool_.starmap_async(sum_of_both, pairs).get(), ElementsAre(0, 20, 40, 60, 80));
}

// Where its own pool respawned a worker with the wrong number, or its turnover took a tenth of a second.
TEST(PredecessorPoolOfShortLives, AThousandTasksRunInAThousandProcesses) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::size_t tasks = 50;  // starting takes long
#else
  constexpr std::size_t tasks = 1000;
#endif
  const pool pool({.workers = 2, .max_tasks_per_worker = 1});
  std::set<pid_t> processes;
  for (const auto pid : pool.with({.chunk = 1}).map([](int) { return ::getpid(); }, std::vector<int>(tasks))) {
    processes.insert(pid);
  }
  EXPECT_EQ(processes.size(), tasks);
}

}  // namespace
}  // namespace muster::predecessor_test
