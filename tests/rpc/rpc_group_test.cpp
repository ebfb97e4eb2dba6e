// SPDX-License-Identifier: BSL-1.0
// Members that call one another: in threads of this process, and in processes.
#include <math.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/async/when_all.hpp>
#include <muster/pool/process.hpp>
#include <muster/pool/this_task.hpp>
#include <muster/queue/event.hpp>
#include <muster/rpc.hpp>

namespace muster::rpc_group_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

int add(int a, int b) { return a + b; }

int fail(int how) {
  if (how == 0) throw std::invalid_argument("a wrong number");
  return how;
}

struct counter {
  int value = 0;
  int add(int by) { return value += by; }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(value);
  }
};

counter make_counter(int from) { return {.value = from}; }
counter make_none() { throw std::runtime_error("no counter today"); }

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

TEST(RpcGroup, AFunctionRunsAtTheMemberThatIsCalled) {
  two_members both;
  EXPECT_EQ(both.a.call("b", add, 1, 2), 3);
  EXPECT_EQ(both.b.call("a", [](const std::string& text) { return text + "!"; }, "hello"), "hello!");
  EXPECT_EQ(both.a.call("a", add, 2, 2), 4);
}

TEST(RpcGroup, AMemberThatIsGoingToRunIsWaitedFor) {
  const rpc_ticket ticket("runs", {"a", "b"}, {.timeout = 60s});
  const rpc_group a(ticket, "a");
  const rpc_group b(ticket, "b", {.threads = 0, .runs = true});
  auto asked = a.call_async("b", add, 1, 2);
  EXPECT_FALSE(asked.wait_for(1ms));
  std::jthread runs([&](const std::stop_token& stop) { b.run(stop); });
  EXPECT_EQ(asked.get(), 3);
}

TEST(RpcGroup, RunReturnsAtOnceWhereACallHasMadeItLeave) {
  two_members both;
  both.a.call("b", [] { this_call::group().leave(); });
  both.b.run();
  EXPECT_THAT(text_of([&] { both.b.call("a", add, 1, 2); }), HasSubstr("has left"));
}

TEST(RpcGroup, FunctionsOfSharedLibrariesAreCalled) {
  two_members both;
  EXPECT_NEAR(both.a.call("b", static_cast<double (*)(double)>(&::cbrt), 8.0), 2.0, 1e-9);
  EXPECT_NEAR(both.b.remote("a", static_cast<double (*)(double)>(&::cbrt), 27.0).to_here(), 3.0, 1e-9);
}

TEST(RpcGroup, CallsAreFutures) {
  two_members both;
  std::vector<future<int>> all;
  for (int each = 0; each < 300; ++each) all.push_back(both.a.call_async("b", add, each, 1));
  const auto sums = when_all(std::move(all)).get();
  for (int each = 0; each < 300; ++each) EXPECT_EQ(sums[static_cast<std::size_t>(each)], each + 1);
  EXPECT_EQ(both.a.call_async("b", add, 1, 1).then([](int sum) { return sum * 10; }).get(), 20);
}

TEST(RpcGroup, AnExceptionKeepsItsTypeAndText) {
  two_members both;
  EXPECT_THROW(both.a.call("b", fail, 0), std::invalid_argument);
  EXPECT_THAT(text_of([&] { both.a.call("b", fail, 0); }), HasSubstr("a wrong number"));
  EXPECT_EQ(both.a.call("b", fail, 7), 7);
}

TEST(RpcGroup, AMemberCallsBackWhoeverCallsIt) {
  two_members both;
  struct ball {
    int operator()(int depth) const {
      if (depth == 0) return 0;
      const auto here = this_call::group();
      return here.call(this_call::caller(), ball(), depth - 1) + 1;
    }
  };
  EXPECT_EQ(both.a.call("b", ball(), 64), 64);
}

TEST(RpcGroup, AServiceIsCalledByName) {
  two_members both;
  int calls = 0;
  both.b.serve("double", [&](int number) { return ++calls, 2 * number; }, {.serial = true});
  const auto twice = both.a.service<int(int)>("double");
  EXPECT_EQ(twice(4), 8);
  EXPECT_EQ(twice.call_async(5).get(), 10);
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(both.a.is_served("double"));
  both.b.unserve("double");
  EXPECT_FALSE(both.a.is_served("double"));
  EXPECT_THAT(text_of([&] { twice(1); }), HasSubstr("not there any more"));
}

