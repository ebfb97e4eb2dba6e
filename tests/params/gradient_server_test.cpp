// SPDX-License-Identifier: BSL-1.0
// Machin's numbers, and what it does not test: every gradient counts once, or its loss is said.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/text.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/gradient_server.hpp>
#include <muster/params/ordered_server.hpp>
#include <muster/pool/process.hpp>
#include <muster/queue/event.hpp>
#include <muster/rpc.hpp>

#include "processes.hpp"

namespace muster::gradient_server_test {
namespace {

using testing::HasSubstr;

state_dict three(float a, float b, float c) {
  return {
      {"w1", tensor::full<float>({1}, a)}, {"w2", tensor::full<float>({1}, b)}, {"w3", tensor::full<float>({1}, c)}};
}

std::vector<float> numbers_of(const state_dict& model) {
  std::vector<float> all;
  for (const auto& name : model.names()) all.push_back(model.at(name).at<float>(0));
  return all;
}

std::shared_ptr<versioned_store> values_in(const store_ticket& box) {
  return std::make_shared<ordered_server>(box, "values");
}

/// What all that take part are given.
struct meeting {
  rpc_ticket group{};
  store_ticket box{};
  gradient_options how{};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(group, box, how.primary, how.secondaries, how.batch);
  }
};

meeting meeting_of(const std::vector<std::string>& members, gradient_options how) {
  return {.group = rpc_ticket("learners", members), .box = store_ticket(store_options()), .how = std::move(how)};
}

void expect_well(const process& which) {
  which.join();
  EXPECT_NO_THROW(which.watch());
}

// ---- y = w3·w2·w1·x, x = 1

void push_twice(const meeting& at, const std::string& name) {
  const rpc_group group(at.group, name);
  const gradient_server server(group, values_in(at.box), "server", at.how);
  auto model = three(1, 2, 3);
  for (int each = 0; each < 2; ++each) {
    if (!server.push(three(6, 3, 2), model).counted) throw std::runtime_error("it does not count");
  }
}

std::vector<float> learned(gradient_reduction reduction) {
  const auto at = meeting_of({"p", "c1", "c2"}, {.primary = "p", .secondaries = {"p"}, .batch = 2});
  auto how = at.how;
  how.reduction = reduction;
  const rpc_group group(at.group, "p");
  gradient_server server(group, values_in(at.box), "server", how);
  server.manage(three(1, 2, 3), sgd{.rate = 1});
  server.start();
  const process one(push_twice, at, "c1");
  const process other(push_twice, at, "c2");
  expect_well(one);
  expect_well(other);
  server.flush();
  auto model = three(0, 0, 0);
  EXPECT_TRUE(server.pull(model));
  EXPECT_NO_THROW(server.watch());
  return numbers_of(model);
}

TEST(GradientServer, LearnsByTheMeanAndByTheSum) {
  EXPECT_THAT(learned(gradient_reduction::mean), testing::ElementsAre(-5, -1, 1));
  EXPECT_THAT(learned(gradient_reduction::sum), testing::ElementsAre(-23, -10, -5));
}

// ---- every gradient counts once

state_dict ones() { return three(1, 1, 1); }

void reduce(const meeting& at, const std::string& name, const event& ends) {
  const rpc_group group(at.group, name);
  gradient_server server(group, values_in(at.box), "server", at.how);
  server.start();
  ends.wait();
  server.stop();
  server.watch();
}

void push_ones(const meeting& at, const std::string& name, int times) {
  const rpc_group group(at.group, name);
  const gradient_server server(group, values_in(at.box), "server", at.how);
  auto model = ones();
  for (int each = 0; each < times; ++each) {
    if (!server.push(ones(), model).counted) throw std::runtime_error("it does not count");
    const auto found = numbers_of(model);
    if (found[0] != found[1] || found[1] != found[2]) throw std::runtime_error("a torn model");
  }
}

TEST(GradientServer, EveryGradientCountsOnceAlsoWhereBatchesAreNotFull) {
  constexpr int clients = 3;
  constexpr int times = 50;
  const auto at = meeting_of({"p", "s1", "s2", "c0", "c1", "c2"}, {.primary = "p", .secondaries = {"s1", "s2"}});
  const rpc_group group(at.group, "p");
  gradient_server server(group, values_in(at.box), "server", at.how);
  server.manage(three(0, 0, 0), sgd{.rate = 1});
  server.start();
  const event ends;
  const process one(reduce, at, "s1", ends);
  const process other(reduce, at, "s2", ends);
  std::vector<process> all;
  for (int each = 0; each < clients; ++each) all.emplace_back(push_ones, at, text("c", each), times);
  for (const auto& each : all) expect_well(each);
  server.flush();
  auto model = three(0, 0, 0);
  EXPECT_TRUE(server.pull(model));
  EXPECT_THAT(numbers_of(model), testing::Each(-clients * times));
  ends.set();
  expect_well(one);
  expect_well(other);
}

TEST(GradientServer, TheDeathOfAReducerIsSaidOnceAndPushesGoToOthers) {
  const auto at = meeting_of({"p", "s1"}, {.primary = "p", .secondaries = {"s1", "p"}});
  const rpc_group group(at.group, "p");
  gradient_server server(group, values_in(at.box), "server", at.how);
  server.manage(three(0, 0, 0), sgd{.rate = 1});
  server.start();
  const process reducer(reduce, at, "s1", event());
  ASSERT_TRUE(test::eventually([&] { return group.is_published("server/secondary/s1"); }));
  reducer.kill(SIGKILL);
  reducer.join();
  auto model = ones();
  for (int each = 0; each < 8; ++each) EXPECT_TRUE(server.push(ones(), model).counted);
  server.flush();
  EXPECT_TRUE(server.pull(model));
  EXPECT_THAT(numbers_of(model), testing::Each(-8));
  try {
    server.watch();
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::peer_lost);
    EXPECT_THAT(failure.what(), HasSubstr("the reducer 's1'"));
  }
  EXPECT_NO_THROW(server.watch());
}

