// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/stream.hpp>

#include <algorithm>
#include <csignal>
#include <optional>
#include <ranges>
#include <sstream>
#include <string>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/queue/event.hpp>

#include "processes.hpp"

namespace muster::stream_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

int square(int x) { return x * x; }
int fail_at_three(int x) { return x == 3 ? throw std::runtime_error("three") : x; }

// An endless input that counts what is taken from it.
class endless {
public:
  class iterator {
  public:
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    explicit iterator(int& produced) : produced_(&produced) { ++*produced_; }
    int operator*() const { return *produced_ - 1; }
    iterator& operator++() {
      ++*produced_;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return false; }

  private:
    int* produced_ = nullptr;
  };
  explicit endless(int& produced) : produced_(&produced) {}
  [[nodiscard]] iterator begin() const { return iterator(*produced_); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

private:
  int* produced_;
};

// Chunks by time are batches, chunks of one element are tasks of their own: one contract.
class Stream : public testing::TestWithParam<std::size_t> {
protected:
  [[nodiscard]] submitter calls(task_options options = {}) const {
    if (options.chunk == 0) options.chunk = GetParam();
    return pool_.with(options);
  }

  pool pool_{{.workers = 2, .quarantine_after = 0, .log = [](log_level, std::string_view) {}}};
};

TEST_P(Stream, YieldsInOrder) {
  int expected = 0;
  for (const int each : calls().imap(square, std::views::iota(0, 3000))) {
    ASSERT_EQ(each, expected * expected);
    ++expected;
  }
  EXPECT_EQ(expected, 3000);
}

TEST_P(Stream, UnorderedYieldsEverythingOnce) {
  std::vector<int> all;
  for (const int each : calls().imap_unordered(square, std::views::iota(0, 3000))) all.push_back(each);
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), 3000U);
  for (int each = 0; each < 3000; ++each) ASSERT_EQ(all[static_cast<std::size_t>(each)], each * each);
}

TEST_P(Stream, UnorderedDoesNotWaitForTheSlow) {
  auto results = calls({.chunk = 1})
                     .imap_unordered(
                         [](int x) {
                           if (x == 0) test::work_for(300ms);
                           return x;
                         },
                         std::views::iota(0, 4));
  EXPECT_NE(*results.next(), 0);
  EXPECT_NE(*results.next(), 0);
  EXPECT_NE(*results.next(), 0);
  EXPECT_EQ(*results.next(), 0);
  EXPECT_EQ(results.next(), std::nullopt);
}

// Whose iterators have no default constructor, and are moved only.
TEST_P(Stream, TakesAnyInputRange) {
  std::istringstream lines("1 2 3");
  std::vector<int> found;
  for (const int each : calls().imap(square, std::views::istream<int>(lines))) found.push_back(each);
  EXPECT_EQ(found, (std::vector{1, 4, 9}));
}

TEST_P(Stream, TakesAGenerator) {
  int given = 0;
  const auto next = [&]() -> std::optional<int> { return given < 5 ? std::optional(given++) : std::nullopt; };
  std::vector<int> found;
  for (const int each : calls().imap(square, next)) found.push_back(each);
  EXPECT_EQ(found, (std::vector{0, 1, 4, 9, 16}));
  given = 3;
  int sum = 0;
  for (const int each : calls().imap_unordered(square, next)) sum += each;
  EXPECT_EQ(sum, 25);
}

// The input sees to it that what was sent before has ended. Of one element nobody knows yet whether it is slow.
TEST_P(Stream, AResultThatIsReadyComesBeforeMoreInputIsAskedFor) {
  for (const bool ordered : {true, false}) {
    int consumed = 0;
    std::vector<int> when_asked;
    auto slow = std::views::iota(0, 8) | std::views::transform([&](int x) {
                  when_asked.push_back(consumed);
                  pool_.on(0).apply(square, x);
                  test::work_for(1ms);
                  return x;
                });
    const auto there = calls({.window = 100}).on(0);
    auto results = ordered ? there.imap(square, slow) : there.imap_unordered(square, slow);
    while (results.next()) ++consumed;
    ASSERT_EQ(when_asked.size(), 8U);
    for (int each = 0; each < 8; ++each) EXPECT_GE(when_asked[static_cast<std::size_t>(each)], each - 1);
  }
}

