// SPDX-License-Identifier: BSL-1.0
// Calls that are made again after they have failed.
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>
#include <muster/pool/process.hpp>
#include <muster/queue/event.hpp>
#include <muster/rpc.hpp>

namespace muster::rpc_retry_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct network_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::atomic<int> attempts = 0;  // in this process

int fail_until(int attempt) {
  if (++attempts < attempt) throw network_error("the network is down");
  return attempt;
}

int die_once(const event& has_died, std::vector<int> numbers) {
  if (!has_died.is_set()) {
    has_died.set();
    ::raise(SIGKILL);
  }
  int sum = 0;
  for (const int each : numbers) sum += each;
  return sum;
}

int sum_of(const tensor& all) {
  int sum = 0;
  for (const int each : all.span<const std::int32_t>()) sum += each;
  return sum;
}

int die_once_with(const event& has_died, const tensor& all) { return die_once(has_died, {}) + sum_of(all); }

void run_member(const rpc_ticket& ticket, const std::string& name, const event& has_died) {
  const rpc_group group(ticket, name);
  group.serve("die once", [&](std::vector<int> numbers) { return die_once(has_died, std::move(numbers)); });
  group.run();
}

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

/// The program's member, and another in a process, which is begun anew when the event of its death is there.
struct program {
  rpc_ticket ticket{"retries", {"program", "x"}, {.timeout = 60s}};
  rpc_group group{ticket, "program"};
  event has_died;
  process x{run_member, ticket, std::string("x"), has_died};

  [[nodiscard]] process begin_x_again() const {
    has_died.wait();
    return process(run_member, ticket, std::string("x"), has_died);
  }
};

TEST(RpcRetry, AFunctionGoesToTheNextThatHasTheName) {
  program here;
  auto sum = here.group.with({.retries = 1}).call_async("x", die_once, here.has_died, std::vector{1, 2, 3});
  auto asked = here.group.with({.retries = 1}).call_async("x", die_once, here.has_died, std::vector{4});
  const auto again = here.begin_x_again();
  EXPECT_EQ(sum.get(), 6);
  EXPECT_EQ(asked.get(), 4) << "it had not begun";
  here.group.leave();
  again.join();
}

TEST(RpcRetry, TensorsGoAlongWithEachAttempt) {
  program here;
  auto ones = tensor::full<std::int32_t>({1000}, 1);
  auto sum = here.group.with({.retries = 1}).call_async("x", die_once_with, here.has_died, ones);
  ones = tensor::full<std::int32_t>({1000}, 2);
  const auto again = here.begin_x_again();
  EXPECT_EQ(sum.get(), 1000);
  here.group.leave();
  again.join();
}

TEST(RpcRetry, AServiceIsLookedUpAnew) {
  program here;
  const auto service = here.group.service<int(std::vector<int>)>("die once");
  auto sum = service.with({.retries = 1}).call_async({5, 6});
  const auto again = here.begin_x_again();
  EXPECT_EQ(sum.get(), 11);
  EXPECT_THROW(service({1}), member_lost) << "it stands for that of before";
  EXPECT_EQ(service.with({.retries = 1})({7}), 7);
  here.group.leave();
  again.join();
}

TEST(RpcRetry, AServiceThatHasAnotherTypeNowIsRefused) {
  program here;
  auto sum = here.group.service<int(std::vector<int>)>("die once").with({.retries = 1}).call_async({1});
  EXPECT_TRUE(here.x.join_for(60s));
  here.group.serve("die once", [](int number) { return number; });
  EXPECT_THAT(text_of([&] { sum.get(); }), HasSubstr("'die once' is served by 'program' now as another type"));
}

struct mortal {
  int die_once(const event& has_died, int number) { return rpc_retry_test::die_once(has_died, {number}); }
};

TEST(RpcRetry, AnActorIsWaitedForUntilItIsThereAgain) {
  const rpc_ticket ticket("actor", {"program"}, {.timeout = 60s});
  const rpc_group group(ticket, "program");
  const auto actor = group.start<mortal>("mortal", {.restarts = 1});
  const event has_died;
  EXPECT_EQ(actor.with({.retries = 1}).call(&mortal::die_once, has_died, 8), 8);
}

TEST(RpcRetry, ARemoteValueThatIsLostStaysLost) {
  program here;
  const auto far = here.group.remote("x", [] { return mortal(); });
  EXPECT_THROW(far.with({.retries = 3}).call(&mortal::die_once, here.has_died, 8), member_lost);
}