// ---- alone

class GradientServerAlone : public testing::Test {
protected:
  const rpc_ticket ticket_{"alone", {"p", "q"}};
  const rpc_group group_{ticket_, "p"};
  const std::shared_ptr<versioned_store> values_ = values_in(store_ticket(store_options()));
  state_dict model_ = three(1, 2, 3);
};

TEST_F(GradientServerAlone, AScheduleIsTheRateOfEachStep) {
  gradient_server server(group_, values_, "server", {.primary = "p", .secondaries = {"p"}, .batch = 1});
  server.manage(model_, sgd{.rate = 5}, [](std::uint64_t step) { return 1.0 / static_cast<double>(step); });
  server.start();
  for (int each = 0; each < 2; ++each) server.push(ones(), model_);
  server.flush();
  server.pull(model_);
  EXPECT_THAT(numbers_of(model_), testing::ElementsAre(-0.5F, 0.5F, 1.5F));
}

TEST_F(GradientServerAlone, StopsAndStartsAgain) {
  gradient_server server(group_, values_, "server", {.primary = "p", .secondaries = {"p"}});
  server.manage(model_, sgd{.rate = 1});
  for (int each = 0; each < 3; ++each) {
    server.start();
    server.push(ones(), model_);
    server.stop();
  }
  server.pull(model_);
  EXPECT_THAT(numbers_of(model_), testing::ElementsAre(-2, -1, 0)) << "what was left over was passed on";
}

// A client's push that comes beside a stop counts, or goes to the next one that starts.
TEST_F(GradientServerAlone, NothingThatCountsIsLostBesideStops) {
  gradient_server server(group_, values_, "server", {.primary = "p", .secondaries = {"p"}});
  server.manage(three(0, 0, 0), sgd{.rate = 1});
  constexpr int times = 200;
  std::thread client([&] {
    auto model = three(0, 0, 0);
    for (int each = 0; each < times; ++each) EXPECT_TRUE(server.push(ones(), model).counted);
  });
  for (int each = 0; each < 20; ++each) {
    server.start();
    server.stop();
  }
  server.start();
  client.join();
  server.flush();
  server.pull(model_);
  EXPECT_THAT(numbers_of(model_), testing::Each(-times));
  EXPECT_NO_THROW(server.watch());
}

TEST_F(GradientServerAlone, GradientsOfTooOldAModelDoNotCount) {
  gradient_server server(group_, values_, "server", {.primary = "p", .secondaries = {"p"}, .batch = 1, .staleness = 1});
  server.manage(model_, sgd{.rate = 1});
  server.start();
  auto old = three(0, 0, 0);
  server.pull(old);
  for (int each = 0; each < 3; ++each) {
    server.push(ones(), model_);
    server.flush();
    server.pull(model_);
  }
  EXPECT_FALSE(server.push(ones(), old).counted);
  EXPECT_EQ(old.version(), model_.version()) << "it is the newest one by that";
  EXPECT_TRUE(server.push(ones(), old).counted);
}

TEST_F(GradientServerAlone, LeftOversAreFlushedAfterATime) {
  gradient_server server(group_, values_, "server",
                         {.primary = "p", .secondaries = {"p"}, .flush_after = std::chrono::milliseconds(1)});
  server.manage(model_, sgd{.rate = 1});
  server.start();
  server.push(ones(), model_);
  EXPECT_TRUE(test::eventually([&] {
    server.pull(model_);
    return model_.version() == 2;
  }));
}

TEST_F(GradientServerAlone, BadInputIsSaid) {
  EXPECT_THROW(gradient_server(group_, values_, "server", {.primary = "nobody"}), error);
  EXPECT_THROW(gradient_server(group_, values_, "server", {.primary = "p", .batch = 0}), error);
  gradient_server elsewhere(group_, values_, "server", {.primary = "q", .secondaries = {"q"}});
  EXPECT_THROW(elsewhere.manage(model_, sgd{.rate = 1}), error);
  EXPECT_THROW(elsewhere.start(), error);
  gradient_server server(group_, values_, "server", {.primary = "p", .secondaries = {"p"}});
  EXPECT_THROW(server.start(), error) << "without a model";
  EXPECT_THROW(server.manage(model_, sgd{.rate = -1}), error);
  const state_dict of_integers{{"n", tensor::zeros<std::int32_t>({1})}};
  EXPECT_THROW(server.manage(of_integers, sgd{.rate = 1}), error);
  gradient_server of_means(group_, values_, "means",
                           {.primary = "p", .secondaries = {"p"}, .reduction = gradient_reduction::mean});
  EXPECT_THROW(of_means.manage(of_integers, assign_rule()), error) << "an average of integers";
  server.manage(model_, sgd{.rate = 1});
  server.start();
  EXPECT_THROW(server.manage(model_, sgd{.rate = 1}), error);
  EXPECT_THROW(server.push(state_dict{{"w", tensor::zeros<float>({1})}}, model_), error);
}

}  // namespace
}  // namespace muster::gradient_server_test
