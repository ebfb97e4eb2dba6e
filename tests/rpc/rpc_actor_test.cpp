// SPDX-License-Identifier: BSL-1.0
// Actors: objects in processes of their own, started on demand.
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/process.hpp>
#include <muster/rpc.hpp>

namespace muster::rpc_actor_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

/// It can be neither copied nor moved.
class counter {
public:
  explicit counter(int from) : value_(from) {
    if (from < 0) throw std::invalid_argument("a counter begins at 0 or above");
  }
  counter(const counter&) = delete;
  counter& operator=(const counter&) = delete;
  ~counter() = default;

  int add(int by) { return value_ += by; }
  [[nodiscard]] int process() const { return ::getpid(); }
  void die() { ::raise(SIGKILL); }
  [[nodiscard]] std::string caller() const { return this_call::caller(); }

private:
  int value_;
};

struct nothing {
  int answer() { return 42; }
};

std::string text_of(const auto& call) {
  try {
    call();
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

void await_end_of(int pid) {
  while (::kill(pid, 0) == 0) std::this_thread::yield();
}

/// The program's member.
struct program {
  rpc_ticket ticket{"actors", {"program", "x"}, {.timeout = 60s}};
  rpc_group group{ticket, "program"};
};

TEST(RpcActor, IsAnObjectInAProcessOfItsOwn) {
  const program here;
  const auto seven = here.group.start<counter>("counter 7", {}, 20);
  EXPECT_EQ(seven.call(&counter::add, 1), 21);
  EXPECT_NE(seven.call(&counter::process), ::getpid());
  EXPECT_EQ(seven.call(&counter::caller), "program");
  EXPECT_EQ(seven.owner(), "counter 7");
  EXPECT_FALSE(seven.is_local());
  EXPECT_THAT(here.group.members(), ElementsAre("counter 7", "program", "x"));
  EXPECT_EQ(here.group.call("counter 7", [](int a) { return a + 1; }, 1), 2);
}

TEST(RpcActor, EndsWithItsLastReference) {
  const program here;
  int pid = 0;
  {
    const auto first = here.group.start<counter>("counter", {}, 1);
    const auto other = first;
    pid = first.call(&counter::process);
  }
  await_end_of(pid);
  const auto again = here.group.start<nothing>("counter");
  EXPECT_EQ(again.call(&nothing::answer), 42);
}

TEST(RpcActor, EndsWithTheMemberThatKeepsIt) {
  program here;
  const auto left = here.group.start<counter>("counter", {}, 1);
  const int pid = left.call(&counter::process);
  here.group.leave();
  EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_THROW(left.call(&counter::add, 1), error);
}

TEST(RpcActor, IsStartedAnewAsOftenAsItIsToBe) {
  const program here;
  const auto twice = here.group.start<counter>("counter", {.restarts = 1}, 20);
  EXPECT_EQ(twice.call(&counter::add, 1), 21);
  const auto first = twice.incarnation();
  EXPECT_THROW(twice.call(&counter::die), member_lost);
  EXPECT_EQ(twice.call(&counter::add, 2), 22) << "its state is the constructor's";
  EXPECT_EQ(twice.incarnation(), first + 1);
  EXPECT_THROW(twice.call(&counter::die), member_lost);
  EXPECT_THAT(text_of([&] { twice.call(&counter::add, 1); }), HasSubstr("'counter' has died"));
}

TEST(RpcActor, WhatItsConstructorThrowsIsThrown) {
  const program here;
  EXPECT_THROW(static_cast<void>(here.group.start<counter>("counter", {.restarts = 3}, -1)), std::invalid_argument);
  EXPECT_EQ(here.group.start<counter>("counter", {}, 1).call(&counter::add, 1), 2) << "the name is free";
}

TEST(RpcActor, AnyMemberStartsThem) {
  program here;
  const process member(
      [](const rpc_ticket& ticket) {
        const rpc_group group(ticket, "x");
        group.run();
      },
      here.ticket);
  const auto start = [](int from) { return this_call::group().start<counter>("of x", {}, from); };
  const auto started = here.group.call("x", start, 5);
  EXPECT_EQ(started.call(&counter::add, 1), 6);
  const auto use = [](const remote_ref<counter>& which) { return which.call(&counter::add, 1); };
  EXPECT_EQ(here.group.call("x", use, started), 7);
  here.group.leave();
  member.join();
}

TEST(RpcActor, OneThatHasDiedCanBeLetGoOfWhenOthersHaveBeenStarted) {
  const program here;
  auto dead = here.group.start<counter>("dead", {}, 1);
  EXPECT_THROW(dead.call(&counter::die), member_lost);
  EXPECT_THROW(dead.call(&counter::add, 1), member_lost);  // it is over
  const auto other = here.group.start<counter>("other", {}, 1);
  dead = {};
  for (int each = 0; each < 100; ++each) here.group.call("program", [] {});
  EXPECT_EQ(other.call(&counter::add, 1), 2);
}

/// It can be sent only if it is not negative.
struct shy {
  int value = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    if (value < 0) throw std::out_of_range("it is not sent");
    archive(value);
  }
};
struct guest {
  explicit guest(const shy& given) : value(given.value) {}
  int answer() { return value; }
  int value;
};

TEST(RpcActor, OneThatCannotBeLaunchedLeavesItsNameFree) {
  const program here;
  for (int round = 0; round < 3; ++round) {
    EXPECT_THROW(static_cast<void>(here.group.start<guest>("guest", {}, shy{.value = -1})), std::out_of_range);
  }
  EXPECT_EQ(here.group.start<guest>("guest", {}, shy{.value = 5}).call(&guest::answer), 5);
}

TEST(RpcActor, LeavingWhileOneIsBeingStartedEnds) {
  for (int round = 0; round < 5; ++round) {
    program here;
    std::jthread leaves([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(round));
      here.group.leave();
    });
    try {
      const auto late = here.group.start<counter>("counter", {}, 1);
      leaves.join();
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::invalid_argument) << failure.what();
    }
  }
}

