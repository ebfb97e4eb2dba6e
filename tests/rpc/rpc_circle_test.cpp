// SPDX-License-Identifier: BSL-1.0
// Calls that come back to where they came from, lines, and many callers.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/async/when_all.hpp>
#include <muster/pool/process.hpp>
#include <muster/rpc.hpp>

namespace muster::rpc_circle_test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

int add(int a, int b) { return a + b; }

/// Calls back, so many times.
struct ball {
  int operator()(int depth) const {
    return depth == 0 ? 0 : this_call::group().call(this_call::caller(), ball(), depth - 1) + 1;
  }
};

void expect_deadlock(const auto& call, const auto& text) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& found) {
    EXPECT_EQ(found.code(), errc::would_deadlock) << found.what();
    EXPECT_THAT(found.what(), text);
  }
}

/// Two members in this process.
struct two_members {
  rpc_ticket ticket{"pair", {"a", "b"}, {.timeout = 60s}};
  rpc_group a{ticket, "a"};
  rpc_group b{ticket, "b"};
};

TEST(RpcCircle, ASerialServiceThatCallsItselfThrows) {
  two_members both;
  both.b.serve("self", [] { this_call::group().service<void()>("self")(); }, {.serial = true});
  expect_deadlock([&] { both.a.service<void()>("self")(); },
                  AllOf(HasSubstr("the service 'self' called by 'b'"), HasSubstr("the service 'self' called by 'a'")));
  EXPECT_EQ(both.a.call("b", add, 1, 1), 2);
}

TEST(RpcCircle, TwoSerialServicesThatCallOneAnotherThrow) {
  two_members both;
  both.a.serve("there", [] { this_call::group().service<void()>("back")(); }, {.serial = true});
  both.b.serve("back", [] { this_call::group().service<void()>("there")(); }, {.serial = true});
  for (int round = 0; round < 20; ++round) {
    expect_deadlock([&] { both.a.service<void()>("there")(); }, HasSubstr("would wait for one another"));
  }
}

// Each has its own line, and waits for the other's.
TEST(RpcCircle, TwoChainsThatHoldWhatTheOtherWaitsForEnd) {
  two_members both;
  std::atomic<int> inside = 0;
  const auto meet = [&](const std::string& next) {
    ++inside;
    while (inside < 2) std::this_thread::yield();
    this_call::group().service<void(std::string)>(next)("");
  };
  const auto step = [&](const std::string& next) {
    if (!next.empty()) meet(next);
  };
  both.a.serve("left", step, {.serial = true});
  both.b.serve("right", step, {.serial = true});
  auto first = both.b.service<void(std::string)>("left").call_async("right");
  auto second = both.a.service<void(std::string)>("right").call_async("left");
  const auto one = first.get_result();
  const auto other = second.get_result();
  EXPECT_TRUE(!one.has_value() || !other.has_value());
  for (const auto* const each : {&one, &other}) {
    if (each->has_value()) continue;
    EXPECT_EQ(each->error().code(), errc::would_deadlock) << each->error().message();
  }
}

TEST(RpcCircle, SendingToItselfWithoutWaitingIsNoCircle) {
  two_members both;
  std::atomic<int> calls = 0;
  future<void> inner;
  both.b.serve("self",
               [&](bool again) {
                 ++calls;
                 if (again) inner = this_call::group().service<void(bool)>("self").call_async(false);
               },
               {.serial = true});
  both.a.service<void(bool)>("self")(true);
  inner.get();
  EXPECT_EQ(calls, 2);
}

TEST(RpcCircle, AWaitThatEndsByItselfIsNoCircle) {
  two_members both;
  both.b.serve("self",
               [&](bool again) {
                 if (!again) return true;
                 return this_call::group().service<bool(bool)>("self").call_async(false).wait_for(1ms);
               },
               {.serial = true});
  EXPECT_FALSE(both.a.service<bool(bool)>("self")(true));
}

struct account {
  int sum = 0;
  int deposit(int more) { return sum += more; }
};

TEST(RpcCircle, AValueWhoseMethodCallsTheValueThrows) {
  two_members both;
  const auto far = both.a.remote("b", [] { return account(); });
  const auto reenter = [](account&, const remote_ref<account>& self) { return self.call(&account::deposit, 1); };
  expect_deadlock([&] { far.call(reenter, far); }, HasSubstr("a remote value called by 'b'"));
  const auto at_once = [](account&, const remote_ref<account>& self) {
    return self.with({.concurrent = true}).call(&account::deposit, 1);
  };
  EXPECT_EQ(far.call(at_once, far), 1);
}

