// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/memory_budget.hpp>
#include <muster/collectives/group_objects.hpp>

#include "group_support.hpp"
#include "seed.hpp"
#include "soak_time.hpp"

namespace muster::message_test {
namespace {

using namespace std::chrono_literals;
using test::rank_kind;
using test::run_group;
using test::text_thrown_by;
using testing::AllOf;
using testing::HasSubstr;

tensor numbers(std::size_t count, float value) { return tensor::full<float>({count}, value); }

constexpr std::size_t longer = 1000;  // than what lies in the ring

// Both ranks send first. One number of each page is looked at: the others take longer than the sending.
void send_both_ways(group& among, std::size_t count) {
  constexpr std::size_t page = 4096;
  const auto number_of = [](std::size_t rank, std::size_t index) {
    return static_cast<std::uint8_t>(index / page * 2 + rank + 1);
  };
  const auto other = 1 - among.rank();
  const auto mine = tensor::empty<std::uint8_t>({count});
  const auto theirs = tensor::empty<std::uint8_t>({count});
  for (std::size_t index = 0; index < count; index += page) {
    mine.data<std::uint8_t>()[index] = number_of(among.rank(), index);
  }
  among.send(mine, other);
  among.recv(theirs, other);
  const auto* const found = theirs.data<std::uint8_t>();
  for (std::size_t index = 0; index < count; index += page) {
    ASSERT_EQ(found[index], number_of(other, index)) << "element " << index;
  }
}

// A gigabyte, or what there is memory for: each rank has one to send and one to receive, and as much is left to others.
// The sanitizers would take long over it. MUSTER_MEGABYTES says otherwise.
std::size_t most_megabytes() {
  if (const auto* const given = std::getenv("MUSTER_MEGABYTES")) return std::strtoul(given, nullptr, 10);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 64;
#else
  constexpr std::size_t wanted = 1024;
  const auto budget = available_memory();
  const auto most = std::min<std::size_t>(wanted, (budget.available_bytes >> 20U) / 8);
  if (most < wanted) std::printf("%zu MiB only: %s is the limit\n", most, budget.limited_by.c_str());
  return most;
#endif
}

class Messages : public testing::TestWithParam<rank_kind> {
protected:
  static void run(std::size_t ranks, const test::rank_body& body, const group_options& options = {}) {
    run_group(GetParam(), ranks, body, options);
  }
};

TEST_P(Messages, ArriveWithTheirElementsFromTheRankThatIsSaid) {
  run(3, [](group& group) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{5}, longer}) {
      if (group.rank() == 0) {
        group.send(tensor::zeros<float>({count}), 1);
        group.send(tensor::zeros<float>({count}), 2);
      } else {
        const auto ones = tensor::ones<float>({count});
        EXPECT_EQ(group.recv(ones, group.rank() == 1 ? 0 : any_source), 0U);
        EXPECT_EQ(ones.to_vector<float>(), std::vector<float>(count));
      }
    }
  });
}

TEST_P(Messages, OfTwoSendersAreReceivedOnceEach) {
  run(3, [](group& group) {
    for (const std::size_t count : {std::size_t{4}, longer}) {
      group.barrier();
      if (group.rank() != 0) group.send(numbers(count, static_cast<float>(group.rank())), 0, 5);
      std::vector<std::size_t> sources;
      for (int each = 0; each < 2 && group.rank() == 0; ++each) {
        const auto into = tensor::zeros<float>({count});
        const auto got = group.irecv(into, any_source, 5);
        got.wait();
        EXPECT_EQ(into.at<float>(count - 1), static_cast<float>(got.source()));
        sources.push_back(got.source());
      }
      if (group.rank() == 0) {
        EXPECT_THAT(sources, testing::UnorderedElementsAre(1, 2));
      }
    }
  });
}

