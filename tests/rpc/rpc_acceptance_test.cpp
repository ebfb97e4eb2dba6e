// SPDX-License-Identifier: BSL-1.0
// The numbers of Machin's own tests of its RPC groups: three members, each in a process of its own.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/process.hpp>
#include <muster/rpc.hpp>

namespace muster::rpc_acceptance_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

int add(int a, int b) { return a + b; }

struct counter {
  int value = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(value);
  }
};

std::string text_of(const auto& call) {
  try {
    call();
  } catch (const error& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

/// Members "1" and "2" are processes; "0" is the program.
class MachinsNumbers : public testing::Test {
protected:
  static void run(const rpc_ticket& ticket, const std::string& name) { rpc_group(ticket, name).run(); }

  rpc_ticket ticket_{"group", {"0", "1", "2"}, {.timeout = 60s}};
  rpc_group group_{ticket_, "0"};
  process one_{run, ticket_, "1"};
  process two_{run, ticket_, "2"};
};

TEST_F(MachinsNumbers, RpcSyncAsyncAndRemote) {
  EXPECT_EQ(group_.with({.deadline = 1s}).call("1", add, 1, 2), 3);
  EXPECT_EQ(group_.with({.deadline = 1s}).call_async("1", add, 1, 2).get(), 3);
  EXPECT_EQ(group_.with({.deadline = 1s}).remote("1", add, 1, 2).to_here(), 3);
}

TEST_F(MachinsNumbers, RpcPair) {
  const auto pair = [] { static_cast<void>(this_call::group().publish("key", counter{20})); };
  group_.call("1", pair);
  EXPECT_THAT(text_of([&] { group_.call("1", pair); }), HasSubstr("'key' is published by '1'"));
  EXPECT_THAT(text_of([&] { group_.call("2", pair); }), HasSubstr("'key' is published by '1'"));
  EXPECT_THAT(text_of([&] { group_.withdraw("key"); }), HasSubstr("not published by '0'"));
  EXPECT_THAT(text_of([&] { static_cast<void>(group_.find<counter>("other")); }), HasSubstr("published by no member"));
  EXPECT_EQ(group_.find<counter>("key").to_here().value, 20);
  group_.call("1", [] { this_call::group().withdraw("key"); });
  EXPECT_FALSE(group_.is_published("key"));
}

// A counter of 20 that each call adds one to.
TEST_F(MachinsNumbers, RpcRegister) {
  group_.call("1", [] {
    const auto group = this_call::group();
    const auto kept = group.publish("counter", counter{20});
    group.serve("count", [kept] { return ++kept.local().value; }, {.serial = true});
  });
  EXPECT_EQ(group_.call_service<int>("count"), 21);
  EXPECT_EQ(group_.call_service_async<int>("count").get(), 22);
  EXPECT_EQ(group_.remote_service<int>("count").to_here(), 23);
  EXPECT_EQ(group_.find<counter>("counter").to_here().value, 23);
  EXPECT_THAT(text_of([&] { group_.serve("count", [] { return 0; }); }), HasSubstr("'count' is served by '1'"));
  EXPECT_THAT(text_of([&] { group_.unserve("count"); }), HasSubstr("not served by '0', but by 1"));
  EXPECT_THAT(text_of([&] { group_.call_service<int>("other"); }), HasSubstr("served by no member"));
  group_.call("1", [] { this_call::group().unserve("count"); });
  EXPECT_FALSE(group_.is_served("count"));
}

TEST_F(MachinsNumbers, GetInfoAndBarrier) {
  EXPECT_THAT(group_.members(), ElementsAre("0", "1", "2"));
  EXPECT_TRUE(group_.is_member("2"));
  EXPECT_FALSE(group_.is_member("3"));
  EXPECT_EQ(group_.name(), "group");
  const auto meet = [] { this_call::group().barrier(); };
  auto one = group_.call_async("1", meet);
  auto two = group_.call_async("2", meet);
  group_.barrier();
  one.get();
  two.get();
}

}  // namespace
}  // namespace muster::rpc_acceptance_test
