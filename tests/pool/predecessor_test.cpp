// SPDX-License-Identifier: BSL-1.0
// The results that the predecessor's pool tests expect, with two workers, as theirs.
#include <algorithm>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

namespace muster {
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

}  // namespace
}  // namespace muster
