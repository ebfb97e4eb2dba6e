// SPDX-License-Identifier: BSL-1.0
// Tensors on their way in both directions while workers are killed at random: afterwards all memory is free again.
// MUSTER_SOAK_SECONDS makes it longer (scripts/soak).
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>
#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "seed.hpp"
#include "soak_time.hpp"

namespace muster::tensor_soak_test {
namespace {

struct amount {
  std::uint64_t tensors;
  std::uint64_t kills;
};

amount fewest() {
  const bool has_time = test::soak_time(std::chrono::seconds(0)).count() > 0;
  return has_time ? amount{.tensors = 100'000, .kills = 1'000} : amount{.tensors = 3'000, .kills = 30};
}

struct counts {
  std::atomic<std::uint64_t> tensors = 0;
  std::atomic<std::uint64_t> wrong = 0;
  std::atomic<std::uint64_t> died = 0;
};

constexpr task_options patient{.retries = 1'000'000};

tensor made_of(int value) { return tensor::full<std::int32_t>({100}, value); }
bool is_all(const tensor& what, int value) {
  const auto elements = what.span<std::int32_t>();
  return elements.size() == 100 &&
         std::all_of(elements.begin(), elements.end(), [=](int each) { return each == value; });
}

tensor successor(const tensor& given) { return made_of(given.at<std::int32_t>(0) + 1); }
std::vector<tensor> and_successors(std::vector<tensor> given) {
  for (std::size_t index = given.size(); index > 0; --index) given.push_back(successor(given[index - 1]));
  return given;
}
int first_of(const tensor& given) { return given.at<std::int32_t>(0); }

std::vector<tensor> several(int first, int count) {
  std::vector<tensor> all;
  for (int index = 0; index < count; ++index) all.push_back(made_of(first + index));
  return all;
}

// Every way returns how many tensors were made, and whether all arrived as they should.
struct seen {
  std::uint64_t tensors = 0;
  bool right = true;
};

seen there_and_back(pool& pool, int n) {
  return {.tensors = 2, .right = is_all(pool.with(patient).apply(successor, made_of(n)), n + 1)};
}

seen many_at_once(pool& pool, int n) {
  const int count = 1 + n % 20;
  const auto back = pool.with(patient).apply(and_successors, several(n, count));
  const bool whole = back.size() == 2 * static_cast<std::size_t>(count);
  return {.tensors = 2 * static_cast<std::uint64_t>(count),
          .right = whole && is_all(back.front(), n) && is_all(back.back(), n + 1)};
}

seen elements_of_a_map(pool& pool, int n) {
  const int count = 1 + n % 100;
  const auto bound = made_of(n);
  const auto sum =
      bind_front([](const tensor& by, const tensor& each) { return first_of(by) + first_of(each); }, bound);
  const auto sums = pool.with(patient).map(sum, several(n, count));
  return {.tensors = static_cast<std::uint64_t>(count) + 1, .right = sums.back() == 2 * n + count - 1};
}

seen results_that_nobody_takes(pool& pool, int n) {
  for (int each = 0; each < 4; ++each) static_cast<void>(pool.apply_async(successor, made_of(n)));
  return {.tensors = 8};
}

// The task may die with its worker: then there is no result, and nothing else.
seen without_another_try(pool& pool, int n, counts& all) {
  auto futures = std::vector<future<tensor>>();
  for (int each = 0; each < 4; ++each) futures.push_back(pool.apply_async(successor, made_of(n)));
  bool right = true;
  for (auto& each : futures) {
    const auto found = each.get_result();
    if (!found.has_value()) ++all.died;
    right = right && (found.has_value() ? is_all(*found, n + 1) : found.error() == errc::worker_died);
  }
  return {.tensors = 8, .right = right};
}

void share_in_all_ways(pool& pool, unsigned seed, const std::atomic<bool>& stop, counts& all) {
  std::minstd_rand random(seed);
  while (!stop) {
    const int n = static_cast<int>(random() % 1000);
    seen found;
    switch (random() % 5) {
      case 0: found = there_and_back(pool, n); break;
      case 1: found = many_at_once(pool, n); break;
      case 2: found = elements_of_a_map(pool, n); break;
      case 3: found = results_that_nobody_takes(pool, n); break;
      default: found = without_another_try(pool, n, all);
    }
    all.tensors += found.tensors;
    if (!found.right) ++all.wrong;
  }
}

TEST(TensorSoak, RandomKillsLeaveNoMemoryBehind) {
  const auto seed = test::seed(1);
  const auto domain = muster::domain::of_program();
  const auto before = domain->blocks().read_statistics();
  const auto wanted = fewest();
  counts all;
  std::uint64_t kills = 0;
  {
    // Workers are also killed while they start, any number of times in a row.
    pool pool(
        {.workers = 2, .quarantine_after = 0, .start_tries = 1'000'000, .log = [](log_level, std::string_view) {}});
    std::atomic<bool> stop = false;
    std::thread one([&] { share_in_all_ways(pool, seed, stop, all); });
    std::thread two([&] { share_in_all_ways(pool, seed + 1, stop, all); });
    std::minstd_rand random(seed + 2);
    const auto until = deadline::after(test::soak_time(std::chrono::seconds(3)));
    while (!until.expired() || all.tensors < wanted.tensors || kills < wanted.kills) {
      test::work_for(std::chrono::microseconds(500 + random() % 12000));  // the rate of killing
      const auto victim = pool.workers()[random() % 2];
      if (victim.pid != 0 && ::kill(victim.pid, SIGKILL) == 0) ++kills;
    }
    stop = true;
    one.join();
    two.join();
    pool.drain();
    EXPECT_EQ(pool.stats().tasks.damaged, 0U) << "a death is no damage";
  }
  std::printf("%llu tensors, %llu kills, %llu calls that died with their worker\n",
              static_cast<unsigned long long>(all.tensors), static_cast<unsigned long long>(kills),
              static_cast<unsigned long long>(all.died));
  EXPECT_EQ(all.wrong, 0U);
  EXPECT_TRUE(test::eventually([&] {
    const auto found = domain->blocks().read_statistics();
    return found.holds == before.holds && found.live_blocks == before.live_blocks &&
           found.held_bytes == found.cached_bytes + found.slab_bytes;
  })) << domain->blocks().read_statistics().holds
      << " holds, " << domain->blocks().read_statistics().live_blocks << " live blocks, "
      << domain->blocks().read_statistics().held_bytes << " bytes held";
}

}  // namespace
}  // namespace muster::tensor_soak_test