TEST(RpcActor, TwoMembersOfTheProgramStartThemAtOnce) {
  const rpc_ticket ticket("two", {"a", "b"}, {.timeout = 60s});
  const rpc_group a(ticket, "a");
  const rpc_group b(ticket, "b");
  std::jthread other([&] {
    for (int each = 0; each < 4; ++each) EXPECT_EQ(b.start<counter>("of b", {}, each).call(&counter::add, 1), each + 1);
  });
  for (int each = 0; each < 4; ++each) EXPECT_EQ(a.start<counter>("of a", {}, each).call(&counter::add, 1), each + 1);
}

TEST(RpcActor, ManyLiveAtOnce) {
  const program here;
  std::vector<remote_ref<counter>> all;
  for (int each = 0; each < 5; ++each) {
    all.push_back(here.group.start<counter>("counter " + std::to_string(each), {}, each));
  }
  std::vector<future<int>> sums;
  for (const auto& each : all) sums.push_back(each.call_async(&counter::add, 1));
  for (int each = 0; each < 5; ++each) EXPECT_EQ(sums[static_cast<std::size_t>(each)].get(), each + 1);
}

TEST(RpcActor, TakesAFreeNameOfTheTicket) {
  const program here;
  {
    const auto of_ticket = here.group.start<counter>("x", {}, 1);
    EXPECT_EQ(of_ticket.call(&counter::add, 1), 2);
    EXPECT_THAT(text_of([&] { rpc_group(here.ticket, "x"); }), HasSubstr("'x' is a living member"));
    EXPECT_THAT(text_of([&] { static_cast<void>(here.group.start<counter>("x", {}, 1)); }),
                HasSubstr("a living member has that name"));
  }
}

TEST(RpcActor, WhatCannotBeStartedIsRefused) {
  const rpc_ticket ticket("few", {"program"}, {.timeout = 60s, .most_actors = 1});
  const rpc_group group(ticket, "program");
  EXPECT_THAT(text_of([&] { static_cast<void>(group.start<nothing>("program")); }),
              HasSubstr("a living member has that name"));
  EXPECT_THAT(text_of([&] { static_cast<void>(group.start<nothing>("")); }), HasSubstr("its name is empty"));
  const auto one = group.start<nothing>("one");
  EXPECT_THAT(text_of([&] { static_cast<void>(group.start<nothing>("two")); }),
              HasSubstr("rpc_ticket_options::most_actors"));
  EXPECT_THAT(text_of([] { rpc_ticket("x", {"a"}, {.most_actors = 5000}); }), HasSubstr("most_actors is 5000"));
}

TEST(RpcActor, ADeviceThatThereIsNotIsRefused) {
  const rpc_ticket ticket("actors", {"program"}, {.timeout = 60s});
  const rpc_group group(ticket, "program");
  EXPECT_THAT(text_of([&] { static_cast<void>(group.start<nothing>("pinned", {.device = device::cuda(999)})); }),
              HasSubstr("pool_options::devices"));
  EXPECT_EQ(group.start<nothing>("pinned").call(&nothing::answer), 42) << "the name is free again";
}

}  // namespace
}  // namespace muster::rpc_actor_test
