// SPDX-License-Identifier: BSL-1.0
// Services and values by name, in all forms in which they are called; and what is left of them.
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/async/when_all.hpp>
#include <muster/rpc.hpp>

namespace muster::rpc_names_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

int add(int a, int b) { return a + b; }

struct counter {
  int value = 0;
  int add(int by) { return value += by; }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(value);
  }
};

std::string text_of(const auto& call) {
  try {
    call();
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

/// Two members in this process.
struct two_members {
  rpc_ticket ticket{"pair", {"a", "b"}, {.timeout = 60s}};
  rpc_group a{ticket, "a"};
  rpc_group b{ticket, "b"};
};

TEST(RpcNames, AServiceIsCalledOnceByItsName) {
  two_members both;
  both.b.serve("sum", add);
  EXPECT_EQ(both.a.call_service<int>("sum", 1, 2), 3);
  EXPECT_EQ(both.a.call_service_async<int>("sum", 1, 3).get(), 4);
  EXPECT_EQ(both.a.with({.transfer = transfer::copy}).call_service<int>("sum", 1, 4), 5);
  EXPECT_THAT(text_of([&] { both.a.call_service<int>("none", 1); }), HasSubstr("'none' is served by no member"));
  EXPECT_THAT(text_of([&] { both.a.call_service<int>("sum", 1); }), HasSubstr("as another type"));
}

TEST(RpcNames, TheResultOfAServiceCanStayThere) {
  two_members both;
  both.b.serve("make", [](int from) { return counter{.value = from}; });
  both.b.serve("make in line", [](int from) { return counter{.value = from}; }, {.serial = true});
  for (const auto* const each : {"make", "make in line"}) {
    const auto far = both.a.service<counter(int)>(each).remote(20);
    EXPECT_EQ(far.call(&counter::add, 1), 21);
    EXPECT_EQ(far.owner(), "b");
    EXPECT_EQ(both.a.remote_service<counter>(each, 3).to_here().value, 3);
  }
}

TEST(RpcNames, AReferenceOfAnotherGroupIsRefused) {
  two_members both;
  const rpc_ticket ticket("other", {"a", "b"}, {.timeout = 60s});
  const rpc_group other(ticket, "a");
  const rpc_group there(ticket, "b");
  const auto far = both.a.remote("b", [] { return counter(); });
  const auto use = [](const remote_ref<counter>& which) { return which.call(&counter::add, 1); };
  EXPECT_THAT(text_of([&] { other.call("b", use, far); }), HasSubstr("of another RPC group came in a call of 'other'"));
  EXPECT_EQ(both.a.call("b", [](const remote_ref<counter>& which) { return which.is_local(); }, far), true);
}

TEST(RpcNames, AServiceThatThrowsMakesNoValue) {
  two_members both;
  both.b.serve("make", [](int) -> counter { throw std::runtime_error("no counter today"); });
  const auto none = both.a.remote_service<counter>("make", 1);
  EXPECT_THAT(text_of([&] { none.call(&counter::add, 1); }), HasSubstr("no counter today"));
}

TEST(RpcNames, FuturesAreArguments) {
  two_members both;
  both.b.serve("sum", add);
  auto three = both.a.call_async("b", add, 1, 2);
  auto seven = both.a.call_async("b", add, std::move(three), 4);
  EXPECT_EQ(both.a.service<int(int, int)>("sum").call_async(std::move(seven), 1).get(), 8);
  const auto far = both.a.remote("b", [] { return counter(); });
  EXPECT_EQ(far.with({}).call_async(&counter::add, both.a.call_async("b", add, 2, 2)).get(), 4);
  auto failing = both.a.call_async("b", [](int) -> int { throw std::runtime_error("not that one"); }, 1);
  EXPECT_THAT(text_of([&] { both.a.call_async("b", add, std::move(failing), 1).get(); }), HasSubstr("not that one"));
}

TEST(RpcNames, AreListedWithTheirOwners) {
  two_members both;
  both.b.serve("sum", add);
  both.a.serve("other", add);
  both.a.publish("value", 3);
  EXPECT_THAT(both.a.services(), ElementsAre(name_status{"other", "a"}, name_status{"sum", "b"}));
  EXPECT_THAT(both.b.values(), ElementsAre(name_status{"value", "a"}));
  both.b.leave();
  EXPECT_THAT(both.a.services(), ElementsAre(name_status{"other", "a"}));
}

TEST(RpcNames, ErrorsNameTheServiceAndTheLabel) {
  two_members both;
  std::atomic<bool> goes_on = false;
  both.b.serve("gate", [&] {
    while (!goes_on) std::this_thread::yield();
  });
  auto gate = both.a.service<void()>("gate").call_async();
  EXPECT_THAT(text_of([&] { both.a.service<void()>("gate").with({.deadline = 1ms, .label = "second"})(); }),
              HasSubstr("'second', a call of the service 'gate' at 'b' did not end in time"));
  goes_on = true;
  gate.get();
  const auto late = both.a.service<void()>("gate");
  both.b.leave();
  try {
    late();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const member_lost& lost) {
    EXPECT_EQ(lost.service(), "gate");
    EXPECT_EQ(lost.member(), "b");
  }
}

TEST(RpcNames, AMemberThatHasLeftIsWaitedForWhereThatIsAskedFor) {
  two_members both;
  both.b.leave();
  auto later = std::jthread([&] { EXPECT_EQ(both.a.with({.awaits_rejoin = true}).call("b", add, 1, 1), 2); });
  EXPECT_THROW(both.a.call("b", add, 1, 1), member_lost);
  const rpc_group again(both.ticket, "b");
  later.join();
  EXPECT_THAT(text_of([&] { both.b = rpc_group(both.ticket, "c"); }), HasSubstr("no member"));
}

TEST(RpcNames, AServiceThatReturnsAFutureKeepsNeitherThreadNorLine) {
  two_members both;
  std::atomic<bool> goes_on = false;
  std::atomic<int> begun = 0;
  both.a.serve("gate", [&](int number) {
    while (!goes_on) std::this_thread::yield();
    return number + 1;
  });
  const auto relay = [&](int number) {
    ++begun;
    return this_call::group().service<int(int)>("gate").call_async(number);
  };
  both.b.serve("relay", relay, {.serial = true});
  const auto there = both.a.service<int(int)>("relay");
  auto one = there.call_async(1);
  auto other = there.call_async(2);
  EXPECT_EQ(both.a.call("b", add, 1, 1), 2);
  while (begun < 2) std::this_thread::yield();
  EXPECT_FALSE(one.ready());
  goes_on = true;
  EXPECT_EQ(one.get(), 2);
  EXPECT_EQ(other.get(), 3);
}

TEST(RpcNames, AFunctionThatReturnsAFutureIsAnsweredByIt) {
  two_members both;
  const auto sum = [](int a, int b) { return this_call::group().call_async(this_call::caller(), add, a, b); };
  EXPECT_EQ(both.a.call("b", sum, 1, 2), 3);
  const auto failing = [] {
    return this_call::group().call_async(this_call::caller(), []() -> int { throw std::out_of_range("not there"); });
  };
  EXPECT_THROW(both.a.call("b", failing), std::out_of_range);
  const auto far = both.a.remote("b", [] { return counter{.value = 5}; });
  const auto method = [](counter& of, int by) {
    return this_call::group().call_async(this_call::caller(), add, of.value, by);
  };
  EXPECT_EQ(far.call(method, 2), 7);
}

TEST(RpcNames, TheFutureOfAServiceDoesNotStay) {
  two_members both;
  both.b.serve("later", [](int x) { return this_call::group().call_async(this_call::caller(), add, x, 1); });
  EXPECT_EQ(both.a.call_service<int>("later", 1), 2);
  const auto none = both.a.remote_service<int>("later", 1);
  EXPECT_THAT(text_of([&] { static_cast<void>(none.to_here()); }), HasSubstr("this one returns a future"));
}

TEST(RpcNames, LeavingFailsWhatWasToBeAnsweredLater) {
  std::atomic<bool> goes_on = false;  // before the members: a thread that serves looks at it until they are gone
  two_members both;
  both.a.serve("gate", [&] {
    while (!goes_on) std::this_thread::yield();
  });
  both.b.serve("relay", [] { return this_call::group().service<void()>("gate").call_async(); });
  auto later = both.a.service<void()>("relay").call_async();
  both.a.call("b", add, 1, 1);  // behind it
  both.b.leave();
  EXPECT_THROW(later.get(), error);
  goes_on = true;
}

// ---- faults that a review found

TEST(RpcNames, AConcurrentCallKeepsTheValue) {
  static std::atomic<int> alive = 0;
  static std::atomic<int> at = 0;  // 1: inside; 2: may go on
  struct noticed {
    noticed() { ++alive; }
    ~noticed() { --alive; }
    noticed(const noticed&) = delete;
    noticed& operator=(const noticed&) = delete;
    int look() {
      at = 1;
      while (at != 2) std::this_thread::yield();
      return alive;
    }
  };
  const rpc_ticket ticket("pair", {"a", "b"}, {.timeout = 60s});
  const rpc_group a(ticket, "a");
  const rpc_group b(ticket, "b", {.threads = 2});
  alive = at = 0;
  auto far = a.remote("b", [] { return noticed(); });
  EXPECT_FALSE(far.is_local());
  a.call("b", add, 1, 1);  // it is made
  auto seen = far.with({.concurrent = true}).call_async(&noticed::look);
  far = {};
  while (at != 1) std::this_thread::yield();
  for (int each = 0; each < 100; ++each) a.call("b", add, 1, 1);
  EXPECT_EQ(alive, 1);
  at = 2;
  EXPECT_EQ(seen.get(), 1);
  for (int tries = 0; alive != 0 && tries < 10'000; ++tries) a.call("b", add, 1, 1);
  EXPECT_EQ(alive, 0);
}

TEST(RpcNames, WhatIsLeftOfAMemberDoesNotTouchTheNext) {
  two_members both;
  for (int round = 0; round < 20; ++round) {
    std::vector<future<int>> old;
    for (int each = 0; each < 32; ++each) old.push_back(both.a.call_async("b", add, each, 1));
    auto far = both.a.remote("b", [] { return counter(); });
    both.a.leave();
    both.a = rpc_group(both.ticket, "a");
    std::vector<future<int>> young;
    for (int each = 0; each < 32; ++each) young.push_back(both.a.call_async("b", add, each, 2));
    for (auto& each : old) static_cast<void>(each.cancel(cancellation::kill));
    old.clear();
    far = {};
    for (int each = 0; each < 32; ++each) EXPECT_EQ(young[static_cast<std::size_t>(each)].get(), each + 2);
  }
}

TEST(RpcNames, RepliesThatNobodyWantsFillNoRing) {
  const rpc_ticket ticket("few", {"a", "b"}, {.timeout = 60s, .calls = 2});
  const rpc_group a(ticket, "a");
  const rpc_group b(ticket, "b");
  for (int round = 0; round < 500; ++round) {
    auto dropped = a.call_async("b", add, round, 1);
    if (round % 3 == 0) std::this_thread::yield();
    static_cast<void>(dropped.cancel(cancellation::kill));
  }
  EXPECT_EQ(a.call("b", add, 1, 1), 2);
}

TEST(RpcNames, ANameIsGivenUpOnce) {
  two_members both;
  for (int round = 0; round < 200; ++round) {
    both.b.serve("name", add);
    std::atomic<int> ended = 0;
    const auto end = [&] {
      try {
        both.b.unserve("name");
        ++ended;
      } catch (const error&) {  // NOLINT(bugprone-empty-catch): the other was first
      }
    };
    {
      const std::jthread one(end);
      const std::jthread other(end);
      both.a.serve("other", add);
    }
    EXPECT_EQ(ended, 1);
    EXPECT_TRUE(both.a.is_served("other"));
    both.a.unserve("other");
  }
}

// Between looking the name up and holding the value.
TEST(RpcNames, AValueThatIsWithdrawnWhileItIsFoundIsNotThere) {
  two_members both;
  std::atomic<bool> ends = false;
  std::thread owner([&] {
    for (int each = 0; each < 3000; ++each) {
      both.b.publish("value", each);
      both.b.withdraw("value");
    }
    ends = true;
  });
  while (!ends) {
    try {
      EXPECT_GE(both.a.find<int>("value").to_here(), 0);
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::invalid_argument) << failure.what();
    }
  }
  owner.join();
}

}  // namespace
}  // namespace muster::rpc_names_test