TEST_P(Messages, OfOneTagKeepTheirOrder) {
  run(2, [](group& group) {
    constexpr int count = 1000;
    for (int each = 0; each < count; ++each) {
      const std::size_t length = each % 3 == 0 ? longer : 2;
      if (group.rank() == 0) {
        group.send(numbers(length, static_cast<float>(each)), 1, 3);
      } else {
        const auto got = group.recv(0, 3);
        EXPECT_EQ(got.size(), length);
        EXPECT_EQ(got.at<float>(0), static_cast<float>(each));
      }
    }
  });
}

TEST_P(Messages, OfManyAndFewElementsInTurnArriveWhereTheyAreWanted) {
  run(2, [](group& group) {
    constexpr std::size_t count = 1000;  // some times as many as the ring holds
    const auto other = 1 - group.rank();
    for (std::size_t each = 0; each < count; ++each) {
      const std::size_t length = each % 100 == 7 ? longer : each % 5;
      const auto value = static_cast<float>(each);
      const auto into = tensor::zeros<float>({length, 1});
      const bool receives = each % 3 != other;
      if (each % 3 != group.rank()) group.send(tensor::full<float>({length, 1}, value), other, 3);
      if (receives) group.recv(into, other, 3);
      EXPECT_EQ(into.to_vector<float>(), std::vector<float>(length, receives ? value : 0));
    }
  });
}

TEST_P(Messages, OfOneTagGoToTheReceiveThatWasBegunFirst) {
  run(2, [](group& group) {
    if (group.rank() == 0) {
      group.send(numbers(2, 1), 1, 3);
      group.send(numbers(2, 2), 1, 3);
    } else {
      const auto first = tensor::zeros<float>({2});
      const auto second = tensor::zeros<float>({2});
      const auto begun = group.irecv(first, 0, 3);
      group.recv(second, 0, 3);
      begun.wait();
      EXPECT_EQ(first.at<float>(1), 1);
      EXPECT_EQ(second.at<float>(1), 2);
    }
    group.barrier();  // the sender is there until they have come
  });
}

TEST_P(Messages, OfAnotherTagThanTheFirstAreReceivedBeforeIt) {
  run(2, [](group& group) {
    const auto into = tensor::zeros<float>({2});
    for (const std::uint32_t tag : {1U, 2U}) {
      if (group.rank() == 0) group.send(numbers(2, static_cast<float>(tag)), 1, tag);
    }
    for (const std::uint32_t tag : {2U, 1U}) {
      if (group.rank() == 0) continue;
      group.recv(into, 0, tag);
      EXPECT_EQ(into.at<float>(1), static_cast<float>(tag));
    }
    group.barrier();  // the sender is there until they have come
  });
}

TEST_P(Messages, OfSixtyFourTagsAreReceivedInAnyOrder) {
  const unsigned rounds = test::soak_time(0s) > 0s ? 10'000 : 500;
  run(2, [rounds, seed = test::seed(7)](group& group) {
    constexpr std::uint32_t tags = 64;
    std::mt19937 random(seed + static_cast<unsigned>(group.rank()));
    std::vector<std::uint32_t> order(tags);
    for (std::uint32_t tag = 0; tag < tags; ++tag) order[tag] = tag;
    // Every other one is too long for the ring.
    std::vector<tensor> tensors;
    for (std::uint32_t tag = 0; tag < tags; ++tag) tensors.push_back(numbers(tag % 2 == 0 ? 3 : 100, 0));
    for (unsigned round = 0; round < rounds; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      std::vector<work> works;
      for (const auto tag : order) {
        tensors[tag].at<float>(2) = group.rank() == 0 ? static_cast<float>(tag + 64 * (round % 8)) : -1;
        works.push_back(group.rank() == 0 ? group.isend(tensors[tag], 1, tag) : group.irecv(tensors[tag], 0, tag));
      }
      for (const auto& each : works) each.wait();
      for (std::uint32_t tag = 0; tag < tags; ++tag) {
        ASSERT_EQ(tensors[tag].at<float>(2), static_cast<float>(tag + 64 * (round % 8))) << "round " << round;
      }
    }
  });
}

