// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/pause_log.hpp>

#include <gtest/gtest.h>

namespace muster::pause_log_test {
namespace {

using namespace std::chrono_literals;

constexpr clock::time_point start{1000s};

// Seen at `seen`, due a second later, and again at `end`; in seconds from the start.
host_pause made(int seen, int end) {
  return {.seen = start + std::chrono::seconds(seen),
          .due = start + std::chrono::seconds(seen + 1),
          .end = start + std::chrono::seconds(end)};
}

TEST(PauseLog, ExtendsNothingWithoutPauses) { EXPECT_EQ(pause_log().extension(start, 10s), 0s); }

TEST(PauseLog, ExtendsByAllThatAPauseMayHaveTaken) {
  pause_log log;
  log.note(made(2, 7));
  EXPECT_EQ(log.extension(start, 10s), 5s) << "it may have been stopped as soon as it was seen";
  log.note(made(10, 13));
  EXPECT_EQ(log.extension(start, 10s), 8s);
}

TEST(PauseLog, APauseBeforeTheBeginningExtendsNothing) {
  pause_log log;
  log.note(made(2, 7));
  EXPECT_EQ(log.extension(start + 7s, 10s), 0s);
  EXPECT_EQ(log.extension(start + 8s, 10s), 0s);
}

TEST(PauseLog, OfAPauseThatSomethingBeganInOnlyTheRestCounts) {
  pause_log log;
  log.note(made(2, 7));
  EXPECT_EQ(log.extension(start + 5s, 10s), 2s);
  EXPECT_EQ(log.extension(start + 2500ms, 10s), 4500ms);
}

// Or a machine on which every look is late would never end anything.
TEST(PauseLog, TheDoubtfulPartsExtendByNoMoreThanTheLimit) {
  pause_log log;
  for (int each = 0; each < 20; ++each) log.note(made(2 * each, 2 * each + 2));  // a second late each time
  EXPECT_EQ(log.extension(start, 3s), 20s + 3s);
}

TEST(PauseLog, AHundredThousandPausesAreKeptInLittleRoomAndAllCount) {
  pause_log log;
  for (int each = 0; each < 100'000; ++each) log.note(made(2 * each, 2 * each + 2));
  EXPECT_EQ(log.extension(start, 1h * 1000), 200'000s);
  EXPECT_EQ(log.extension(start + 199'998s, 10s), 2s);
  EXPECT_EQ(log.extension(start + 200'000s, 10s), 0s);
}

TEST(PauseLog, LimitsThatAreNeverReachedStaySo) {
  pause_log log;
  log.note(made(2, 7));
  EXPECT_EQ(log.extension(start, clock::duration::max()), 5s);
}

}  // namespace
}  // namespace muster::pause_log_test
