// SPDX-License-Identifier: BSL-1.0
// The results that the predecessor's pool tests expect, with two workers, as theirs.
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <type_traits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/ctx_pool.hpp>
#include <muster/pool/ctx_thread_pool.hpp>
#include <muster/pool/p2p_pool.hpp>
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

template <class Pool>
class PredecessorPool : public testing::Test {
protected:
  const Pool pool_{pool_options{.workers = 2}};
};
using pools = testing::Types<pool, p2p_pool>;
TYPED_TEST_SUITE(PredecessorPool, pools);

TYPED_TEST(PredecessorPool, Apply) { EXPECT_EQ(this->pool_.apply(sum_of_doubled, std::vector<double>(10, 1.0)), 20); }

TYPED_TEST(PredecessorPool, ApplyAsync) {
  EXPECT_EQ(this->pool_.apply_async(sum_of_doubled, std::vector<double>(10, 1.0)).get(), 20);
}

TYPED_TEST(PredecessorPool, Map) {
  EXPECT_THAT(this->pool_.map(sum_of_doubled, multiples_of_ones()), ElementsAre(0, 20, 40, 60, 80));
}

TYPED_TEST(PredecessorPool, MapAsync) {
  EXPECT_THAT(this->pool_.map_async(sum_of_doubled, multiples_of_ones()).get(), ElementsAre(0, 20, 40, 60, 80));
}

TYPED_TEST(PredecessorPool, Imap) {
  std::vector<double> results;
  for (const double each : this->pool_.imap(sum_of_doubled, multiples_of_ones())) results.push_back(each);
  EXPECT_THAT(results, ElementsAre(0, 20, 40, 60, 80));
}

TYPED_TEST(PredecessorPool, ImapUnordered) {
  std::vector<double> results;
  for (const double each : this->pool_.imap_unordered(sum_of_doubled, multiples_of_ones())) results.push_back(each);
  std::sort(results.begin(), results.end());
  EXPECT_THAT(results, ElementsAre(0, 20, 40, 60, 80));
}

TYPED_TEST(PredecessorPool, Starmap) {
  std::vector<std::pair<std::vector<double>, double>> pairs;
  for (const auto& each : multiples_of_ones()) pairs.emplace_back(each, 1.0);
  EXPECT_THAT(this->pool_.starmap(sum_of_both, pairs), ElementsAre(0, 20, 40, 60, 80));
  EXPECT_THAT(this->pool_.starmap_async(sum_of_both, pairs).get(), ElementsAre(0, 20, 40, 60, 80));
}

TYPED_TEST(PredecessorPool, LambdaAndLocal) {
  const std::vector<double> local(10, 1.0);
  const auto sum_with = muster::bind_front(
      [](const std::vector<double>& y, const std::vector<double>& x) {
        return std::inner_product(x.begin(), x.end(), y.begin(), 0.0, std::plus<>(), std::plus<>());
      },
      local);
  EXPECT_THAT(this->pool_.map(sum_with, multiples_of_ones()), ElementsAre(10, 20, 30, 40, 50));
  std::vector<std::pair<std::vector<double>, std::vector<double>>> pairs;
  for (const auto& each : multiples_of_ones()) pairs.emplace_back(each, each);
  const auto sum = [](const std::vector<double>& x, const std::vector<double>& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0, std::plus<>(), std::plus<>());
  };
  EXPECT_THAT(this->pool_.starmap(sum, pairs), ElementsAre(0, 20, 40, 60, 80));
}

TYPED_TEST(PredecessorPool, SizeAndNoCopies) {
  EXPECT_EQ(this->pool_.size(), 2U);
  static_assert(!std::is_copy_constructible_v<TypeParam> && !transportable<TypeParam>);
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

// Ten elements see the contexts of their pool only; two pools of two contexts each do not mix them.
template <class Pool>
class PredecessorContexts : public testing::Test {
protected:
  static Pool make(std::vector<int> contexts) { return Pool(std::move(contexts)); }
};
using context_pools = testing::Types<ctx_pool<int>, ctx_thread_pool<int>>;
TYPED_TEST_SUITE(PredecessorContexts, context_pools);

TYPED_TEST(PredecessorContexts, InitMapAndStarmap) {
  const auto pool = this->make({0, 1});
  const auto sum = [](int& context, int x, int y) { return std::pair(context, x + y); };
  std::vector<std::pair<int, int>> pairs;
  for (int each = 0; each < 10; ++each) pairs.emplace_back(each, each);
  const auto found = pool.starmap(sum, pairs);
  for (int each = 0; each < 10; ++each) {
    EXPECT_EQ(found[static_cast<std::size_t>(each)].second, 2 * each);
    EXPECT_THAT(found[static_cast<std::size_t>(each)].first, testing::AnyOf(0, 1));
  }
}

TYPED_TEST(PredecessorContexts, Multiple) {
  const auto one = this->make({0, 1});
  const auto other = this->make({2, 3});
  const auto context_of = [](int& context, int) { return context; };
  const std::vector<int> items(50'000);
  auto of_one = one.map_async(context_of, items);
  EXPECT_THAT(other.map(context_of, items), testing::Each(testing::AnyOf(2, 3)));
  EXPECT_THAT(of_one.get(), testing::Each(testing::AnyOf(0, 1)));
}

}  // namespace
}  // namespace muster::predecessor_test
