// SPDX-License-Identifier: BSL-1.0
// Messages behind more long ones than a sender can have answered at once, and what their receiver copies for that.
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <muster/collectives/detail/outbox.hpp>

#include "group_support.hpp"

namespace muster::message_backlog_test {
namespace {

using namespace std::chrono_literals;
using test::rank_kind;

constexpr std::size_t longer = 97;  // 388 bytes: one number more than goes along in the ring
constexpr std::size_t answers = detail::outbox::most_acks;
constexpr std::size_t more = answers + 44;
constexpr std::uint32_t backlog = 0;
constexpr std::uint32_t behind = 1;

tensor numbers(std::size_t count, std::size_t value) {
  return tensor::full<float>({count}, static_cast<float>(value), memory::local);
}

std::vector<work> begin_backlog(group& from, std::size_t to, std::size_t count) {
  std::vector<work> begun;
  for (std::size_t each = 0; each < count; ++each) begun.push_back(from.isend(numbers(longer, each), to, backlog));
  return begun;
}

void expect_backlog(group& at, std::size_t from, std::size_t count) {
  const auto into = numbers(longer, 0);
  for (std::size_t each = 0; each < count; ++each) {
    at.recv(into, from, backlog);
    ASSERT_EQ(into.at<float>(longer - 1), static_cast<float>(each));
  }
}

void end_all(const std::vector<work>& begun) {
  for (const auto& each : begun) each.wait();
}

class MessagesBehindLongOnes : public testing::TestWithParam<rank_kind> {
protected:
  static void run(std::size_t ranks, const test::rank_body& body) {
    for (const auto spin : {0ns, 50'000ns}) run_group(GetParam(), ranks, body, {.timeout = 20s, .spin = spin});
  }
  // Rank 1 gets the one behind them first.
  static void run_receiver(std::size_t count, const std::function<void(group&, const tensor&)>& receive) {
    run(2, [&](group& group) {
      const auto number = numbers(1, 7);
      if (group.rank() == 0) {
        const auto begun = begin_backlog(group, 1, count);
        group.isend(number, 1, behind).wait();
        return end_all(begun);
      }
      number.fill(0.0F);
      receive(group, number);
      EXPECT_EQ(number.item<float>(), 7);
      expect_backlog(group, 0, count);
    });
  }
};

TEST_P(MessagesBehindLongOnes, AreReceived) {
  for (const std::size_t count : {answers - 1, answers, answers + 1, 5 * answers}) {
    run_receiver(count, [](group& group, const tensor& into) { group.recv(into, 0, behind); });
  }
}

TEST_P(MessagesBehindLongOnes, AreReceivedFromAnySource) {
  run_receiver(more, [](group& group, const tensor& into) { EXPECT_EQ(group.recv(into, any_source, behind), 0U); });
}

TEST_P(MessagesBehindLongOnes, AreReceivedByWhoOnlyTests) {
  run_receiver(more, [](group& group, const tensor& into) {
    const auto got = group.irecv(into, 0, behind);
    EXPECT_TRUE(test::eventually([&] { return got.test(); }));
  });
}

TEST_P(MessagesBehindLongOnes, AreReceivedByWhoWaitsForNoTimeAgainAndAgain) {
  run_receiver(more, [](group& group, const tensor& into) {
    const auto got = group.irecv(into, 0, behind);
    EXPECT_TRUE(test::eventually([&] { return got.wait_for(0ns); }));
  });
}

TEST_P(MessagesBehindLongOnes, AreReceivedAmongSeveral) {
  run_receiver(more, [](group& group, const tensor& into) {
    const auto never = group.irecv(numbers(1, 0), 0, 2);
    EXPECT_EQ(wait_any(std::vector{never, group.irecv(into, 0, behind)}, deadline::after(20s)), 1U);
    EXPECT_TRUE(never.cancel());
  });
}

TEST_P(MessagesBehindLongOnes, AreReceivedByWhoHasSentMoreThanThatFirst) {
  run(2, [](group& group) {
    const auto other = 1 - group.rank();
    const auto begun = begin_backlog(group, other, more);
    const auto last = group.isend(numbers(1, 7), other, behind);
    EXPECT_EQ(group.recv(other, behind).item<float>(), 7);
    last.wait();
    expect_backlog(group, other, more);
    end_all(begun);
  });
}

// What is short is sent at once, whatever its receiver does.
TEST_P(MessagesBehindLongOnes, AreSentToWhoIsInACollective) {
  for (const bool is_async : {false, true}) {
    run(2, [is_async](group& group) {
      std::vector<work> begun;
      if (group.rank() == 0) {
        begun = begin_backlog(group, 1, more);
        group.send(numbers(1, 7), 1, behind);
      }
      is_async ? group.barrier_async().wait() : group.barrier();
      if (group.rank() == 0) return end_all(begun);
      EXPECT_EQ(group.recv(0, behind).item<float>(), 7);
      expect_backlog(group, 0, more);
    });
  }
}

TEST_P(MessagesBehindLongOnes, AreSentToWhoWaitsForAnotherRank) {
  run(3, [](group& group) {
    if (group.rank() == 0) {
      const auto begun = begin_backlog(group, 1, more);
      group.send(numbers(1, 7), 1, behind);
      group.send(numbers(1, 8), 2);
      return end_all(begun);
    }
    if (group.rank() == 2) return group.send(group.recv(0), 1);
    EXPECT_EQ(group.recv(2).item<float>(), 8);
    EXPECT_EQ(group.recv(0, behind).item<float>(), 7);
    expect_backlog(group, 0, more);
  });
}

TEST_P(MessagesBehindLongOnes, MayBeThoseOfASubset) {
  for (const bool is_led_by_sender : {true, false}) {
    run(2, [is_led_by_sender](group& group) {
      std::vector<work> begun;
      if (group.rank() == 0) begun = begin_backlog(group, 1, more);
      auto part = is_led_by_sender ? group.subset({0, 1}) : group.subset({1, 0});
      part.barrier();
      group.rank() == 0 ? end_all(begun) : expect_backlog(group, 0, more);
    });
  }
}

// ---- what is copied for it

TEST_P(MessagesBehindLongOnes, LeaveThoseWhereTheyAreThatAreAskedForNext) {
  run(2, [](group& group) {
    for (const std::size_t count : {answers - 1, more}) {
      std::vector<work> begun;
      if (group.rank() == 0) {
        begun = begin_backlog(group, 1, count);
        if (count > answers) group.send(numbers(1, 7), 1, behind);
      }
      group.barrier();
      if (group.rank() == 0) {
        EXPECT_FALSE(begun.front().test()) << "somebody is about to ask for it";
        if (count < answers) {
          EXPECT_FALSE(begun.back().test()) << "its sender can tell of more";
        }
        group.barrier();
        end_all(begun);
      } else {
        group.barrier();
        if (count > answers) static_cast<void>(group.recv(0, behind));
        expect_backlog(group, 0, count);
      }
    }
  });
}

TEST_P(MessagesBehindLongOnes, OfTwoWhoOnlyTestWhatTheyHaveSentGoBothWays) {
  run(2, [](group& group) {
    const auto other = 1 - group.rank();
    const auto sent = group.isend(numbers(longer, group.rank()), other);
    EXPECT_TRUE(test::eventually([&] { return sent.test(); }));
    EXPECT_EQ(group.recv(other).at<float>(0), static_cast<float>(other));
  });
}

INSTANTIATE_TEST_SUITE_P(Of, MessagesBehindLongOnes, testing::ValuesIn(test::rank_kinds()),
                         [](const auto& given) { return test::name_of(given.param); });

}  // namespace
}  // namespace muster::message_backlog_test
