// SPDX-License-Identifier: BSL-1.0
// A store that several processes use, any of which may be killed or stopped.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>
#include <muster/memory/domain.hpp>
#include <muster/params.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/process.hpp>
#include <muster/queue/event.hpp>

#include "processes.hpp"

namespace muster::store_process_test {
namespace {

using namespace std::chrono_literals;
using testing::Each;

TEST(StoreProcess, WhatOneProcessPushesOthersPull) {
  const store_ticket ticket(store_options{});
  const store here(ticket);
  pool workers({.workers = 2});
  here.push("from the program", std::string(1000, 'p'));
  const auto read = [](const store_ticket& of) { return store(of).pull<std::string>("from the program").value; };
  EXPECT_EQ(workers.apply(read, ticket), std::string(1000, 'p'));
  workers.apply([](const store_ticket& of) { store(of).push("from a worker", tensor::ones<float>({1000})); }, ticket);
  const auto [value, version] = here.pull<tensor>("from a worker");
  EXPECT_THAT(value.to_vector<float>(), Each(1));
  EXPECT_EQ(version, 1U);
}

TEST(StoreProcess, AVersionOutlivesTheProcessThatPushedIt) {
  const store_ticket ticket(store_options{});
  const store here(ticket);
  {
    const process other(
        [](const store_ticket& of) {
          const store s(of);
          for (int each = 0; each < 3; ++each) s.push("w", tensor::full<int>({50'000}, each));
          s.push("short", 7);
        },
        ticket);
    ASSERT_TRUE(here.wait_for("short", 1));
    other.kill(SIGKILL);
    other.join();
  }
  EXPECT_THAT(here.pull<tensor>("w").value.to_vector<int>(), Each(2));
  EXPECT_EQ(here.pull<int>("short").value, 7);
  EXPECT_EQ(here.push("w", 1).version, 4U);
}

TEST(StoreProcess, WaitersAreWokenAcrossProcesses) {
  const store_ticket ticket(store_options{});
  const store here(ticket);
  const process other(
      [](const store_ticket& of) {
        const store s(of);
        for (std::uint64_t round = 1; round <= 50; ++round) {
          if (!s.wait_for("ping", round)) return;
          s.push("pong", round);
        }
      },
      ticket);
  for (std::uint64_t round = 1; round <= 50; ++round) {
    here.push("ping", round);
    ASSERT_TRUE(here.wait_for("pong", round));
  }
  EXPECT_EQ(here.pull<std::uint64_t>("pong").value, 50U);
}

TEST(StoreProcess, UpdatesOfManyProcessesAreAllThere) {
  const store_ticket ticket(store_options{});
  const store here(ticket);
  here.push("short", 0);
  here.push("long", tensor::zeros<int>({20'000}));
  pool workers({.workers = 4});
  const auto add = [](const store_ticket& of, int times) {
    const store s(of);
    for (int each = 0; each < times; ++each) {
      s.update<int>("short", [](int now) { return now + 1; });
      s.update<tensor>("long", [](const tensor& now) {
        auto next = now.clone();
        next.fill(now.at<const int>(0) + 1);
        return next;
      });
    }
  };
  std::vector<future<void>> all;
  for (int each = 0; each < 4; ++each) all.push_back(workers.apply_async(add, ticket, 100));
  for (auto& each : all) each.get();
  EXPECT_EQ(here.pull<int>("short").value, 400);
  EXPECT_THAT(here.pull<tensor>("long").value.to_vector<int>(), Each(400));
  EXPECT_EQ(here.version("long"), 401U);
}

// Pushes until it is killed: each value is all of one number, which is its version.
void push_on(const store_ticket& ticket, int key) {
  const store s(ticket);
  for (;;) {
    const auto now = s.version(key);
    const auto next = static_cast<std::int64_t>(now) + 1;
    if (next % 3 == 0) {
      s.push(key, std::vector<std::int64_t>(30, next), {.expected = now});
    } else {
      s.push(key, std::vector<std::int64_t>(20'000, next), {.expected = now});
    }
  }
}

struct in_use {
  std::uint64_t blocks = 0;
  std::uint64_t holds = 0;
  friend bool operator==(const in_use&, const in_use&) = default;
};
in_use now_in_use() {
  const auto where = domain::of_program();
  where->keepsakes().tidy();
  const auto found = where->blocks().read_statistics();
  return {.blocks = found.live_blocks, .holds = found.holds};
}

TEST(StoreProcess, PushersThatAreKilledLeaveWholeVersionsAndNothingElse) {
  const auto stays = domain::of_program();
  static_cast<void>(now_in_use());
  for (const std::size_t depth : {1U, 3U}) {
    const store_ticket ticket({.depth = depth});
    const store here(ticket);
    for (int round = 0; round < 20; ++round) {
      const process first(push_on, ticket, 1);
      const process second(push_on, ticket, 1);
      const auto before = here.version(1);
      ASSERT_TRUE(here.wait_for(1, before + 20 + static_cast<std::uint64_t>(round)));
      first.kill(SIGKILL);
      second.kill(SIGKILL);
      first.join();
      second.join();
      const auto [value, version] = here.pull<std::vector<std::int64_t>>(1);
      EXPECT_THAT(value, Each(static_cast<std::int64_t>(version)));
      EXPECT_EQ(here.push(1, std::vector<std::int64_t>(20'000, static_cast<std::int64_t>(version) + 1)).version,
                version + 1);
    }
    for (std::size_t each = 0; each < depth; ++each) {
      here.push(1, std::vector<std::int64_t>(20'000, static_cast<std::int64_t>(here.version(1)) + 1));
    }
    const auto full = now_in_use();
    here.push(1, std::vector<std::int64_t>(20'000, 1));
    EXPECT_EQ(now_in_use(), full) << "depth " << depth << ": no more than that is kept";
  }
}

// Pushes several values together until it is killed: all are of one number, which is their version.
void push_all_on(const store_ticket& ticket) {
  const store s(ticket);
  for (;;) {
    const auto now = s.version(0);
    const auto next = static_cast<std::int64_t>(now) + 1;
    const std::vector<std::int64_t> large(1000, next);
    s.push_all({{0, large, now}, {1, next, now}, {2, large, now}, {3, next, now}});
  }
}

TEST(StoreProcess, PushersOfSeveralThatAreKilledLeaveAllOrNothing) {
  const auto stays = domain::of_program();
  static_cast<void>(now_in_use());
  for (const std::size_t depth : {1U, 3U}) {
    const store_ticket ticket({.depth = depth});
    const store here(ticket);
    for (int round = 0; round < 20; ++round) {
      const process first(push_all_on, ticket);
      const process second(push_all_on, ticket);
      ASSERT_TRUE(here.wait_for(0, here.version(0) + 10 + static_cast<std::uint64_t>(round)));
      first.kill(SIGKILL);
      second.kill(SIGKILL);
      first.join();
      second.join();
      const auto version = here.version(0);
      for (int key = 1; key < 4; ++key) EXPECT_EQ(here.version(key), version);
      EXPECT_THAT(here.pull<std::vector<std::int64_t>>(2).value, Each(static_cast<std::int64_t>(version)));
      EXPECT_EQ(here.pull<std::int64_t>(3).value, static_cast<std::int64_t>(version));
    }
    const auto push = [&] {
      const std::vector<std::int64_t> large(1000, 1);
      here.push_all({{0, large}, {1, large}, {2, large}, {3, large}});
    };
    for (std::size_t each = 0; each < depth; ++each) push();
    const auto full = now_in_use();
    push();
    EXPECT_EQ(now_in_use(), full) << "depth " << depth << ": no more than that is kept";
  }
}

TEST(StoreProcess, WhatAKilledProcessHadIsBack) {
  const auto before = now_in_use();
  for (int round = 0; round < 10; ++round) {
    const store_ticket ticket({.depth = 2});
    const store here(ticket);
    const process other(push_on, ticket, 7);
    const process another(push_all_on, ticket);
    ASSERT_TRUE(here.wait_for(7, 10 + static_cast<std::uint64_t>(round)));
    ASSERT_TRUE(here.wait_for(0, 3));
    other.kill(SIGKILL);
    another.kill(SIGKILL);
    other.join();
    another.join();
  }
  EXPECT_EQ(now_in_use(), before);
}

TEST(StoreProcess, AStoppedProcessHoldsUpNoOther) {
  const store_ticket ticket(store_options{});
  const store here(ticket);
  std::vector<process> others;
  for (int each = 0; each < 3; ++each) others.emplace_back(push_on, ticket, 1);
  for (int round = 0; round < 10; ++round) {
    for (const auto& each : others) each.kill(SIGSTOP);
    here.push(1, std::vector<std::int64_t>(20'000, 1));
    here.push(1, std::vector<std::int64_t>(10, 1));
    const auto version = here.push(1, std::vector<std::int64_t>(20'000, 1)).version;
    for (const auto& each : others) each.kill(SIGCONT);
    ASSERT_TRUE(here.wait_for(1, version + 3));
  }
}

}  // namespace
}  // namespace muster::store_process_test