TEST(RpcCircle, TheSameLineOfTwoServicesIsOne) {
  two_members both;
  both.b.serve("outer", [] { this_call::group().service<void()>("inner")(); }, {.line = "bank"});
  both.b.serve("inner", [] {}, {.line = "bank"});
  expect_deadlock([&] { both.a.service<void()>("outer")(); }, HasSubstr("'inner'"));
}

TEST(RpcCircle, BetweenProcesses) {
  const rpc_ticket ticket("processes", {"program", "x"}, {.timeout = 60s});
  rpc_group group(ticket, "program");
  const process there(
      [](const rpc_ticket& of) {
        const rpc_group here(of, "x");
        here.serve("there", [] { this_call::group().service<void()>("back")(); }, {.serial = true});
        here.run();
      },
      ticket);
  group.serve("back", [] { this_call::group().service<void()>("there")(); }, {.serial = true});
  expect_deadlock([&] { group.service<void()>("there")(); }, HasSubstr("'there' called by 'program'"));
  group.leave();
  there.join();
}

TEST(RpcCircle, ChainsThatCrossEndWithOneThreadEach) {
  two_members both;
  std::vector<future<int>> all;
  for (int each = 0; each < 8; ++each) {
    all.push_back(both.a.call_async("b", ball(), 16));
    all.push_back(both.b.call_async("a", ball(), 16));
  }
  for (const int found : when_all(std::move(all)).get()) EXPECT_EQ(found, 16);
}

// More than 255 wait at one member: that is said, and the member goes on.
TEST(RpcCircle, TooDeepAChainIsRefusedAndLeavesNoRoleOccupied) {
  two_members both;
  try {
    both.a.call("b", ball(), 1200);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& found) {
    EXPECT_EQ(found.code(), errc::overflow) << found.what();
  }
  EXPECT_EQ(both.a.call("b", ball(), 64), 64);
}

TEST(RpcCircle, AThousandCallersOfASerialServiceComeInOrder) {
  two_members both;
  std::vector<int> seen;
  both.b.serve("note", [&](int number) { seen.push_back(number); }, {.serial = true});
  const auto note = both.a.service<void(int)>("note");
  std::vector<future<void>> all;
  for (int each = 0; each < 1000; ++each) all.push_back(note.call_async(each));
  when_all(std::move(all)).get();
  ASSERT_EQ(seen.size(), 1000U);
  for (int each = 0; each < 1000; ++each) EXPECT_EQ(seen[static_cast<std::size_t>(each)], each);
}

TEST(RpcCircle, FullInboxesOnBothSidesWaitAndGoOn) {
  const rpc_ticket ticket("small", {"a", "b"}, {.timeout = 60s, .inbox = 2});
  const rpc_group a(ticket, "a");
  const rpc_group b(ticket, "b");
  std::vector<future<int>> all;
  std::jthread other([&] {
    std::vector<future<int>> own;
    for (int each = 0; each < 200; ++each) own.push_back(b.call_async("a", ball(), 4));
    for (auto& each : own) EXPECT_EQ(each.get(), 4);
  });
  for (int each = 0; each < 200; ++each) all.push_back(a.call_async("b", ball(), 4));
  for (auto& each : all) EXPECT_EQ(each.get(), 4);
}

TEST(RpcCircle, AGroupOfTheSameNameIsMadeAHundredTimes) {
  for (int round = 0; round < 100; ++round) {
    two_members both;
    both.b.serve("sum", add);
    EXPECT_EQ(both.a.service<int(int, int)>("sum")(round, 1), round + 1);
  }
}

TEST(RpcCircle, SixtyFourMembersCallTheNextOne) {
  std::vector<std::string> names;
  for (int each = 0; each < 64; ++each) names.push_back("member " + std::to_string(each));
  const rpc_ticket ticket("many", names, {.timeout = 60s, .inbox = 16, .calls = 16});
  std::vector<rpc_group> all;
  for (const auto& each : names) all.emplace_back(ticket, each);
  std::vector<future<int>> sums;
  for (std::size_t each = 0; each < all.size(); ++each) {
    sums.push_back(all[each].call_async(names[(each + 1) % names.size()], add, static_cast<int>(each), 1));
  }
  for (std::size_t each = 0; each < all.size(); ++each) EXPECT_EQ(sums[each].get(), static_cast<int>(each) + 1);
  std::vector<std::jthread> threads;
  for (const auto& each : all) threads.emplace_back([&each] { each.barrier(); });
}

}  // namespace
}  // namespace muster::rpc_circle_test