TEST(RpcRetry, ALossThatMayHaveHadEffectsSaysSo) {
  const rpc_ticket ticket("lost", {"program", "x"}, {.timeout = 60s});
  const rpc_group group(ticket, "program");
  const event never;
  const auto begin = [&] { return process(run_member, ticket, std::string("x"), never); };
  const auto first = begin();
  auto lost = group.with({.retries = 1}).call_async("x", [] { ::raise(SIGKILL); });
  static_cast<void>(first.join_for(60s));
  const auto second = begin();
  try {
    lost.get();
    FAIL() << "it has killed both";
  } catch (const member_lost& failure) {
    EXPECT_TRUE(failure.had_begun());
    EXPECT_EQ(failure.member(), "x");
  }
}

TEST(RpcRetry, AnExceptionIsAReasonWhereItIsSaid) {
  const two_members here;
  const rpc_call_options twice{.retries = 2, .retry_on = retry::exceptions<network_error>()};
  attempts = 0;
  EXPECT_EQ(here.a.with(twice).call("b", fail_until, 3), 3);
  attempts = 0;
  EXPECT_THROW(here.a.with(twice).call("b", fail_until, 4), std::runtime_error);
  EXPECT_EQ(attempts, 3);
  attempts = 0;
  EXPECT_THROW(here.a.with({.retries = 2}).call("b", fail_until, 2), std::runtime_error);
  EXPECT_EQ(attempts, 1);
  EXPECT_THROW(here.a.with(twice).call("b", [] { throw std::logic_error("another one"); }), std::logic_error);
}

TEST(RpcRetry, AMethodOfARemoteValueIsTriedAgain) {
  const two_members here;
  const auto far = here.a.remote("b", [] { return 40; });
  attempts = 0;
  const rpc_call_options twice{.retries = 2, .retry_on = retry::exceptions()};
  EXPECT_EQ(far.with(twice).call([](int& value) { return value + fail_until(2); }), 42);
}

TEST(RpcRetry, TheDeadlineIsOfAllAttempts) {
  const two_members here;
  attempts = 0;
  const rpc_call_options patient{.deadline = 50ms, .retries = 9, .retry_on = retry::exceptions(), .retry_delay = 1h};
  EXPECT_THAT(text_of([&] { here.a.with(patient).call("b", fail_until, 9); }), HasSubstr("did not end in time"));
  EXPECT_EQ(attempts, 1);
}

TEST(RpcRetry, WhatRestsIsCancelled) {
  two_members here;
  attempts = 0;
  const rpc_call_options patient{.retries = 9, .retry_on = retry::exceptions(), .retry_delay = 1h};
  auto first = here.a.with(patient).call_async("b", fail_until, 9);
  auto second = here.a.with(patient).call_async("b", fail_until, 9);
  while (attempts != 2) EXPECT_FALSE(first.wait_for(1ms));
  EXPECT_FALSE(first.wait_for(1ms));
  static_cast<void>(first.cancel());
  EXPECT_THAT(text_of([&] { first.get(); }), HasSubstr("cancelled"));
  here.a.leave();
  EXPECT_THAT(text_of([&] { second.get(); }), HasSubstr("has left"));
  EXPECT_EQ(attempts, 2);
}

TEST(RpcRetry, WhatWasAskedToStopIsNotTriedAgain) {
  const two_members here;
  const event has_begun;
  attempts = 0;
  const auto stop = [](const event& begun) {
    ++attempts;
    begun.set();
    while (!this_call::stop_requested()) std::this_thread::yield();
    throw network_error("it was asked to stop");
  };
  auto asked = here.a.with({.retries = 9, .retry_on = retry::exceptions()}).call_async("b", stop, has_begun);
  has_begun.wait();
  static_cast<void>(asked.cancel());
  EXPECT_THAT(text_of([&] { asked.get(); }), HasSubstr("it was asked to stop"));
  EXPECT_EQ(attempts, 1);
}

TEST(RpcRetry, CallbacksAreToldOfTheLastAttempt) {
  const two_members here;
  attempts = 0;
  const event told;
  std::atomic<int> got = 0;
  here.a.with({.retries = 2, .retry_on = retry::exceptions(), .retry_delay = 1ms})
      .call_async("b", fail_until, 3)
      .on_complete(
          [&](int value) {
            got = value;
            told.set();
          },
          [&](const error_info&) { told.set(); });
  told.wait();
  EXPECT_EQ(got, 3);
}

TEST(RpcRetry, WhatCannotBeTriedAgainIsRefused) {
  const two_members here;
  const auto error_of = [&](const rpc_call_options& how) {
    return text_of([&] { here.a.with(how).call("b", fail_until, 0); });
  };
  EXPECT_THAT(error_of({.retries = 1, .retry_on = retry::timeout()}), HasSubstr("no time of its own"));
  EXPECT_THAT(error_of({.retries = 1, .retry_delay = -1ns}), HasSubstr("less than 0"));
  EXPECT_THAT(text_of([&] { static_cast<void>(here.a.with({.retries = 1}).remote("b", fail_until, 0)); }),
              HasSubstr("made once"));
}

}  // namespace
}  // namespace muster::rpc_retry_test