TEST_P(Messages, OfAnyLengthGoBothWaysAtOnce) {
  run(2, [](group& group) {
    for (const std::size_t count : {std::size_t{1}, longer, std::size_t{16} << 20U}) send_both_ways(group, count);
  });
}

// In processes, where there are such.
TEST(MessagesOfAGigabyte, GoBothWaysAtOnce) {
  const auto megabytes = most_megabytes();
  if (megabytes == 0) GTEST_SKIP() << "there is no memory for it";
  run_group(test::rank_kinds().back(), 2, [&](group& group) { send_both_ways(group, megabytes << 20U); });
}

// With nobody looking for long before it sleeps.
TEST_P(Messages, OfMoreRanksThanProcessorsGoRoundAtOnce) {
  const auto body = [](group& group) {
    for (int round = 0; round < 50; ++round) {
      const auto own = numbers(longer, static_cast<float>(group.rank()));
      const auto into = tensor::zeros<float>({longer});
      const auto before = (group.rank() + 3) % 4;
      group.send(own, (group.rank() + 1) % 4);  // all send first
      group.recv(into, before);
      EXPECT_EQ(into.at<float>(longer - 1), static_cast<float>(before));
    }
  };
  run(4, body, {.timeout = 20s, .spin = 0ns});
}

TEST_P(Messages, ToOneselfArrive) {
  run(1, [](group& group) {
    for (const std::size_t count : {std::size_t{4}, longer}) {
      group.send(numbers(count, 3), 0, 1);
      EXPECT_EQ(group.recv(0, 1).at<float>(3), 3);
    }
  });
}

TEST_P(Messages, OfStridedTensorsAndAnyTypeArrive) {
  run(2, [](group& group) {
    const auto wide = tensor::zeros<std::int16_t>({500, 3});
    const auto column = wide.slice(1, 2, 1);
    if (group.rank() == 0) {
      column.fill<std::int16_t>(7);
      group.send(column, 1);
    } else {
      group.recv(column, 0);
      EXPECT_EQ(wide.at<std::int16_t>(499, 1), 7);
      EXPECT_EQ(wide.at<std::int16_t>(499, 2), 0);
    }
  });
}

TEST_P(Messages, AreBroughtForwardByWhoeverWaitsForSomethingElse) {
  run(2, [](group& group) {
    const auto big = numbers(longer, static_cast<float>(group.rank()));
    if (group.rank() == 0) {
      const auto sent = group.isend(big, 1, 2);
      sent.wait();  // the other waits in the barrier already
      group.barrier();
    } else {
      const auto into = tensor::zeros<float>({longer});
      const auto got = group.irecv(into, 0, 2);
      group.barrier();
      got.wait();
      EXPECT_EQ(into.at<float>(longer - 1), 0);
    }
  });
}

constexpr int more_than_a_ring_holds = 100;

void send_numbers(group& from, std::size_t to) {
  for (int each = 0; each < more_than_a_ring_holds; ++each) from.send(numbers(1, static_cast<float>(each)), to);
}

void expect_numbers(group& at, std::size_t from) {
  for (int each = 0; each < more_than_a_ring_holds; ++each) {
    EXPECT_EQ(at.recv(from).item<float>(), static_cast<float>(each));
  }
}

TEST_P(Messages, AreSentThoughTheirReceiverWaitsForTheSenderAndHasUsedNoneYet) {
  const auto body = [](group& group) {
    if (group.rank() == 1) send_numbers(group, 0);
    group.barrier();
    if (group.rank() == 0) expect_numbers(group, 1);
  };
  run(2, body, {.timeout = 20s, .spin = 0ns});
}

TEST_P(Messages, AreSentThoughTheirReceiverWaitsForAnotherRankAndHasUsedNoneYet) {
  const auto body = [](group& group) {
    if (group.rank() == 2) {
      send_numbers(group, 0);
      group.send(numbers(1, 0), 1);
    }
    if (group.rank() == 1) static_cast<void>(group.recv(2));  // only then it comes to the barrier
    group.barrier();
    if (group.rank() == 0) expect_numbers(group, 2);
  };
  run(3, body, {.timeout = 20s, .spin = 0ns});
}

