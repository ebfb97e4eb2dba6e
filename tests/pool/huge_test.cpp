// SPDX-License-Identifier: BSL-1.0
// Beyond 4 GiB: works where memory allows, and is a clear error where it does not. And as many workers as there may be.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/memory_budget.hpp>
#include <muster/pool/pool.hpp>

namespace muster::huge_test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30U;

std::uint64_t ends_of(const std::vector<std::uint64_t>& numbers) {
  return numbers.size() + numbers.front() + numbers.back();
}

TEST(Huge, AFiveGibibyteArgumentArrivesOrIsRefusedWithTheReason) {
  if (sanitized) GTEST_SKIP() << "shadow memory would double what this needs";
  pool pool({.workers = 1});
  const bool fits =
      available_memory().available_bytes > 16 * gibibyte;  // the argument, the block and the worker's copy
  if (!fits) {
    struct five_gibibytes {
      void save(output_archive& archive) const {
        archive(cereal::binary_data(static_cast<const char*>(nullptr), 5 * gibibyte));
      }
      void load(input_archive&) {}
    };
    try {
      pool.apply([](const five_gibibytes&) {}, five_gibibytes());
      GTEST_SKIP() << "memory has become available meanwhile";
    } catch (const error& caught) {
      EXPECT_EQ(caught.code(), errc::out_of_memory);
      EXPECT_THAT(caught.what(),
                  testing::AllOf(testing::HasSubstr("5.0 GiB is needed"), testing::HasSubstr("are available")));
    }
    return;
  }
  std::vector<std::uint64_t> numbers(5 * gibibyte / sizeof(std::uint64_t), 1);
  numbers.front() = 1000;
  numbers.back() = 7;
  EXPECT_EQ(pool.apply(ends_of, numbers), numbers.size() + 1007);
  EXPECT_EQ(pool.stats().memory.live_blocks, 0U);
}

TEST(Huge, EachOfAThousandWorkersRunsTasks) {
  if (sanitized) GTEST_SKIP() << "each worker would take some hundred MiB of shadow memory";
  constexpr std::size_t workers = 1000;
  const pool pool({.workers = workers});
  std::vector<future<int>> own;
  for (std::size_t worker = 0; worker < workers; ++worker) own.push_back(pool.on(worker).apply_async(this_worker::id));
  for (std::size_t worker = 0; worker < workers; ++worker) ASSERT_EQ(own[worker].get(), static_cast<int>(worker));
  std::vector<future<int>> any;
  for (int each = 0; each < 20'000; ++each) any.push_back(pool.apply_async([](int x) { return x; }, each));
  for (int each = 0; each < 20'000; ++each) ASSERT_EQ(any[static_cast<std::size_t>(each)].get(), each);
  EXPECT_EQ(pool.size(), workers);
}

}  // namespace
}  // namespace muster::huge_test
