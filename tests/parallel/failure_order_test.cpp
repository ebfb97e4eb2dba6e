// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/failure_order.hpp>

#include <initializer_list>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::detail::failure_order_test {
namespace {

using kind = call_failure::kind;
using testing::ElementsAre;

rank_set ranks(std::initializer_list<std::size_t> all) {
  rank_set made;
  for (const auto rank : all) made.set(rank);
  return made;
}

std::vector<std::size_t> sorted(std::vector<call_failure> all) {
  sort_by_cause(all);
  std::vector<std::size_t> found;
  for (const auto& each : all) found.push_back(each.rank);
  return found;
}

TEST(FailureOrder, RanksThatThrewComeByNumber) {
  EXPECT_THAT(sorted({{.rank = 0, .number = 9}, {.rank = 1, .number = 7}, {.rank = 2, .number = 8}}),
              ElementsAre(1, 2, 0));
}

TEST(FailureOrder, ARankComesBehindThoseThatItNames) {
  EXPECT_THAT(sorted({{.rank = 0, .number = 1, .caused_by = ranks({2})},
                      {.rank = 1, .number = 2, .caused_by = ranks({0, 2})},
                      {.rank = 2, .number = 3}}),
              ElementsAre(2, 0, 1));
}

TEST(FailureOrder, NamesOfRanksThatHaveNotFailedChangeNothing) {
  EXPECT_THAT(sorted({{.rank = 0, .number = 1, .caused_by = ranks({0, 3})}, {.rank = 1, .number = 2}}),
              ElementsAre(0, 1));
}

TEST(FailureOrder, RanksThatNameEachOtherComeByNumber) {
  EXPECT_THAT(sorted({{.rank = 0, .number = 2, .caused_by = ranks({1})},
                      {.rank = 1, .number = 1, .caused_by = ranks({0})},
                      {.rank = 2, .number = 3}}),
              ElementsAre(1, 0, 2));
}

TEST(FailureOrder, ADeathComesBeforeWhoHasSeenItAndBehindWhoHasSeenTheRankAlive) {
  EXPECT_THAT(sorted({{.rank = 0, .number = 1},
                      {.rank = 1, .how = kind::died, .number = 4},
                      {.rank = 2, .number = 2, .ended = ranks({1})},
                      {.rank = 3, .number = 3, .ended = ranks({1})}}),
              ElementsAre(0, 1, 2, 3));
}

TEST(FailureOrder, ADeathThatIsNamedComesBeforeWhoNamesIt) {
  EXPECT_THAT(sorted({{.rank = 0, .number = 1, .caused_by = ranks({1})}, {.rank = 1, .how = kind::died, .number = 2}}),
              ElementsAre(1, 0));
}

TEST(FailureOrder, ADeathComesFirstWhereNobodyKnows) {
  EXPECT_THAT(sorted({{.rank = 0, .number = 1, .ended = ~rank_set()},
                      {.rank = 1, .how = kind::died, .number = call_failure::last}}),
              ElementsAre(1, 0));
}

TEST(FailureOrder, DeathsComeInTheOrderInWhichTheyBecameKnown) {
  EXPECT_THAT(sorted({{.rank = 0, .how = kind::died, .number = 5}, {.rank = 1, .how = kind::died, .number = 4}}),
              ElementsAre(1, 0));
}

TEST(FailureOrder, LatenessIsBetweenWhatCameBeforeAndAfterIt) {
  EXPECT_THAT(sorted({{.rank = 0, .number = 3},
                      {.rank = 1, .number = 1},
                      {.rank = 2, .how = kind::late, .number = 2},
                      {.rank = 3, .how = kind::died, .number = 4}}),
              ElementsAre(1, 2, 0, 3));
}

TEST(FailureOrder, RanksThatWereKilledBecauseAnotherHadFailedAreLast) {
  EXPECT_THAT(sorted({{.rank = 0, .how = kind::killed, .ended = ~rank_set()},
                      {.rank = 1, .how = kind::killed, .ended = ~rank_set()},
                      {.rank = 2, .number = 2},
                      {.rank = 3, .how = kind::died, .number = 3}}),
              ElementsAre(2, 3, 0, 1));
}

}  // namespace
}  // namespace muster::detail::failure_order_test