TEST(RpcGroup, AServiceIsWaitedFor) {
  two_members both;
  std::jthread later([&] {
    std::this_thread::sleep_for(20ms);
    both.b.serve("late", [](int number) { return number; });
  });
  EXPECT_EQ(both.a.service<int(int)>("late")(3), 3);
}

TEST(RpcGroup, ANameIsServedOnce) {
  two_members both;
  both.a.serve("name", [](int) {});
  EXPECT_THAT(text_of([&] { both.b.serve("name", [](int) {}); }), HasSubstr("'name' is served by 'a'"));
  EXPECT_THAT(text_of([&] { both.b.unserve("name"); }), HasSubstr("not served by 'b', but by a"));
  EXPECT_THAT(text_of([&] { static_cast<void>(both.b.service<double(double)>("name")); }),
              HasSubstr("as another type"));
}

TEST(RpcGroup, ARemoteValueStaysWithItsOwner) {
  two_members both;
  const auto far = both.a.remote("b", make_counter, 20);
  EXPECT_EQ(far.call(&counter::add, 1), 21);
  EXPECT_EQ(far.call([](counter& of, int by) { return of.value -= by; }, 2), 19);
  EXPECT_EQ(far.to_here().value, 19);
  EXPECT_EQ(far.owner(), "b");
  EXPECT_FALSE(far.is_local());
}

TEST(RpcGroup, ReferencesAreArgumentsAndResults) {
  two_members both;
  const auto far = both.a.remote("b", make_counter, 1);
  const auto add_to = [](const remote_ref<counter>& which, int by) {
    which.call(&counter::add, by);
    return which;
  };
  const auto same = both.a.call("b", add_to, far, 5);
  EXPECT_EQ(same, far);
  EXPECT_EQ(same.to_here().value, 6);
}

