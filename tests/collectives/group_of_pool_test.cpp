// SPDX-License-Identifier: BSL-1.0
// The workers of a pool as ranks, and programs that were started independently.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/collectives/group.hpp>
#include <muster/pool/pool.hpp>
#include <muster/process/listener.hpp>
#include <muster/queue/event.hpp>

#include "processes.hpp"
#include "temporary_directory.hpp"

namespace muster::group_of_pool_test {
namespace {

using namespace std::chrono_literals;

float sum_of_ranks(const group_ticket& ticket, std::size_t rank, std::size_t count) {
  group mine(ticket, rank);
  const auto own = tensor::full<float>({count}, static_cast<float>(rank));
  mine.all_reduce(own);
  return own.at<float>(count - 1);
}

TEST(GroupOfPool, WorkersComputeTogetherAgainAndAgain) {
  const pool pool({.workers = 3});
  for (const std::size_t count : {std::size_t{1}, std::size_t{100'000}}) {
    const group_ticket ticket(3);
    std::vector<future<float>> sums;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      sums.push_back(pool.on(rank).apply_async(sum_of_ranks, ticket, rank, count));
    }
    for (auto& each : sums) EXPECT_EQ(each.get(), 3);
  }
}

TEST(GroupOfPool, TheProgramCanBeARankItself) {
  const pool pool({.workers = 1});
  const group_ticket ticket(2);
  auto other = pool.apply_async(sum_of_ranks, ticket, std::size_t{1}, std::size_t{3000});
  EXPECT_EQ(sum_of_ranks(ticket, 0, 3000), 1);
  EXPECT_EQ(other.get(), 1);
}

TEST(GroupOfPool, ErrorsOfATaskArriveAsThemselves) {
  const pool pool({.workers = 1});
  const auto lose = [] {
    throw peer_lost("rank 1 is lost", {.operation = "barrier", .sequence = 7, .lost = {{.rank = 1, .pid = 4711}}});
  };
  try {
    pool.apply(lose);
    FAIL();
  } catch (const peer_lost& caught) {
    EXPECT_EQ(caught.code(), errc::peer_lost);
    EXPECT_STREQ(caught.what(), "rank 1 is lost");
    EXPECT_EQ(caught.operation(), "barrier");
    EXPECT_EQ(caught.sequence(), 7U);
    EXPECT_EQ(caught.lost(), (std::vector<group_member>{{.rank = 1, .pid = 4711}}));
  }
  try {
    pool.apply([] { throw group_error(errc::timed_out, "too late", {.operation = "send"}); });
    FAIL();
  } catch (const group_error& caught) {
    EXPECT_EQ(caught.code(), errc::timed_out);
    EXPECT_EQ(caught.operation(), "send");
  }
  try {
    pool.apply([] { throw member_failed(errc::invalid_argument, "rank 2 failed", {{.rank = 2}}); });
    FAIL();
  } catch (const member_failed& caught) {
    EXPECT_EQ(caught.code(), errc::invalid_argument);
    EXPECT_EQ(caught.failed().front().rank, 2U);
  }
}

std::string reduce_into(const group_ticket& ticket, std::size_t rank, const tensor& in, const tensor& out) {
  group mine(ticket, rank);
  try {
    mine.all_reduce(in, out);
    return "done";
  } catch (const error& refusal) {
    mine.barrier();  // it goes on
    return refusal.what();
  }
}

TEST(GroupOfPool, WhatOneWorkerWritesIsNotReadByAnother) {
  const pool pool({.workers = 2});
  const auto all = tensor::ones<float>({10'000});
  const auto apart = tensor::zeros<float>({5'000});
  const group_ticket ticket(2);
  auto first =
      pool.on(0).apply_async(reduce_into, ticket, std::size_t{0}, all.slice(5'000, 10'000), all.slice(0, 5'000));
  auto second = pool.on(1).apply_async(reduce_into, ticket, std::size_t{1}, all.slice(4'000, 9'000), apart);
  const auto ranges = testing::AllOf(testing::HasSubstr("bytes 0 to 20000, which rank 0 writes"),
                                     testing::HasSubstr("bytes 16000 to 36000, which rank 1 reads"));
  EXPECT_THAT(first.get(), ranges);
  EXPECT_THAT(second.get(), ranges);
  EXPECT_EQ(all.to_vector<float>(), std::vector<float>(10'000, 1));
  EXPECT_EQ(apart.to_vector<float>(), std::vector<float>(5'000, 0));
}

// Waits in a barrier until the other is dead; then goes on without it.
std::string go_on_without(const group_ticket& ticket, std::size_t rank, const event& joined) {
  group mine(ticket, rank);
  if (rank == 1) {
    joined.set();
    for (;;) ::pause();
  }
  try {
    mine.barrier();
    return "the barrier was passed";
  } catch (const peer_lost& found) {
    if (found.lost().size() != 1 || found.lost()[0].rank != 1) return found.what();
  }
  auto rest = mine.shrink();
  const auto own = tensor::full<float>({5000}, 1);
  rest.all_reduce(own);
  return "the sum is " + std::to_string(static_cast<int>(own.at<float>(4999)));
}

TEST(GroupOfPool, WhoeverIsLeftOfItsWorkersGoesOn) {
  const pool pool({.workers = 3});
  const group_ticket ticket(3);
  const event joined;
  std::vector<future<std::string>> calls;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    calls.push_back(pool.on(rank).apply_async(go_on_without, ticket, rank, joined));
  }
  joined.wait();
  ASSERT_EQ(::kill(pool.workers()[1].pid, SIGKILL), 0);
  EXPECT_EQ(calls[0].get(), "the sum is 2");
  EXPECT_EQ(calls[2].get(), "the sum is 2");
  EXPECT_THROW(calls[1].get(), worker_died);
}

constexpr std::uint32_t few_tag = 1;
constexpr std::uint32_t many_tag = 2;

void send_and_leave(const group_ticket& ticket) {
  group mine(ticket, 0);
  for (std::size_t each = 0; each < 10; ++each) {
    mine.send(tensor::full<float>({3}, static_cast<float>(each)), 1, few_tag);
    static_cast<void>(mine.isend(tensor::full<float>({3000}, static_cast<float>(each)), 1, many_tag));
  }
}

std::size_t count_received(const group_ticket& ticket) {
  group mine(ticket, 1);
  std::size_t count = 0;
  for (std::size_t each = 0; each < 10; ++each) {
    for (const auto tag : {few_tag, many_tag}) {
      count += mine.recv(0, tag).at<float>(2) == static_cast<float>(each) ? 1 : 0;
    }
  }
  return count;
}

TEST(GroupOfPool, WhatAWorkerHasSentIsReceivedWhenItsPoolIsGone) {
  for (const bool by_program : {true, false}) {
    const group_ticket ticket(2, {.timeout = 20s});
    pool({.workers = 1}).apply(send_and_leave, ticket);
    EXPECT_EQ(by_program ? count_received(ticket) : pool({.workers = 1}).apply(count_received, ticket), 20U);
  }
}

TEST(GroupOfPrograms, IsMetByName) {
  const test::temporary_directory directory;
  const auto path = (directory.path() / "door").string();
  listener door(path);
  for (int round = 0; round < 3; ++round) {  // under the same name, again and again
    door.offer("team", group_ticket(3));
    const auto others = test::spawn(2, [&](std::size_t index) {
      const auto rank = std::to_string(index + 1);
      ::execl(MUSTER_MEMBER, MUSTER_MEMBER, path.c_str(), "team", rank.c_str(), nullptr);
      return 127;
    });
    EXPECT_EQ(others->wait(0).code(), 0);
    EXPECT_EQ(others->wait(1).code(), 0);
  }
}

}  // namespace
}  // namespace muster::group_of_pool_test
