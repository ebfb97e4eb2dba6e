// SPDX-License-Identifier: BSL-1.0
// What a callback of a group's operation may do with that group.
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "group_support.hpp"

namespace muster::group_callback_test {
namespace {

using namespace std::chrono_literals;
using test::text_thrown_by;
using testing::AllOf;
using testing::HasSubstr;

using failure = std::exception_ptr;

/// A group of two ranks in this process. `peer` makes its calls when the test says so.
struct pair_of_ranks {
  group_ticket ticket{2, {.timeout = 60s}};
  std::shared_ptr<group> mine = std::make_shared<group>(ticket, 0);
  group peer{ticket, 1};

  /// Returns when rank 0 has left.
  void await_departure() {
    EXPECT_THAT(text_thrown_by<peer_lost>([&] { static_cast<void>(peer.recv(0, 77)); }), HasSubstr("rank 0"));
  }
};

/// What `call` throws in a callback of a collective of rank 0's.
std::string text_in_callback(pair_of_ranks& both, const std::function<void()>& call) {
  std::promise<std::string> found;
  const auto begun = both.mine->barrier_async();
  begun.then([&](const failure&) { found.set_value(text_thrown_by<error>(call)); });
  both.peer.barrier();
  return found.get_future().get();
}

TEST(GroupCallback, IsTheLastOwnerAndTheGroupLeavesAfterIt) {
  for (int round = 0; round < 20; ++round) {
    pair_of_ranks both;
    const auto sum = tensor::ones<float>({4});
    both.mine->all_reduce_async(sum).then([owner = both.mine](const failure&) {});
    both.mine.reset();
    both.peer.all_reduce(tensor::ones<float>({4}));
    both.await_departure();
    EXPECT_EQ(sum.at<float>(0), 2);
  }
}

TEST(GroupCallback, IsTheLastOwnerWhileOtherCallsAreQueuedAndTheseEndFirst) {
  pair_of_ranks both;
  const auto sum = tensor::ones<float>({4});
  both.mine->barrier_async().then([owner = both.mine](const failure&) {});
  const auto last = both.mine->all_reduce_async(sum);
  both.mine.reset();
  both.peer.barrier();
  both.peer.all_reduce(tensor::ones<float>({4}));
  last.wait();
  EXPECT_EQ(sum.at<float>(0), 2);
  both.await_departure();
}

TEST(GroupCallback, OfAMessageInsideOfACollectiveIsTheLastOwnerAndTheCollectiveEndsFirst) {
  pair_of_ranks both;
  const auto sum = tensor::ones<float>({4});
  const auto room = tensor::zeros<float>({4});
  std::promise<void> received;
  both.mine->irecv(room, 1).then([owner = both.mine, &received](const failure&) { received.set_value(); });
  const auto last = both.mine->all_reduce_async(sum);
  both.mine.reset();
  both.peer.send(tensor::ones<float>({4}), 0);
  received.get_future().wait();
  both.peer.all_reduce(tensor::ones<float>({4}));
  last.wait();
  EXPECT_EQ(sum.at<float>(0), 2);
  both.await_departure();
}

TEST(GroupCallback, OfAMessageIsTheLastOwnerWhereItIsWaitedFor) {
  pair_of_ranks both;
  const auto room = tensor::zeros<float>({4});
  const auto message = both.mine->irecv(room, 1);
  message.then([owner = both.mine](const failure&) {});
  both.mine.reset();
  both.peer.send(tensor::ones<float>({4}), 0);
  message.wait();
  EXPECT_EQ(room.at<float>(3), 1);
  both.await_departure();
}

TEST(GroupCallback, MayGiveTheGroupUpForAnother) {
  pair_of_ranks both;
  const group_ticket other(1);
  std::promise<void> changed;
  both.mine->barrier_async().then([&](const failure&) {
    *both.mine = group(other, 0);
    changed.set_value();
  });
  both.peer.barrier();
  both.await_departure();
  changed.get_future().wait();
  EXPECT_EQ(both.mine->size(), 1U);
  both.mine->barrier();
}

TEST(GroupCallback, MayShrinkTheGroup) {
  pair_of_ranks both;
  std::promise<std::shared_ptr<group>> rest;
  const auto begun = both.mine->barrier_async();
  begun.then([&](const failure&) { rest.set_value(std::make_shared<group>(both.mine->shrink())); });
  const auto behind = both.mine->barrier_async();
  {
    const auto leaves = std::move(both.peer);
  }
  const auto found = rest.get_future().get();
  EXPECT_EQ(found->size(), 1U);
  found->barrier();
  EXPECT_THROW(begun.wait(), peer_lost);
  EXPECT_THROW(behind.wait(), peer_lost);
}

TEST(GroupCallback, OfAMessageInsideOfACollectiveMayNotShrinkTheGroup) {
  pair_of_ranks both;
  std::promise<std::string> found;
  const auto message = both.mine->irecv(tensor::zeros<float>({4}), 1);
  message.then([&](const failure&) {
    both.peer.abort("enough");  // there is something to leave out
    found.set_value(text_thrown_by<error>([&] { static_cast<void>(both.mine->shrink()); }));
  });
  const auto call = both.mine->barrier_async();
  both.peer.send(tensor::ones<float>({4}), 0);
  EXPECT_THAT(found.get_future().get(), HasSubstr("inside of one of them"));
  EXPECT_THROW(call.wait(), group_error);
}

TEST(GroupCallback, MayNotWaitForCollectivesOfTheGroup) {
  pair_of_ranks both;
  work begun;
  const auto is_refused = AllOf(HasSubstr("a callback of a group's collective"), HasSubstr("then"));
  EXPECT_THAT(text_in_callback(both, [&] { both.mine->barrier({.timeout = 3s}); }), is_refused);
  EXPECT_THAT(text_in_callback(both, [&] { static_cast<void>(both.mine->split(0)); }), is_refused);
  EXPECT_THAT(text_in_callback(both, [&] { static_cast<void>(both.mine->all_gather_object(7)); }), is_refused);
  const auto begin_and_wait = [&] {
    begun = both.mine->barrier_async();
    static_cast<void>(begun.wait_for(3s));
  };
  EXPECT_THAT(text_in_callback(both, begin_and_wait), is_refused);
  both.peer.barrier();
  begun.wait();
  EXPECT_THAT(text_in_callback(both, [&] { begun.wait(); }), "nothing was thrown");
  const auto begin_and_wait_for_any = [&] {
    begun = both.mine->barrier_async();
    static_cast<void>(wait_any(std::vector{begun}));
  };
  EXPECT_THAT(text_in_callback(both, begin_and_wait_for_any), is_refused);
  both.peer.barrier();
  begun.wait();
}

TEST(GroupCallback, MayReceiveUntilATimeout) {
  pair_of_ranks both;
  const auto receive = [&] { static_cast<void>(both.mine->recv(1, 0, {.timeout = 10ms})); };
  EXPECT_THAT(text_in_callback(both, receive), HasSubstr("timed out"));
}

TEST(GroupCallback, MayBeginWhatFollows) {
  pair_of_ranks both;
  std::promise<work> next;
  both.mine->barrier_async().then([&](const failure&) { next.set_value(both.mine->barrier_async()); });
  both.peer.barrier();
  both.peer.barrier();
  next.get_future().get().wait();
}

}  // namespace
}  // namespace muster::group_callback_test
