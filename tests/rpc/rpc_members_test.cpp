// SPDX-License-Identifier: BSL-1.0
// Members of every kind: workers of pools, threads, ranks of worlds.
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <span>
#include <stop_token>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/thread.hpp>
#include <muster/queue/event.hpp>
#include <muster/rpc.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/world.hpp>

namespace muster::rpc_members_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

int process_number() { return static_cast<int>(::getpid()); }
void leave() { this_call::group().leave(); }

/// A task: a member until it is asked to leave.
int be_member(const rpc_ticket& ticket, const std::string& name) {
  const rpc_group group(ticket, name);
  group.run();
  return process_number();
}

TEST(RpcMembers, AreTasksOfAPool) {
  const rpc_ticket ticket("workers", {"program", "w0", "w1"}, {.timeout = 60s});
  const rpc_group group(ticket, "program");
  pool workers({.workers = 2});
  auto first = workers.apply_async(be_member, ticket, std::string("w0"));
  auto second = workers.apply_async(be_member, ticket, std::string("w1"));
  const std::vector there{group.call("w0", process_number), group.call("w1", process_number)};
  const auto ask_other = [](const std::string& other) { return this_call::group().call(other, process_number); };
  EXPECT_EQ(group.call("w0", ask_other, std::string("w1")), there[1]) << "workers call one another";
  for (const auto* each : {"w0", "w1"}) group.call(each, leave);
  EXPECT_THAT((std::vector{first.get(), second.get()}), UnorderedElementsAre(there[0], there[1]));
}

TEST(RpcMembers, AreTasksThatArePutAnewWhereTheirWorkerDies) {
  const rpc_ticket ticket("workers", {"program", "w"}, {.timeout = 60s});
  const rpc_group group(ticket, "program");
  pool workers({.workers = 1});
  auto task = workers.with({.retries = 1}).apply_async(be_member, ticket, std::string("w"));
  const auto before = group.call("w", process_number);
  EXPECT_THROW(group.call("w", [] { return std::raise(SIGKILL); }), member_lost);
  const auto after = group.with({.awaits_rejoin = true}).call("w", process_number);
  EXPECT_NE(before, after);
  group.call("w", leave);
  EXPECT_EQ(task.get(), after);
}

TEST(RpcMembers, AreThreads) {
  const rpc_ticket ticket("threads", {"program", "t0", "t1"}, {.timeout = 60s});
  const rpc_group group(ticket, "program");
  const auto serve_as = [&](const std::string& name) {
    return thread([&ticket, name](const std::stop_token& stop) { rpc_group(ticket, name).run(stop); });
  };
  {
    const auto first = serve_as("t0");
    const auto second = serve_as("t1");
    for (const auto* each : {"t0", "t1"}) EXPECT_EQ(group.call(each, process_number), process_number());
    const auto far = group.remote("t1", [] { return std::string("there"); });
    EXPECT_EQ(far.to_here(), "there");
  }
  EXPECT_EQ(group.states()[1].state, member_state::left) << "a thread that is to stop leaves";
}

// Asks the program, which asks back.
double visit(const rpc_ticket& ticket, const tensor& x) {
  const auto number = static_cast<int>(x.at<float>(0));
  const rpc_group group(ticket, "rank " + std::to_string(number));
  group.serve("number of " + group.member(), [&] { return number; });
  return group.call_service<double>("visited");
}

TEST(RpcMembers, AreRanksOfAWorld) {
  const rpc_ticket ticket("ranks", {"program", "rank 0", "rank 1", "rank 2"}, {.timeout = 60s});
  const rpc_group group(ticket, "program");
  group.serve("visited", [] {
    const auto number = this_call::group().call_service<int>("number of " + this_call::caller());
    return 10.0 + number;
  });
  for (const bool computes : {true, false}) {
    world ranks({.ranks = 3, .caller_computes = computes});
    auto ask = ranks.function(bind_front(visit, ticket), rows("x"), outputs(sum("sum")));
    auto x = tensor::zeros<float>({3});
    for (std::size_t row = 0; row < 3; ++row) x.at<float>(row) = static_cast<float>(row);
    EXPECT_EQ(ask(x), 33.0);
  }
}

std::string member_of_none;  // of this process

void remember(const rpc_ticket& ticket) { member_of_none = ticket.name(); }

TEST(RpcMembers, GetTheirTicketAlsoWhereOnlyCopiesGo) {
  const rpc_ticket ticket("copied", {"program", "0", "1"}, {.timeout = 60s});
  const rpc_group group(ticket, "program");
  group.serve("add", [](int a, int b) { return a + b; });
  pool workers({.workers = 2, .initializer = bind_front(remember, ticket)});
  EXPECT_EQ(workers.apply([] { return member_of_none; }), "copied");
  const auto ask = [](const rpc_ticket& of, int number) {
    return rpc_group(of, std::to_string(number)).call_service<int>("add", number, 40);
  };
  EXPECT_THAT(workers.starmap(ask, std::vector{std::tuple(ticket, 0), std::tuple(ticket, 1)}), ElementsAre(40, 41));
}

TEST(RpcMembers, AreToldWhenTheGroupOfATicketIsGone) {
  alignas(frame_alignment) std::array<std::byte, 256> room{};
  const auto load = [&] {
    rpc_ticket loaded;
    input_archive(std::span<const std::byte>(room))(loaded);
    return loaded.name();
  };
  {
    const rpc_ticket ticket("short-lived", {"program"});
    output_archive out{std::span<std::byte>(room)};
    out(ticket);
    EXPECT_EQ(load(), "short-lived");
  }
  domain::of_program()->keepsakes().tidy();
  try {
    load();
    FAIL() << "nothing was thrown";
  } catch (const error& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("'short-lived', which is not there any more"));
  }
}

}  // namespace
}  // namespace muster::rpc_members_test