TEST_P(Messages, OfAnotherShapeAreRefusedAtBothEnds) {
  run(2, [](group& group) {
    if (group.rank() == 0) {
      const auto text = text_thrown_by<error>([&] { group.send(numbers(longer, 1), 1, 4); });
      EXPECT_THAT(text, AllOf(HasSubstr("tag 4"), HasSubstr("f32 (1000,)"), HasSubstr("f64 (3,)")));
      group.send(numbers(2, 1), 1, 4);
      group.barrier();
      EXPECT_THAT(text_thrown_by<error>([&] { group.send(numbers(2, 1), 1, 4); }), HasSubstr("refused"));
    } else {
      const auto into = tensor::zeros<double>({3});
      EXPECT_THAT(text_thrown_by<error>([&] { group.recv(into, 0, 4); }),
                  AllOf(HasSubstr("rank 0"), HasSubstr("tag 4")));
      EXPECT_THROW(group.recv(into, 0, 4), error);
      group.barrier();
    }
    group.barrier();
  });
}

TEST_P(Messages, ThatNobodySendsTimeOutAndBreakNothing) {
  run(2, [](group& group) {
    if (group.rank() == 0) {
      const auto into = tensor::zeros<float>({1});
      const auto text = text_thrown_by<group_error>([&] { group.recv(into, 1, 8, {.timeout = 20ms}); });
      EXPECT_THAT(text, AllOf(HasSubstr("tag 8"), HasSubstr("rank 1"), HasSubstr("timed out")));
      const auto later = group.irecv(into, 1, 8);
      EXPECT_FALSE(later.wait_for(5ms));
      group.barrier();
      later.wait();
      EXPECT_EQ(into.item<float>(), 4);
    } else {
      group.barrier();
      group.send(numbers(1, 4), 0, 8);
    }
  });
}

TEST_P(Messages, ThatTimeOutNameWhoIsMissing) {
  run(2, [](group& group) {
    group.barrier();
    const auto missing_in = [](const auto& call) {
      try {
        call();
        ADD_FAILURE() << "it was in time";
      } catch (const group_error& found) {
        EXPECT_EQ(found.code(), errc::timed_out) << found.what();
        return found.missing();
      }
      return std::vector<group_member>();
    };
    if (group.rank() == 0) {
      const call_options soon{.timeout = 5ms};
      const auto into = tensor::zeros<float>({1});
      const auto other = std::vector{group.members()[1]};
      EXPECT_EQ(missing_in([&] { group.recv(into, 1, 8, soon); }), other);
      EXPECT_EQ(missing_in([&] { static_cast<void>(group.recv(1, 8, soon)); }), other);
      EXPECT_EQ(missing_in([&] { group.send(numbers(longer, 1), 1, 9, soon); }), other);
      EXPECT_EQ(missing_in([&] { static_cast<void>(group.subset({1, 0}, soon)); }), other);
      EXPECT_TRUE(missing_in([&] { group.recv(into, any_source, 8, soon); }).empty());
    } else {
      test::work_for(10ms);  // and looks into no ring meanwhile
    }
    EXPECT_TRUE(group.is_whole());
    group.barrier();
  });
}

TEST_P(Messages, ThatTimeOutAtTheirReceiversDoorArriveLaterAndSaySo) {
  run(2, [](group& group) {
    if (group.rank() == 0) {
      const auto text = text_thrown_by<group_error>([&] { group.send(numbers(longer, 7), 1, 9, {.timeout = 5ms}); });
      EXPECT_THAT(text, AllOf(HasSubstr("timed out"), HasSubstr("arrives if it is received later")));
      group.barrier();
      group.send(numbers(longer, 8), 1, 9);
    } else {
      group.barrier();
      EXPECT_EQ(group.recv(0, 9).at<float>(longer - 1), 7);
      EXPECT_EQ(group.recv(0, 9).at<float>(longer - 1), 8);
    }
    group.barrier();
  });
}

