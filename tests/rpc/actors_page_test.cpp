// SPDX-License-Identifier: BSL-1.0
// Every line of code of docs/actors-and-services.md, as it stands there; and that none is missing here.
#include <chrono>
#include <csignal>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/async/when_all.hpp>
#include <muster/device/tensor.hpp>
#include <muster/pool/process.hpp>
#include <muster/rpc.hpp>

#include "page.hpp"
#include "temporary_directory.hpp"

namespace muster::actors_page_test {
namespace {

using namespace std::chrono_literals;

int add(int a, int b) { return a + b; }

// Of the square of each weight's distance to 1.
tensor gradient_at(const tensor& weights) {
  const auto found = tensor::zeros<float>({4});
  for (int each = 0; each < 4; ++each) found.at<float>(each) = weights.at<float>(each) - 1;
  return found;
}

struct limits {
  int most = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(most);
  }
};

// clang-format off
class counter {
public:
  explicit counter(int from) : value_(from) {}
  int add(int by) { return value_ += by; }

private:
  int value_;
};

int count(const muster::rpc_group& group) {
  const auto seven = group.start<counter>("counter 7", {.restarts = 2}, 20);
  muster::future<int> sum = seven.call_async(&counter::add, 1);
  seven.call(&counter::add, 1);                                    // behind the first
  const auto add_five = [](const muster::remote_ref<counter>& which) { return which.call(&counter::add, 5); };
  return sum.get() + group.call("worker", add_five, seven);        // a reference can be sent: 21 + 27
}

void keep_parameters(const muster::rpc_ticket& ticket) {
  const muster::rpc_group group(ticket, "parameters");
  const auto weights = muster::tensor::zeros<float>({4});
  group.serve("pull", [&] { return weights; }, {.line = "weights"});
  group.serve("push", [&](const muster::tensor& gradient) {
    for (int each = 0; each < 4; ++each) weights.at<float>(each) -= 0.5F * gradient.at<float>(each);
  }, {.line = "weights"});
  group.run();                                                     // until no other member is there
}

float train(const muster::rpc_ticket& ticket, const std::string& name) {
  const muster::rpc_group group(ticket, name);
  const auto pull = group.service<muster::tensor()>("pull").with({.transfer = muster::transfer::copy});
  const auto push = group.service<void(muster::tensor)>("push");   // waits until it is served
  for (int step = 0; step < 10; ++step) push(gradient_at(pull()));
  return pull().at<float>(0);
}

std::vector<double> load(int part) { return std::vector<double>(1000, part); }
double sum(const std::vector<double>& part) { return std::accumulate(part.begin(), part.end(), 0.0); }

double sum_of_all(const muster::rpc_group& group) {
  std::vector<muster::remote_ref<std::vector<double>>> parts;
  for (int each = 0; each < 8; ++each) {
    parts.push_back(group.remote(each % 2 == 0 ? "even" : "odd", load, each));
  }
  std::vector<muster::future<double>> sums;
  for (const auto& each : parts) sums.push_back(each.call_async(sum));
  const auto all = muster::when_all(std::move(sums)).get();
  return std::accumulate(all.begin(), all.end(), 0.0);
}
// clang-format on

void serve_as(const rpc_ticket& ticket, const std::string& name) { rpc_group(ticket, name).run(); }

TEST(ActorsPage, AnActorWithState) {
  const rpc_ticket ticket("actors", {"program", "worker"}, {.timeout = 60s});
  rpc_group group(ticket, "program");
  const process worker(serve_as, ticket, "worker");
  EXPECT_EQ(count(group), 21 + 27);
  group.leave();
  worker.join();
}

TEST(ActorsPage, AParameterService) {
  const rpc_ticket ticket("training", {"parameters", "first", "second", "test"}, {.timeout = 60s});
  const process parameters(keep_parameters, ticket);
  rpc_group group(ticket, "test");
  const process first([](const rpc_ticket& of) { train(of, "first"); }, ticket);
  train(ticket, "second");
  first.join();
  first.watch();
  // Now that none is under way: a gradient that was late is made up for by its process's next ones.
  EXPECT_NEAR(group.call_service<tensor>("pull").at<float>(0), 1, 0.1);
  group.leave();
  parameters.join();
}

TEST(ActorsPage, AFarmWhoseResultsStay) {
  const rpc_ticket ticket("farm", {"program", "even", "odd"}, {.timeout = 60s});
  rpc_group group(ticket, "program");
  const process even(serve_as, ticket, "even");
  const process odd(serve_as, ticket, "odd");
  EXPECT_EQ(sum_of_all(group), 28'000);
  for (const auto* const name : {"even", "odd"}) {
    group.call(name, [] { muster::this_call::group().leave(); });
  }
  even.join();
  odd.join();
}

TEST(ActorsPage, Calling) {
  const rpc_ticket ticket("calls", {"program", "worker", "several"}, {.timeout = 60s});
  rpc_group group(ticket, "program");
  const rpc_group worker(ticket, "worker");
  worker.serve("add", add);
  EXPECT_EQ(group.call("worker", add, 1, 2), 3);
  EXPECT_EQ(group.call_async("worker", add, 1, 2).then([](int three) { return three + 1; }).get(), 4);
  EXPECT_EQ(group.call_async("worker", add, group.call_async("worker", add, 1, 2), 3).get(), 6);
  EXPECT_EQ(group.service<int(int, int)>("add")(1, 2), 3);
  EXPECT_EQ(group.call_service<int>("add", 1, 2), 3);
  const auto far = group.remote("worker", load, 1);
  EXPECT_EQ(far.to_here().size(), 1000U);
  group.publish("limits", limits{.most = 3});
  EXPECT_EQ(group.find<limits>("limits").to_here().most, 3);
  EXPECT_EQ(group.with({.deadline = 1s}).call("worker", add, 1, 2), 3);
  EXPECT_EQ(group.call("worker", [] { return muster::this_call::caller(); }), "program");
  EXPECT_FALSE(muster::this_call::stop_requested());
  muster::rpc_group several(ticket, "several", {.threads = 4});
  int balance = 0;
  const auto deposit = [&](int more) { balance += more; };
  several.serve("deposit", deposit, {.serial = true});
  several.serve("relay", [] { return muster::this_call::group().call_async("worker", add, 1, 2); });
  group.call_service<void>("deposit", 5);
  EXPECT_EQ(balance, 5);
  EXPECT_EQ(group.call_service<int>("relay"), 3);
}

TEST(ActorsPage, LookingAtIt) {
  const rpc_ticket ticket("looks", {"program", "worker", "several"}, {.timeout = 60s});
  const rpc_group group(ticket, "program");
  const rpc_group several(ticket, "several");
  const rpc_group worker(ticket, "worker");
  const test::temporary_directory directory;
  const std::string file = directory.path() / "calls.json";
  // clang-format off
  group.trace_to(file);
  group.call("worker", [](const std::string& to) { muster::this_call::group().trace_to(to); }, file);
  // clang-format on
  several.serve("add", add);
  EXPECT_EQ(group.call_service<int>("add", 1, 2), 3);
  EXPECT_EQ(group.states().size(), 3U);
  EXPECT_EQ(group.stats().served, 0U);
  EXPECT_GT(several.stats().services.front().longest, 0ns);
}

TEST(ActorsPage, WhatCanGoWrong) {
  const rpc_ticket ticket("deaths", {"program", "worker"}, {.timeout = 60s});
  rpc_group group(ticket, "program");
  std::vector<std::string> changes;
  group.on_change([&](const muster::rpc_change& change) { changes.push_back(change.member); });
  const process worker(serve_as, ticket, "worker");
  try {
    group.call("worker", [] { ::raise(SIGKILL); });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const muster::member_lost& lost) {
    EXPECT_TRUE(lost.had_begun());
  }
  const process again(serve_as, ticket, "worker");
  EXPECT_EQ(group.with({.awaits_rejoin = true}).call("worker", add, 1, 2), 3);
  EXPECT_EQ(group.with({.retries = 2}).call("worker", add, 1, 2), 3);
  const auto never = [] {
    while (!this_call::stop_requested()) continue;
  };
  try {
    group.with({.deadline = 1ms}).call("worker", never);
  } catch (const error& failure) {
    EXPECT_TRUE(failure.code() == muster::errc::timed_out);
    EXPECT_FALSE(failure.code() == muster::errc::would_deadlock);
    EXPECT_FALSE(failure.code() == muster::errc::peer_lost);
  }
  group.leave();
  again.join();
  EXPECT_THAT(changes, testing::Contains("worker"));
}

TEST(ActorsPage, IsAllHere) {
  test::expect_compiled(MUSTER_DOCS "actors-and-services.md", __FILE__, 20);
  test::expect_blocks_compiled(MUSTER_DOCS "actors-and-services.md", __FILE__, 3);
}

}  // namespace
}  // namespace muster::actors_page_test