// Each element comes only after the one before has been worked on.
TEST_P(Stream, ElementsOfASlowInputAreSentAsTheyComeWhateverTheChunk) {
  const std::vector<event> begun(8);
  auto slow = std::views::iota(std::size_t{0}, begun.size()) | std::views::transform([&](std::size_t index) {
                EXPECT_TRUE(index == 0 || begun[index - 1].wait_for(100s));
                test::work_for(1ms);
                return begun[index];
              });
  int count = 0;
  for (const bool each : calls({.chunk = GetParam() == 0 ? 3 : GetParam(), .window = 8})
                             .imap(
                                 [](const event& mine) {
                                   mine.set();
                                   return true;
                                 },
                                 slow)) {
    count += each ? 1 : 0;
  }
  EXPECT_EQ(count, 8);
}

TEST_P(Stream, OfNothingEndsAtOnce) {
  EXPECT_EQ(calls().imap(square, std::vector<int>()).next(), std::nullopt);
  EXPECT_EQ(calls().imap_unordered(square, std::vector<int>()).next(), std::nullopt);
}

// Predecessor's list, 9.
TEST_P(Stream, TakesAtMostAWindowAheadOfAnEndlessInput) {
  for (const std::size_t window : {1U, 5U, 16U}) {
    for (const bool is_quick : {true, false}) {
      int produced = 0;
      const auto there = calls({.window = window});
      auto results = is_quick ? there.imap(square, quick(endless(produced))) : there.imap(square, endless(produced));
      for (int consumed = 1; consumed <= 100; ++consumed) {
        ASSERT_EQ(*results.next(), (consumed - 1) * (consumed - 1));
        ASSERT_LE(produced, consumed + static_cast<int>(window)) << "window " << window;
      }
    }
  }
}

TEST_P(Stream, TheWindowHoldsWithAGivenChunkToo) {
  int produced = 0;
  auto results = calls({.chunk = 2, .window = 6}).imap(square, quick(endless(produced)));
  for (int consumed = 1; consumed <= 50; ++consumed) {
    ASSERT_TRUE(results.next());
    ASSERT_LE(produced, consumed + 6);
  }
}

TEST_P(Stream, NothingIsTakenBeforeTheFirstResultIsWanted) {
  int produced = 0;
  auto results = calls().imap(square, endless(produced));
  EXPECT_EQ(produced, 0);
  static_cast<void>(results.next());
  EXPECT_GT(produced, 0);
}

TEST_P(Stream, AFailingElementThrowsAtItsPlaceAndTheNextCallGoesOn) {
  auto results = calls().imap(fail_at_three, std::views::iota(0, 6));
  EXPECT_EQ(*results.next(), 0);
  EXPECT_EQ(*results.next(), 1);
  EXPECT_EQ(*results.next(), 2);
  EXPECT_THROW(results.next(), std::runtime_error);
  EXPECT_EQ(*results.next(), 4);
  EXPECT_EQ(*results.next(), 5);
  EXPECT_EQ(results.next(), std::nullopt);
}

TEST_P(Stream, AsResultsGoesOnByItself) {
  std::vector<int> values;
  int failures = 0;
  for (auto& each : calls({.chunk = 4}).imap(fail_at_three, std::views::iota(0, 10)).as_results()) {
    if (each) {
      values.push_back(*each);
    } else {
      ++failures;
      EXPECT_EQ(each.error().place().element, 3U);
    }
  }
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(failures, 1);
}

TEST_P(Stream, ElementsAreNumberedThroughTheWholeInput) {
  std::size_t element = 0;
  for (auto& each :
       calls({.chunk = 3}).imap([](int x) { return x == 50 ? throw 1 : x; }, std::views::iota(0, 60)).as_results()) {
    if (!each) element = *each.error().place().element;
  }
  EXPECT_EQ(element, 50U);
}