TEST_P(Messages, ThatAreNotWantedAnyMoreAreCancelled) {
  run(2, [](group& group) {
    if (group.rank() == 0) {
      const auto first = tensor::zeros<float>({1});
      const auto given_up = group.irecv(first, 1);
      EXPECT_TRUE(given_up.cancel());
      EXPECT_FALSE(given_up.cancel());
      EXPECT_THROW(given_up.wait(), error);
      group.barrier();
      const auto second = tensor::zeros<float>({1});
      group.recv(second, 1);
      EXPECT_EQ(first.item<float>(), 0);
      EXPECT_EQ(second.item<float>(), 6);
    } else {
      group.barrier();
      group.send(numbers(1, 6), 0);
    }
  });
}

TEST_P(Messages, AnyOfSeveralIsWaitedFor) {
  run(3, [](group& group) {
    if (group.rank() != 0) {
      if (group.rank() == 2) static_cast<void>(group.recv(0, 1));  // after the first
      group.send(numbers(2, static_cast<float>(group.rank())), 0);
      return group.barrier();
    }
    const auto one = tensor::zeros<float>({2});
    const auto two = tensor::zeros<float>({2});
    const auto works = std::vector{group.irecv(two, 2), group.irecv(one, 1)};
    EXPECT_EQ(wait_any(works), 1U);
    EXPECT_EQ(one.at<float>(0), 1);
    group.send(numbers(1, 0), 2, 1);
    works[0].wait();
    EXPECT_EQ(two.at<float>(0), 2);
    const auto never = std::vector{group.irecv(one, 1)};
    EXPECT_EQ(wait_any(never, deadline::after(1ms)), std::nullopt);
    EXPECT_TRUE(never[0].cancel());
    group.barrier();
  });
}

TEST_P(Messages, CanBeObjects) {
  run(2, [](group& group) {
    using value = std::vector<std::string>;
    const value sent = {"one", std::string(5000, 'x')};
    if (group.rank() == 0) return group.send_object(sent, 1, 6);
    EXPECT_EQ(group.recv_object<value>(0, 6), sent);
  });
}

TEST_P(Messages, IntoWhatIsBeingSentOrReceivedAreRefusedWithBothRanges) {
  run_group(GetParam(), 2, [](group& group) {
    const auto other = 1 - group.rank();
    const auto all = numbers(3 * longer, 1);
    const auto part = [&](std::size_t first) { return all.slice(first, first + longer); };
    const auto sent = group.isend(part(0), other, 3);
    const auto ranges = AllOf(HasSubstr("the tensor of receive from rank"), HasSubstr("at bytes 4 to"),
                              HasSubstr("that of send to rank"), HasSubstr("at bytes 0 to"));
    EXPECT_THAT(text_thrown_by<error>([&] { static_cast<void>(group.irecv(part(1), other, 3)); }), ranges);
    EXPECT_THAT(text_thrown_by<error>([&] { group.recv(part(1), other, 3); }), ranges);
    const auto received = group.irecv(part(longer), other, 3);
    EXPECT_THAT(text_thrown_by<error>([&] { static_cast<void>(group.irecv(part(2 * longer - 1), other, 4)); }),
                AllOf(HasSubstr("with tag 4"), HasSubstr("with tag 3"), HasSubstr("at bytes 4000 to 8000")));
    EXPECT_THAT(text_thrown_by<error>([&] { static_cast<void>(group.isend(part(longer + 1), other, 4)); }),
                AllOf(HasSubstr("the tensor of send to rank"), HasSubstr("that of receive from rank")));
    const auto again = group.isend(part(0), other, 4);  // what is only read may be sent twice
    const auto beside = group.irecv(part(2 * longer), other, 4);
    for (const auto& each : {sent, received, again, beside}) each.wait();
    EXPECT_EQ(part(longer).to_vector<float>(), std::vector<float>(longer, 1));
    group.barrier();
    group.send(part(0), other);
    group.recv(part(0), other);  // it is over
    const auto columns = numbers(4 * longer, 2).reshape({longer, 4});
    const auto odd = group.irecv(columns.slice(1, 4, 1, 2), other);
    const auto even = group.irecv(columns.slice(0, 4, 1, 2), other);
    group.send(numbers(2 * longer, 7).reshape({longer, 2}), other);
    group.send(numbers(2 * longer, 8).reshape({longer, 2}), other);
    odd.wait();
    even.wait();
    EXPECT_EQ(columns.at<float>(longer - 1, 3), 7);
    EXPECT_EQ(columns.at<float>(longer - 1, 2), 8);
    const auto one = numbers(1, 0);
    EXPECT_THAT(text_thrown_by<error>([&] { static_cast<void>(group.irecv(one.broadcast_to({5}), other)); }),
                HasSubstr("several elements in one place"));
  });
}