TEST(RpcGroup, AValueGoesWithItsLastReference) {
  static std::atomic<int> alive = 0;
  struct noticed {
    noticed() { ++alive; }
    ~noticed() { --alive; }
    noticed(const noticed&) = delete;
    noticed& operator=(const noticed&) = delete;
    int answer() { return 42; }
  };
  two_members both;
  alive = 0;
  {
    const auto far = both.a.remote("b", [] { return noticed(); });
    const auto other = far;
    EXPECT_EQ(far.call(&noticed::answer), 42);
    EXPECT_EQ(alive, 1);
  }
  both.a.call("b", add, 1, 1);  // behind the news
  for (int tries = 0; alive != 0 && tries < 10'000; ++tries) both.a.call("b", add, 1, 1);
  EXPECT_EQ(alive, 0);
}

TEST(RpcGroup, AValueGoesWithItsLastReferenceThoughThatWasAnArgument) {
  static std::atomic<int> alive = 0;
  struct noticed {
    noticed() { ++alive; }
    ~noticed() { --alive; }
    noticed(const noticed&) = delete;
    noticed& operator=(const noticed&) = delete;
  };
  two_members both;
  alive = 0;
  {
    auto far = both.a.remote("b", [] { return noticed(); });
    both.a.call("b", [](const remote_ref<noticed>& which) { return which.is_local(); }, far);
  }
  for (int tries = 0; alive != 0 && tries < 10'000; ++tries) both.a.call("b", add, 1, 1);
  EXPECT_EQ(alive, 0);
}

// Of another process, too: it has references to all of them.
TEST(RpcGroup, ManyThousandsOfValuesTakeNoBlocksOfMemory) {
  constexpr int count = 20'000;
  const rpc_ticket ticket("many", {"a", "b"}, {.timeout = 60s});
  rpc_group a(ticket, "a");
  const process other([](const rpc_ticket& of) { rpc_group(of, "b").run(); }, ticket);
  const auto sum_some = [](const std::vector<remote_ref<counter>>& all) {
    int sum = 0;
    for (std::size_t each = 0; each < all.size(); each += 1000) sum += all[each].call(&counter::add, 1);
    return sum;
  };
  auto& memory = domain::of_program()->blocks();
  EXPECT_EQ(a.call("b", sum_some, std::vector<remote_ref<counter>>()), 0);
  const auto before = memory.read_statistics().held_bytes;
  std::vector<remote_ref<counter>> all;
  for (int each = 0; each < count; ++each) all.push_back(a.keep(counter{.value = each}));
  EXPECT_EQ(a.call("b", sum_some, all), 190'020);
  EXPECT_LT(memory.read_statistics().held_bytes, before + (std::size_t{64} << 20U)) << "64 KiB each would be 1.2 GiB";
  all.clear();
  a.leave();
  other.join();
}

TEST(RpcGroup, AValueThatCouldNotBeMadeThrowsThatAtEveryUse) {
  two_members both;
  const auto none = both.a.remote("b", make_none);
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(text_of([&] { none.call(&counter::add, 1); }), HasSubstr("no counter today"));
  }
  EXPECT_THAT(text_of([&] { static_cast<void>(none.to_here()); }), HasSubstr("no counter today"));
}

TEST(RpcGroup, APublishedValueIsFoundByName) {
  two_members both;
  const auto own = both.b.publish("counter", counter{.value = 20});
  EXPECT_TRUE(own.is_local());
  own.local().value = 21;
  EXPECT_TRUE(both.a.is_published("counter"));
  const auto found = both.a.find<counter>("counter");
  EXPECT_EQ(found.to_here().value, 21);
  EXPECT_EQ(found.call(&counter::add, 1), 22);
  EXPECT_THAT(text_of([&] { static_cast<void>(both.a.publish("counter", 3)); }),
              HasSubstr("'counter' is published by 'b'"));
  EXPECT_THAT(text_of([&] { static_cast<void>(both.a.find<int>("counter")); }), HasSubstr("another type than int"));
  EXPECT_THAT(text_of([&] { static_cast<void>(both.a.find<int>("none")); }), HasSubstr("'none' is published by no"));
  both.b.withdraw("counter");
  EXPECT_FALSE(both.a.is_published("counter"));
  EXPECT_EQ(found.to_here().value, 22);
}

TEST(RpcGroup, ACallEndsWhenItsTimeHasPassedAndItIsAskedToStop) {
  two_members both;
  std::atomic<bool> begins = false;
  std::atomic<bool> stops = false;
  std::atomic<bool> is_told = false;
  both.b.serve("slow", [&] {
    begins = true;
    while (!this_call::stop_requested()) std::this_thread::yield();
    stops = true;
    while (!is_told) std::this_thread::yield();
  });
  const auto slow = both.a.service<void()>("slow");
  std::string told;
  for (auto time = 5ms; !begins; time *= 2) told = text_of([&] { slow.with({.deadline = time})(); });
  is_told = true;
  EXPECT_THAT(told, HasSubstr("did not end in time; it had begun"));
  EXPECT_EQ(both.a.call("b", add, 1, 1), 2);  // behind it
  EXPECT_TRUE(stops);
}

TEST(RpcGroup, ACallThatHasNotBegunIsWithdrawn) {
  two_members both;
  std::atomic<bool> goes_on = false;
  both.b.serve("gate", [&] {
    while (!goes_on) std::this_thread::yield();
  });
  auto first = both.a.service<void()>("gate").call_async();
  auto behind = both.a.call_async("b", add, 1, 1);
  EXPECT_TRUE(behind.cancel());
  EXPECT_EQ(behind.get_result().error().code(), errc::cancelled);
  goes_on = true;
  first.get();
}

TEST(RpcGroup, AMemberThatHasLeftIsLost) {
  two_members both;
  both.b.leave();
  try {
    both.a.call("b", add, 1, 1);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const member_lost& lost) {
    EXPECT_EQ(lost.member(), "b");
    EXPECT_FALSE(lost.had_begun());
    EXPECT_EQ(lost.code(), errc::peer_lost);
  }
  const rpc_group again(both.ticket, "b");
  EXPECT_EQ(both.a.call("b", add, 1, 1), 2);
  EXPECT_THAT(text_of([&] { both.b.call("a", add, 1, 1); }), HasSubstr("'b' has left"));
}

TEST(RpcGroup, AConcurrentCallOfAValueThatIsBeingMadeWaitsForIt) {
  const rpc_ticket ticket("pair", {"a", "b"}, {.timeout = 60s});
  const rpc_group a(ticket, "a");
  const rpc_group b(ticket, "b", {.threads = 3});
  std::atomic<bool> goes_on = false;
  b.serve("gate", [&] {
    while (!goes_on) std::this_thread::yield();
  });
  const auto make = [] {
    this_call::group().service<void()>("gate")();
    return counter{.value = 3};
  };
  const auto far = a.remote("b", make);
  auto added = far.with({.concurrent = true}).call_async(&counter::add, 1);
  EXPECT_EQ(a.call("b", add, 1, 1), 2);  // behind it
  EXPECT_FALSE(added.ready());
  goes_on = true;
  EXPECT_EQ(added.get(), 4);
}

TEST(RpcGroup, AValueWhoseMakingWasWithdrawnIsNeverCalled) {
  two_members both;
  std::atomic<bool> goes_on = false;
  both.b.serve("gate", [&] {
    while (!goes_on) std::this_thread::yield();
  });
  auto gate = both.a.service<void()>("gate").call_async();
  const auto far = both.a.with({.deadline = 1ms}).remote("b", make_counter, 1);
  auto used = far.call_async(&counter::add, 1);
  std::this_thread::sleep_for(2ms);  // the deadline has passed
  goes_on = true;
  gate.get();
  EXPECT_THAT(text_of([&] { used.get(); }), HasSubstr("never made"));
}

TEST(RpcGroup, AValueIsKeptByACallOfItThatIsUnderWay) {
  two_members both;
  for (int round = 0; round < 100; ++round) {
    auto sum = both.b.keep(counter{.value = round}).call_async(&counter::add, 1);
    EXPECT_EQ(sum.get(), round + 1);
  }
}

TEST(RpcGroup, AValueStaysPublishedWhenASecondNameIsRefusedOrWithdrawn) {
  two_members both;
  {
    const auto value = both.b.publish("x", counter{.value = 1});
    EXPECT_THROW(both.b.publish("x", value), error);
    both.b.publish("y", value);
    both.b.withdraw("y");
  }
  EXPECT_EQ(both.a.find<counter>("x").to_here().value, 1);
}

TEST(RpcGroup, ACallWhoseTimeHasPassedNeverBegins) {
  two_members both;
  std::atomic<bool> goes_on = false;
  std::atomic<int> calls = 0;
  both.b.serve("gate", [&] {
    while (!goes_on) std::this_thread::yield();
  });
  both.b.serve("late", [&] { ++calls; });
  auto gate = both.a.service<void()>("gate").call_async();
  {
    const auto dropped = both.a.service<void()>("late").with({.deadline = 1ms}).call_async();
  }
  std::this_thread::sleep_for(2ms);  // the deadline has passed
  goes_on = true;
  gate.get();
  both.a.call("b", add, 1, 1);
  EXPECT_EQ(calls, 0);
}

TEST(RpcGroup, MoreCallsThanCanBeUnderWayWait) {
  const rpc_ticket ticket("few", {"a", "b"}, {.timeout = 60s, .inbox = 2, .calls = 4});
  const rpc_group a(ticket, "a");
  const rpc_group b(ticket, "b");
  std::vector<future<int>> all;
  for (int each = 0; each < 100; ++each) all.push_back(a.call_async("b", add, each, 1));
  for (int each = 0; each < 100; ++each) EXPECT_EQ(all[static_cast<std::size_t>(each)].get(), each + 1);
}

TEST(RpcGroup, LeavingEndsWhatItsOwnCallsWaitFor) {
  for (int round = 0; round < 20; ++round) {
    two_members both;
    std::atomic<bool> waits = false;
    both.b.serve("waits", [&] {
      waits = true;
      this_call::group().service<void()>("never")();
    });
    auto begun = both.a.service<void()>("waits").call_async();
    while (!waits) std::this_thread::yield();
    both.b.leave();
    EXPECT_THROW(begun.get(), std::exception);
  }
}

TEST(RpcGroup, LeavingEndsAWaitForRoomInAnotherInbox) {
  const rpc_ticket ticket("full", {"a", "b", "c"}, {.timeout = 60s, .inbox = 2});
  const rpc_group a(ticket, "a");
  rpc_group b(ticket, "b");
  const rpc_group c(ticket, "c");
  std::atomic<bool> goes_on = false;
  a.serve("gate", [&] {
    while (!goes_on) std::this_thread::yield();
  });
  auto gate = c.service<void()>("gate").call_async();
  std::atomic<int> sent = 0;
  b.serve("floods", [&] {
    std::vector<future<int>> all;
    for (;;) all.push_back(this_call::group().call_async("a", add, ++sent, 1));
  });
  auto floods = c.service<void()>("floods").call_async();
  while (sent < 3) std::this_thread::yield();
  b.leave();
  EXPECT_THROW(floods.get(), std::exception);
  goes_on = true;
  gate.get();
}

TEST(RpcGroup, ACallbackMayLeaveWhileAnotherThreadDoes) {
  for (int round = 0; round < 50; ++round) {
    two_members both;
    both.a.call_async("b", add, 1, 1).on_complete([&](int) { both.a.leave(); }, [](const error_info&) {});
    both.a.leave();
  }
}

TEST(RpcGroup, RunEndsWhenItIsAskedToWheneverThatIs) {
  two_members both;
  for (int round = 0; round < 200; ++round) {
    std::stop_source stop;
    std::jthread runs([&] { both.b.run(stop.get_token()); });
    EXPECT_EQ(both.a.call("b", add, round, 1), round + 1);
    stop.request_stop();
  }
}

TEST(RpcGroup, ThreadsThatCallDoNotKeepOthersFromServing) {
  const rpc_ticket ticket("crew", {"a", "b"}, {.timeout = 60s});
  const rpc_group a(ticket, "a", {.threads = 2});
  const rpc_group b(ticket, "b", {.threads = 2});
  struct ball {
    int operator()(int depth) const {
      return depth == 0 ? 0 : this_call::group().call(this_call::caller(), ball(), depth - 1) + 1;
    }
  };
  std::vector<future<int>> all;
  for (int each = 0; each < 20; ++each) {
    all.push_back(a.call_async("b", ball(), 10));
    all.push_back(b.call_async("a", ball(), 10));
  }
  for (auto& each : all) EXPECT_EQ(each.get(), 10);
}

TEST(RpcGroup, AMemberThatOnlyCallsCannotBeCalled) {
  const rpc_ticket ticket("caller", {"a", "b"}, {.timeout = 60s});
  const rpc_group a(ticket, "a", {.threads = 0});
  const rpc_group b(ticket, "b");
  EXPECT_EQ(a.call("b", add, 1, 1), 2);
  EXPECT_THAT(text_of([&] { b.call("a", add, 1, 1); }), HasSubstr("only calls"));
}

TEST(RpcGroup, WrongNamesAreRefused) {
  two_members both;
  EXPECT_THAT(text_of([&] { both.a.call("c", add, 1, 1); }), HasSubstr("'c' is no member of the RPC group 'pair'"));
  EXPECT_THAT(text_of([&] { rpc_group(both.ticket, "c"); }), HasSubstr("whose members are 'a', 'b'"));
  EXPECT_THAT(text_of([&] { rpc_group(both.ticket, "a"); }), HasSubstr("'a' is a living member"));
  EXPECT_THAT(text_of([&] { rpc_ticket("x", {"a", "a"}); }), HasSubstr("two members are called 'a'"));
  EXPECT_THAT(text_of([&] { rpc_ticket("x", {}); }), HasSubstr("no members"));
}

TEST(RpcGroup, ABarrierWaitsForAll) {
  two_members both;
  std::atomic<bool> came = false;
  std::jthread other([&] {
    came = true;
    both.b.barrier();
  });
  both.a.barrier();
  EXPECT_TRUE(came);
}

// ---- processes

void run_member(const rpc_ticket& ticket, const std::string& name) {
  const rpc_group group(ticket, name);
  group.serve("square by " + name, [](int number) { return number * number; });
  group.run();
}

TEST(RpcProcesses, CallOneAnother) {
  const rpc_ticket ticket("processes", {"program", "x", "y"}, {.timeout = 60s});
  rpc_group group(ticket, "program");
  const process x(run_member, ticket, "x");
  const process y(run_member, ticket, "y");
  EXPECT_EQ(group.call("x", add, 1, 2), 3);
  EXPECT_EQ(group.service<int(int)>("square by y")(7), 49);
  const auto relay = [](int number) { return this_call::group().service<int(int)>("square by y")(number) + 1; };
  EXPECT_EQ(group.call("x", relay, 3), 10);
  for (const auto* const each : {"x", "y"}) group.call(each, [] { this_call::group().leave(); });
  x.join();
  y.join();
}

TEST(RpcProcesses, RunReturnsWhenTheLastOtherMemberDies) {
  const rpc_ticket ticket("alone", {"x", "y"}, {.timeout = 60s});
  const event is_met;
  const process y(run_member, ticket, "y");
  const auto meet = [](const rpc_ticket& of, const event& met) {
    const rpc_group group(of, "x");
    static_cast<void>(group.service<int(int)>("square by y")(2));
    met.set();
    for (;;) std::this_thread::sleep_for(1h);
  };
  const process x(meet, ticket, is_met);
  is_met.wait();
  x.kill(SIGKILL);
  y.join();
  y.watch();
}

TEST(RpcProcesses, AKilledMemberIsLostAndItsNameIsJoinedAgain) {
  const rpc_ticket ticket("deaths", {"program", "x"}, {.timeout = 60s});
  rpc_group group(ticket, "program");
  const process x(run_member, ticket, "x");
  const auto far = group.remote("x", make_counter, 1);
  EXPECT_EQ(far.to_here().value, 1);
  auto begun = group.call_async("x", [] { ::raise(SIGKILL); });
  EXPECT_THROW(begun.get(), member_lost);
  EXPECT_THROW(group.call("x", add, 1, 1), member_lost);
  EXPECT_THROW(static_cast<void>(far.to_here()), member_lost);
  EXPECT_FALSE(group.is_served("square by x"));
  EXPECT_EQ(group.states()[1].state, member_state::lost);
  const process again(run_member, ticket, "x");
  EXPECT_EQ(group.service<int(int)>("square by x")(3), 9);
  group.leave();
  again.join();
}

// ---- what is served is asked to stop

/// A member whose service waits until it is asked to stop, on its token.
struct stoppable_member {
  rpc_ticket ticket{"stops", {"caller", "server"}, {.timeout = 60s}};
  rpc_group server{ticket, "server"};
  event has_begun;
  event was_stopped;

  stoppable_member() {
    server.serve("wait", [this] {
      const auto token = this_task::stop_token();
      has_begun.set();
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any().wait(lock, token, [] { return false; });
      EXPECT_TRUE(this_task::stop_requested());
      EXPECT_TRUE(this_call::stop_requested());
      was_stopped.set();
    });
  }
};

TEST(RpcStop, ATokenIsStoppedByCancel) {
  const stoppable_member there;
  const rpc_group group(there.ticket, "caller");
  auto asked = group.service<void()>("wait").call_async();
  there.has_begun.wait();
  EXPECT_FALSE(asked.cancel());
  there.was_stopped.wait();
  EXPECT_NO_THROW(asked.get()) << "it has returned";
}

TEST(RpcStop, ATokenIsStoppedByTheDeadline) {
  const stoppable_member there;
  const rpc_group group(there.ticket, "caller");
  auto asked = group.service<void()>("wait").with({.deadline = 5ms}).call_async();
  there.was_stopped.wait();
  static_cast<void>(asked.get_result());  // its reply may be there before its caller has looked at the time
}

TEST(RpcStop, ATokenIsStoppedByTheDeathOfTheCaller) {
  const stoppable_member there;
  const process caller([](const rpc_ticket& ticket) { rpc_group(ticket, "caller").call_service<void>("wait"); },
                       there.ticket);
  there.has_begun.wait();
  caller.kill(SIGKILL);
  there.was_stopped.wait();
}

TEST(RpcStop, OneThreadWatchesAllCalls) {
  const rpc_ticket ticket("stops", {"caller", "server"}, {.timeout = 60s});
  const rpc_group server(ticket, "server", {.threads = 8});
  const rpc_group group(ticket, "caller");
  std::atomic<int> stopped = 0;
  server.serve("wait", [&] {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait(lock, this_task::stop_token(), [] { return false; });
    ++stopped;
  });
  const auto wait = group.service<void()>("wait");
  std::vector<future<void>> all;
  for (int each = 0; each < 8; ++each) all.push_back(wait.call_async());
  for (int count = 0; auto& each : all) {
    while (server.stats().served < 8) std::this_thread::yield();
    EXPECT_FALSE(each.cancel());
    each.get();
    EXPECT_EQ(stopped, ++count);
  }
}

TEST(RpcStop, OutsideOfACallNothingIsStopped) {
  EXPECT_FALSE(this_task::stop_requested());
  EXPECT_FALSE(this_task::stop_token().stop_possible());
}

}  // namespace
}  // namespace muster::rpc_group_test
