// SPDX-License-Identifier: BSL-1.0
// Operations of groups as futures.
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <muster/async/as_completed.hpp>
#include <muster/async/asio.hpp>
#include <muster/async/std_future.hpp>
#include <muster/async/when_all.hpp>
#include <muster/async/when_any.hpp>
#include <muster/collectives/work_future.hpp>

#include "group_support.hpp"

namespace muster::work_future_test {
namespace {

using namespace std::chrono_literals;
using test::rank_kind;
using test::run_group;
using test::text_thrown_by;
using testing::HasSubstr;

/// A group of two ranks in this process.
struct pair_of_ranks {
  group_ticket ticket{2, {.timeout = 60s}};
  std::shared_ptr<group> mine = std::make_shared<group>(ticket, 0);
  std::shared_ptr<group> peer = std::make_shared<group>(ticket, 1);
};

tensor one() { return tensor::ones<float>({4}); }

class WorkFuture : public testing::TestWithParam<rank_kind> {};
INSTANTIATE_TEST_SUITE_P(Ranks, WorkFuture, testing::ValuesIn(test::rank_kinds()),
                         [](const auto& which) { return test::name_of(which.param); });

TEST_P(WorkFuture, OfACollectiveGivesItsTensor) {
  run_group(GetParam(), 3, [](group& mine) {
    EXPECT_EQ(future_of(mine.all_reduce_async(one())).get().at<float>(0), 3);
    EXPECT_EQ(future_of(mine.all_gather_async(one())).get().shape()[0], 12U);
    EXPECT_EQ(future_of(mine.barrier_async()).get().size(), 0U);
  });
}

TEST_P(WorkFuture, GoesOnInCallbacksThatBeginFurtherCollectivesAndWaitForThem) {
  run_group(GetParam(), 2, [](group& mine) {
    auto chain = future_of(mine.all_reduce_async(one())).then([&](const tensor& sum) {
      auto twice = future_of(mine.all_reduce_async(sum)).then([](const tensor& all) { return all.at<float>(0); });
      return twice.get() + 1;
    });
    EXPECT_EQ(chain.get(), 5);
  });
}

TEST_P(WorkFuture, OfMessagesEndTogetherThoughNoThreadOfTheProgramBringsThemForward) {
  run_group(GetParam(), 2, [](group& mine) {
    const auto other = 1 - mine.rank();
    auto from_other = future_of(mine.irecv(other, 7));
    auto to_other = future_of(mine.isend(tensor::ones<float>({100'000}), other, 7));
    std::promise<float> found;
    when_all(std::move(from_other), std::move(to_other))
        .on_complete([&](const std::tuple<tensor, tensor>& both) { found.set_value(std::get<0>(both).at<float>(0)); },
                     [&](const error_info& why) { ADD_FAILURE() << why.message(), found.set_value(0); });
    EXPECT_EQ(found.get_future().get(), 1);
  });
}

TEST_P(WorkFuture, IsAwaitedByACoroutine) {
  run_group(GetParam(), 2, [](group& mine) {
    boost::asio::io_context loop;
    const auto add = [&]() -> boost::asio::awaitable<float> {
      const auto sum = co_await future_of(mine.all_reduce_async(one()))(boost::asio::use_awaitable);
      const auto next = co_await future_of(mine.all_reduce_async(sum))(boost::asio::use_awaitable);
      co_return next.at<float>(0);
    };
    auto found = boost::asio::co_spawn(loop, add(), boost::asio::use_future);
    loop.run();
    EXPECT_EQ(found.get(), 4);
  });
}

TEST(FutureOfWork, IsAStdFutureToo) {
  pair_of_ranks both;
  auto sum = future_of(both.mine->all_reduce_async(one())).std();
  both.peer->all_reduce(one());
  EXPECT_EQ(sum.get().at<float>(0), 2);
}

TEST(FutureOfWork, OfAMessageWaitsForALimitedTimeAndIsReadyWhenItHasCome) {
  pair_of_ranks both;
  auto coming = future_of(both.mine->irecv(1));
  EXPECT_FALSE(coming.ready());
  EXPECT_FALSE(coming.wait_for(1ms));
  both.peer->send(one(), 0);
  EXPECT_TRUE(coming.wait_for(60s));
  EXPECT_TRUE(coming.ready());
  EXPECT_EQ(coming.get().at<float>(0), 1);
}

TEST(FutureOfWork, OfMessagesEndInTheOrderInWhichTheyCome) {
  pair_of_ranks both;
  std::vector<future<tensor>> coming;
  for (std::uint32_t tag = 0; tag < 3; ++tag) coming.push_back(future_of(both.mine->irecv(1, tag)));
  const auto send = [&](std::uint32_t tag) {
    both.peer->send(tensor::full<float>({1}, static_cast<float>(tag)), 0, tag);
  };
  send(2);
  std::vector<float> order;
  for (auto& each : as_completed(coming)) {
    order.push_back(each.get().at<float>(0));
    if (order.size() < 3) send(order.size() == 1 ? 0 : 1);
  }
  EXPECT_THAT(order, testing::ElementsAre(2, 0, 1));
}

TEST(FutureOfWork, WithdrawsAReceiveThatIsCancelledAlsoByWhatIsMadeOfIt) {
  pair_of_ranks both;
  auto coming = future_of(both.mine->irecv(1, 1));
  EXPECT_TRUE(coming.cancel());
  EXPECT_EQ(coming.get_result().error().code(), errc::cancelled);
  auto made = future_of(both.mine->irecv(1, 2)).then([](const tensor&) {});
  made.cancel();
  EXPECT_EQ(made.get_result().error().code(), errc::cancelled);
}

TEST(FutureOfWork, OfACollectiveCannotBeWithdrawn) {
  pair_of_ranks both;
  auto sum = future_of(both.mine->all_reduce_async(one()));
  EXPECT_FALSE(sum.cancel());
  both.peer->all_reduce(one());
  EXPECT_EQ(sum.get().at<float>(0), 2);
}

TEST(FutureOfWork, TellsOfAnAbortedGroupInItsError) {
  pair_of_ranks both;
  auto sum = future_of(both.mine->all_reduce_async(one()));
  auto received = future_of(both.mine->irecv(1));
  std::promise<std::string> told;
  received.on_complete([&](const tensor&) { told.set_value(""); },
                       [&](const error_info& why) { told.set_value(why.message()); });
  both.peer->abort("the disk is full");
  EXPECT_THAT(text_thrown_by<group_error>([&] { sum.get(); }), HasSubstr("the disk is full"));
  EXPECT_THAT(told.get_future().get(), HasSubstr("the disk is full"));
}

// A receive before it, from a rank that lives and sends nothing, must not keep the news from it.
TEST(FutureOfWork, OfAReceiveEndsWhenItsSenderLeavesThoughNobodyWaitsForIt) {
  const group_ticket ticket(3, {.timeout = 60s});
  group mine(ticket, 0);
  group silent(ticket, 1);
  auto leaves = std::make_unique<group>(ticket, 2);
  auto never = future_of(mine.irecv(1)).then([](const tensor&) {});
  std::promise<std::string> told;
  future_of(mine.irecv(2))
      .on_complete([&](const tensor&) { told.set_value(""); },
                   [&](const error_info& why) {
                     EXPECT_EQ(why, errc::peer_lost);
                     told.set_value(why.message());
                   });
  leaves.reset();
  EXPECT_THAT(told.get_future().get(), HasSubstr("rank 2"));
  EXPECT_FALSE(never.ready());
}

TEST(FutureOfWork, OutlivesItsGroup) {
  pair_of_ranks both;
  auto sum = future_of(both.mine->all_reduce_async(one()));
  auto never = future_of(both.mine->irecv(1)).then([](const tensor&) {});
  both.peer->all_reduce(one());
  sum.wait();
  both.mine.reset();
  EXPECT_EQ(sum.get().at<float>(0), 2);
  EXPECT_THROW(never.get(), error);
}

TEST(FutureOfWork, ACallbackIsTheGroupsLastOwner) {
  for (int round = 0; round < 20; ++round) {
    pair_of_ranks both;
    auto mine = std::exchange(both.mine, nullptr);
    auto begun = future_of(mine->barrier_async());
    auto received = future_of(mine->irecv(1));
    std::move(begun).on_complete([owner = std::move(mine)](const tensor&) {}, [](const error_info&) {});
    both.peer->barrier();
    EXPECT_THROW(received.get(), error);
  }
}

TEST(FutureOfWork, IsRefusedOfAnEmptyHandle) {
  EXPECT_THAT(text_thrown_by<error>([] { static_cast<void>(future_of(work())); }), HasSubstr("empty handle"));
}

}  // namespace
}  // namespace muster::work_future_test
