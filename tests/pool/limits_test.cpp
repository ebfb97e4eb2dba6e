// SPDX-License-Identifier: BSL-1.0
// Bad input: each ends in an error at the call that says what was given, what was expected and what to do.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/memory_budget.hpp>
#include <muster/pool/pool.hpp>
#include <muster/queue/event.hpp>

namespace muster::limits_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

void discard(log_level, std::string_view) {}

std::string what_is_thrown(const std::function<void()>& call, errc expected) {
  try {
    call();
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), expected) << caught.what();
    return caught.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Limits, NoWorkersMeansAsManyAsThereAreProcessors) {
  pool pool({.workers = 0});
  EXPECT_GE(pool.size(), 1U);
}

TEST(Limits, AbsurdWorkerCountsAreRefused) {
  EXPECT_THAT(what_is_thrown([] { pool too_many({.workers = 100000}); }, errc::invalid_argument),
              AllOf(HasSubstr("100000 workers"), HasSubstr("1 to 1000")));
  EXPECT_THAT(what_is_thrown([] { pool negative({.workers = static_cast<unsigned>(-1)}); }, errc::invalid_argument),
              HasSubstr("4294967295 workers"));
}

// More than there were descriptors of blocks.
TEST(Limits, AHundredThousandTasksWithPayloadsMayWait) {
  constexpr int tasks = 100'000;
  const pool pool({.workers = 1, .log = discard});
  const event end;
  const auto first = pool.apply_async([](const event& until) { until.wait(); }, end);
  using payload = std::array<int, 100>;
  payload numbers{};
  std::vector<future<int>> sums;
  for (int each = 0; each < tasks; ++each) {
    numbers[0] = each;
    sums.push_back(pool.apply_async([](const payload& given) { return given[0]; }, numbers));
  }
  end.set();
  for (int each = 0; each < tasks; ++each) ASSERT_EQ(sums[static_cast<std::size_t>(each)].get(), each);
}

TEST(Limits, NoTriesAtAllAreRefused) {
  EXPECT_THAT(what_is_thrown([] { pool none({.workers = 1, .start_tries = 0}); }, errc::invalid_argument),
              HasSubstr("start_tries"));
}

TEST(Limits, ALargerArenaThanThatOfTheProgramIsRefused) {
  pool first({.workers = 1, .arena_bytes = std::size_t{16} << 20U});
  EXPECT_THAT(
      what_is_thrown([] { pool second({.workers = 1, .arena_bytes = std::size_t{1} << 30U}); }, errc::invalid_argument),
      AllOf(HasSubstr("1.0 GiB"), HasSubstr("16.0 MiB"), HasSubstr("isolated")));
}

TEST(Limits, AnExhaustedArenaIsAnErrorAtTheCallAndThePoolGoesOn) {
  pool small({.workers = 1, .arena_bytes = std::size_t{4} << 20U, .isolated = true});
  EXPECT_THAT(
      what_is_thrown([&] { small.apply([](const std::string& s) { return s.size(); }, std::string(8U << 20U, 'x')); },
                     errc::out_of_memory),
      AllOf(HasSubstr("8.0 MiB"), HasSubstr("4.0 MiB"), HasSubstr("send less")));
  EXPECT_EQ(small.apply([](const std::string& s) { return s.size(); }, std::string(1U << 20U, 'x')), 1U << 20U);
}

TEST(Limits, AResultTooLargeForTheArenaFailsItsTask) {
  pool small({.workers = 1, .arena_bytes = std::size_t{4} << 20U, .isolated = true});
  EXPECT_THAT(what_is_thrown([&] { small.apply([] { return std::string(8U << 20U, 'x'); }); }, errc::out_of_memory),
              AllOf(HasSubstr("the result could not be encoded"), HasSubstr("8.0 MiB")));
  EXPECT_EQ(small.apply([] { return 1; }), 1);
}

TEST(Limits, MoreThanTheMachineHasIsRefusedBeforeItIsTouched) {
  const auto available = available_memory().available_bytes;
  pool pool({.workers = 1});
  // The bytes are never made: an archive counts them first.
  struct enormous {
    std::uint64_t bytes = 0;
    void save(output_archive& archive) const { archive(cereal::binary_data(static_cast<const char*>(nullptr), bytes)); }
    void load(input_archive&) {}
  };
  EXPECT_THAT(what_is_thrown([&] { pool.apply([](const enormous&) {}, enormous{available}); }, errc::out_of_memory),
              AllOf(HasSubstr("is needed"), HasSubstr("private copy"), HasSubstr("are available")));
}

TEST(Limits, TooFewDescriptorsAreAnErrorThatNamesTheLimit) {
  if (sanitized) GTEST_SKIP() << "UBSan looks at objects through a pipe, and calls them broken when it gets none";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  int highest = ::dup(0);
  ::close(highest);
  const rlimit small{.rlim_cur = static_cast<rlim_t>(highest) + 12, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &small), 0);
  try {
    pool too_many({.workers = 50, .start_patience = std::chrono::milliseconds(20), .log = discard});
    ADD_FAILURE();
  } catch (const error& caught) {
    EXPECT_THAT(caught.what(), HasSubstr("RLIMIT_NOFILE"));
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  pool works({.workers = 1});
  EXPECT_EQ(works.apply([] { return 2; }), 2);
}

// In a process of its own, because the limit cannot be raised again.
TEST(LimitsDeathTest, TooLittleAddressSpaceIsAnErrorThatNamesTheLimit) {
  if (sanitized)
    GTEST_SKIP() << "sanitizers reserve terabytes of address space, so RLIMIT_AS cannot be tested under them";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto try_it = [] {
    const rlimit small{.rlim_cur = rlim_t{1} << 30U, .rlim_max = rlim_t{1} << 30U};
    ::setrlimit(RLIMIT_AS, &small);
    try {
      pool large({.workers = 1, .arena_bytes = std::size_t{4} << 30U});
    } catch (const error& caught) {
      std::fprintf(stderr, "%s\n", caught.what());
    }
    std::_Exit(3);
  };
  EXPECT_EXIT(try_it(), testing::ExitedWithCode(3), "4.0 GiB.*RLIMIT_AS is 1.0 GiB.*arena_bytes");
}

TEST(LimitsDeathTest, ByDefaultThePoolFitsIntoTheAddressSpace) {
  if (sanitized) GTEST_SKIP() << "as above";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto try_it = [] {
    const rlimit small{.rlim_cur = rlim_t{2} << 30U, .rlim_max = rlim_t{2} << 30U};
    ::setrlimit(RLIMIT_AS, &small);
    pool fits({.workers = 2});
    std::_Exit(fits.apply([] { return 5; }));
  };
  EXPECT_EXIT(try_it(), testing::ExitedWithCode(5), "");
}

}  // namespace
}  // namespace muster::limits_test
