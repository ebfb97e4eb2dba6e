// SPDX-License-Identifier: BSL-1.0
// What a member says of itself: statistics, and traces.
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <muster/pool/process.hpp>
#include <muster/queue/event.hpp>
#include <muster/rpc.hpp>

#include "processes.hpp"
#include "temporary_directory.hpp"

namespace muster::rpc_observe_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;

int add(int a, int b) { return a + b; }

void serve(const rpc_ticket& ticket) {
  const rpc_group group(ticket, "server");
  group.serve("half", [](int number) {
    if (number % 2 != 0) throw std::invalid_argument("an odd number");
    return number / 2;
  });
  group.serve("wait", [](const event& until) { until.wait(); });
  group.run();
}

struct pair_of_members {
  rpc_ticket ticket{"observed", {"caller", "server"}, {.timeout = 60s}};
  rpc_group caller{ticket, "caller"};
  process server{serve, ticket};

  pair_of_members() {  // until it serves all
    static_cast<void>(caller.service<int(int)>("half"));
    static_cast<void>(caller.service<void(event)>("wait"));
  }
  // Of the other one; this very call is among them.
  [[nodiscard]] std::vector<std::uint64_t> served() const {
    return caller.call("server", [] {
      const auto found = this_call::group().stats();
      return std::vector<std::uint64_t>{found.served, found.failed, found.refused};
    });
  }
};

TEST(RpcStats, SayWhatWasCalledAndServed) {
  const pair_of_members both;
  EXPECT_EQ(both.caller.call("server", add, 1, 2), 3);
  const auto half = both.caller.service<int(int)>("half");
  EXPECT_EQ(half(8), 4);
  EXPECT_THROW(half(7), std::invalid_argument);
  const auto own = both.caller.stats();
  EXPECT_EQ(own.calls, 3U);
  EXPECT_EQ(own.under_way + own.lost + own.given_up + own.served + own.waiting, 0U);
  EXPECT_GT(own.sent_bytes, 3 * 48U);
  EXPECT_GT(own.received_bytes, 3 * 16U);
  EXPECT_EQ(both.served(), (std::vector<std::uint64_t>{4, 1, 0}));
}

TEST(RpcStats, TellHowLongServicesRan) {
  const rpc_ticket ticket("timed", {"a", "b"}, {.timeout = 60s});
  const rpc_group a(ticket, "a");
  const rpc_group b(ticket, "b");
  b.serve("sleep", [](int milliseconds) { test::work_for(std::chrono::milliseconds(milliseconds)); });
  b.serve("fail", [] { throw std::runtime_error("no"); });
  const auto sleep = a.service<void(int)>("sleep");
  for (const int each : {1, 5, 2}) sleep(each);
  EXPECT_THROW(a.call_service<void>("fail"), std::runtime_error);
  const auto found = b.stats().services;
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "fail");
  EXPECT_EQ(found[0].calls, 1U);
  EXPECT_EQ(found[0].failed, 1U);
  EXPECT_EQ(found[1].calls, 3U);
  EXPECT_EQ(found[1].failed, 0U);
  EXPECT_GE(found[1].longest, 5ms);
  EXPECT_GE(found[1].total, 8ms);
}

TEST(RpcStats, TellWhatWasGivenUpAndLost) {
  const pair_of_members both;
  const event goes_on;
  const auto wait = both.caller.service<void(event)>("wait");
  auto hangs = wait.call_async(goes_on);
  auto waits = wait.call_async(goes_on);
  static_cast<void>(waits.cancel(cancellation::kill));
  EXPECT_THROW(waits.get(), task_error);
  EXPECT_EQ(both.caller.stats().given_up, 1U);
  EXPECT_EQ(both.caller.stats().under_way, 1U);
  both.server.kill(SIGKILL);
  EXPECT_THROW(hangs.get(), member_lost);
  EXPECT_EQ(both.caller.stats().lost, 1U);
  EXPECT_EQ(both.caller.stats().under_way, 0U);
}