// They go into the ring before anything can come, or are kept elsewhere.
TEST_P(Messages, ThatAreShortMayBeSentFromWhereOthersAreReceived) {
  run_group(GetParam(), 2, [](group& group) {
    constexpr float count = 100;  // more than the ring has room for
    const auto other = 1 - group.rank();
    const auto number = numbers(1, 0);
    if (group.rank() == 0) {
      std::vector<work> sends;
      for (float each = 0; each < count; ++each) {
        number.item<float>() = each;
        sends.push_back(group.isend(number.clone(), other));
      }
      number.item<float>() = count;
      const auto last = group.isend(number, other);
      const auto received = group.irecv(number, other, 1);
      for (const auto& each : sends) each.wait();
      last.wait();
      received.wait();
      EXPECT_EQ(number.item<float>(), -1);
    } else {
      group.send(numbers(1, -1), other, 1);
      for (float each = 0; each <= count; ++each) {
        group.recv(number, other);
        EXPECT_EQ(number.item<float>(), each);
      }
    }
  });
}

TEST_P(Messages, ToRanksThatDoNotExistAreRefused) {
  run(1, [](group& group) {
    EXPECT_THAT(text_thrown_by<error>([&] { group.send(numbers(1, 1), 1); }), HasSubstr("ranks are 0 to 0"));
    EXPECT_THROW(group.recv(numbers(1, 1), 3), error);
  });
}

TEST_P(Messages, SentBeforeOneLeftAreReceived) {
  run(2, [](group& group) {
    if (group.rank() == 1) return group.send(numbers(3, 9), 0);
    EXPECT_TRUE(test::eventually([&] { return !group.is_whole() || group.members()[1].pid != 0; }));
    EXPECT_EQ(group.recv(1).at<float>(2), 9);
    EXPECT_THROW(static_cast<void>(group.recv(1)), peer_lost);
  });
}

// With the last handle goes what the group kept for messages to come.
TEST(MessagesOfOneRank, ThatAreUnderWayWhenTheGroupIsGoneEndAndTheirHandlesStay) {
  std::vector<work> works;
  {
    group alone(group_ticket(1), 0);
    const auto sent = numbers(longer, 7);
    const auto received = numbers(longer, 0);
    works.push_back(alone.isend(sent, 0, 1));
    works.push_back(alone.irecv(received, 0, 1));
    for (const auto& each : works) each.wait();
    EXPECT_EQ(received.at<float>(longer - 1), 7);
    works.push_back(alone.isend(sent, 0, 2));
    works.push_back(alone.irecv(received, 0, 3));
  }
  for (const std::size_t ended : {0U, 1U}) EXPECT_NO_THROW(works[ended].wait());
  for (const std::size_t cut_off : {2U, 3U}) {
    EXPECT_THAT(text_thrown_by<error>([&] { works[cut_off].wait(); }), HasSubstr("handle is gone"));
    EXPECT_FALSE(works[cut_off].cancel());
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Messages, testing::ValuesIn(test::rank_kinds()),
                         [](const auto& given) { return test::name_of(given.param); });

}  // namespace
}  // namespace muster::message_test