TEST_P(Stream, AnErrorOfTheInputIsThrownAtItsPlaceAndEndsTheStream) {
  auto input = std::views::iota(0, 100) |
               std::views::transform([](int x) { return x == 5 ? throw std::domain_error("input") : x; });
  for (const bool is_quick : {true, false}) {
    const auto there = calls({.chunk = GetParam() == 0 ? 3 : GetParam()});
    auto results = is_quick ? there.imap(square, quick(input)) : there.imap(square, input);
    for (int each = 0; each < 5; ++each) ASSERT_EQ(*results.next(), each * each);
    EXPECT_THROW(results.next(), std::domain_error);
    EXPECT_EQ(results.next(), std::nullopt);
  }
}

TEST_P(Stream, ADeathCostsOneElement) {
  std::vector<int> lost;
  std::vector<int> values;
  for (auto& each : calls({.chunk = 8})
                        .imap(
                            [](int x) {
                              if (x % 10 == 4) ::raise(SIGKILL);
                              return x;
                            },
                            std::views::iota(0, 30))
                        .as_results()) {
    if (each) {
      values.push_back(*each);
    } else {
      lost.push_back(static_cast<int>(*each.error().place().element));
    }
  }
  EXPECT_THAT(lost, ElementsAre(4, 14, 24));
  EXPECT_EQ(values.size(), 27U);
}

TEST_P(Stream, RetriesHideADeath) {
  static_cast<void>(pool_.apply([] { return 0; }));
  int count = 0;
  for (const int each : calls({.retries = 5, .chunk = 4})
                            .imap(
                                [](int x) {
                                  static int calls = 0;  // of this process
                                  if (this_worker::incarnation() == 1 && ++calls == 3) ::raise(SIGKILL);
                                  return x;
                                },
                                std::views::iota(0, 40))) {
    EXPECT_EQ(each, count++);
  }
  EXPECT_EQ(count, 40);
}

TEST_P(Stream, VariableSizesStream) {
  std::size_t expected = 0;
  for (const auto& each :
       calls().imap([](int x) { return std::string(static_cast<std::size_t>(x), 's'); }, std::views::iota(0, 500))) {
    ASSERT_EQ(each.size(), expected++);
  }
}

TEST_P(Stream, OfAFunctionWithoutResultYieldsMonostate) {
  int count = 0;
  for ([[maybe_unused]] const auto& each : calls().imap([](int) {}, std::views::iota(0, 20))) ++count;
  EXPECT_EQ(count, 20);
}

TEST_P(Stream, IstarmapUnpacks) {
  const std::vector<std::pair<int, int>> pairs = {{1, 2}, {3, 4}};
  std::vector<int> sums;
  for (const int each : calls().istarmap([](int a, int b) { return a + b; }, pairs)) sums.push_back(each);
  EXPECT_THAT(sums, ElementsAre(3, 7));
}

TEST_P(Stream, AnAbandonedStreamDoesNoHarm) {
  for (int round = 0; round < 20; ++round) {
    int produced = 0;
    auto ordered = calls().imap(square, endless(produced));
    static_cast<void>(ordered.next());
    int other = 0;
    auto unordered = calls().imap_unordered(square, endless(other));
    static_cast<void>(unordered.next());
  }
  EXPECT_EQ(pool_.apply(square, 3), 9);
}

TEST_P(Stream, SeveralStreamsAtOnce) {
  auto one = calls().imap(square, std::views::iota(0, 500));
  auto two = calls().imap_unordered(square, std::views::iota(0, 500));
  for (int each = 0; each < 500; ++each) {
    ASSERT_EQ(*one.next(), each * each);
    ASSERT_TRUE(two.next());
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Stream, testing::Values(0U, 1U), [](const auto& each) {
  return each.param == 0 ? std::string("Batches") : std::string("Tasks");
});

}  // namespace
}  // namespace muster::stream_test