TEST(RpcStats, TellWhatNeverBegan) {
  const rpc_ticket ticket("refused", {"a", "b"}, {.timeout = 60s});
  const rpc_group a(ticket, "a");
  const rpc_group b(ticket, "b");
  const event goes_on;
  b.serve("wait", [](const event& until) { until.wait(); }, {.serial = true});
  const auto wait = a.service<void(event)>("wait");
  auto first = wait.call_async(goes_on);
  auto second = wait.call_async(goes_on);
  EXPECT_TRUE(test::eventually([&] { return b.stats().served == 1; }));
  EXPECT_TRUE(second.cancel());
  goes_on.set();
  first.get();
  wait(goes_on);
  EXPECT_EQ(b.stats().served, 2U);
  EXPECT_EQ(b.stats().refused, 1U);
}

// ---- traces

std::vector<json> events_of(const std::string& file) {
  std::ifstream in(file);
  std::string all{std::istreambuf_iterator<char>(in), {}};
  const auto last = all.rfind(',');
  if (last != std::string::npos) all.resize(last);
  return json::parse(all + "]").get<std::vector<json>>();
}

std::vector<json> only(const std::vector<json>& all, const std::string& phase) {
  std::vector<json> found;
  for (const auto& each : all) {
    if (each["ph"] == phase) found.push_back(each);
  }
  return found;
}

TEST(RpcTrace, OfAllMembersIsOneFileWithArrowsBetweenThem) {
  const test::temporary_directory directory;
  const std::string file = directory.path() / "trace.json";
  const pair_of_members both;
  both.caller.trace_to(file);
  both.caller.call("server", [](const std::string& to) { this_call::group().trace_to(to); }, file);
  both.caller.call("server", [](int depth) { return this_call::group().call("caller", add, depth, 1); }, 1);
  both.caller.call_service<int>("half", 8);
  EXPECT_THROW(both.caller.call_service<int>("half", 9), std::invalid_argument);
  both.caller.call("server", [] { this_call::group().end_trace(); });
  both.caller.end_trace();
  const auto all = events_of(file);

  std::map<std::string, int> slices;
  for (const auto& each : only(all, "X")) ++slices[each["name"]];
  EXPECT_EQ(slices["half"], 2);
  EXPECT_EQ(slices["post"], 6) << "five calls of the caller, one of the server";

  std::map<std::string, json> begins;
  for (const auto& each : only(all, "s")) begins.emplace(each["id"], each);
  int between = 0;
  for (const auto& each : only(all, "f")) {
    ASSERT_TRUE(begins.contains(each["id"])) << each;
    const auto& begin = begins[each["id"]];
    EXPECT_LE(begin["ts"], each["ts"]);
    between += begin["pid"] != each["pid"] ? 1 : 0;
  }
  EXPECT_EQ(between, 4) << "two of the services, the function, and what that calls";

  std::set<std::string> rows;
  for (const auto& each : only(all, "M")) rows.insert(each["args"]["name"]);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(*rows.begin(), HasSubstr("observed: caller"));
  EXPECT_THAT(*rows.rbegin(), HasSubstr("observed: server"));
}

TEST(RpcTrace, NamesFailuresAndCallers) {
  const test::temporary_directory directory;
  const std::string file = directory.path() / "trace.json";
  const rpc_ticket ticket("traced", {"a", "b"}, {.timeout = 60s});
  const rpc_group a(ticket, "a");
  {
    const rpc_group b(ticket, "b");
    b.serve("fail", [] { throw std::runtime_error("no"); });
    b.trace_to(file);
    EXPECT_THROW(a.call_service<void>("fail"), std::runtime_error);
  }  // leaving ends it
  const auto slices = only(events_of(file), "X");
  ASSERT_EQ(slices.size(), 1U);
  EXPECT_EQ(slices[0]["name"], "fail");
  EXPECT_EQ(slices[0]["args"]["caller"], "a");
  EXPECT_EQ(slices[0]["args"]["outcome"], "failed");
}

TEST(RpcTrace, ThatCannotBeWrittenIsAnError) {
  const rpc_ticket ticket("traced", {"a"});
  const rpc_group a(ticket, "a");
  try {
    a.trace_to("/nowhere/at/all.json");
    FAIL() << "nothing was thrown";
  } catch (const error& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("/nowhere/at/all.json"));
  }
  a.call("a", add, 1, 2);
  a.end_trace();
}

}  // namespace
}  // namespace muster::rpc_observe_test
