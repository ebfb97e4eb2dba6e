// SPDX-License-Identifier: BSL-1.0
// Every line of code of docs/stores.md, as it stands there; and that none is missing here.
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/tensor_compare.hpp>
#include <muster/params.hpp>
#include <muster/pool/process.hpp>

#include "page.hpp"
#include "temporary_directory.hpp"

namespace muster::stores_page_test {
namespace {

using namespace std::chrono_literals;

std::string checkpoint;  // set before processes are started

// Of the square of each weight's distance to 1, of one of two workers.
tensor gradient_at(const tensor& weights) {
  const auto found = tensor::zeros<float>({4});
  for (int each = 0; each < 4; ++each) found.at<float>(each) = weights.at<const float>(each) - 1;
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
void train(const muster::store_ticket& ticket) {
  const muster::store store(ticket);
  const auto weights = muster::tensor::zeros<float>({1000});
  for (int step = 1; step <= 10; ++step) {
    weights.fill(static_cast<float>(step));                          // a step of training
    store.push("weights", weights);                                  // copies: the next step writes to them again
  }
}

float evaluate(const muster::store_ticket& ticket) {
  const muster::store store(ticket);
  muster::pulled<muster::tensor> newest{};
  while (newest.version < 10 && store.wait_for("weights", newest.version + 1, 10s)) {
    newest = store.pull<muster::tensor>("weights");                  // the version itself: no copy, and it never changes
  }
  return newest.value.at<const float>(999);
}

float train_and_evaluate() {                                         // called by main(), behind muster::init(argc, argv)
  const muster::store_ticket ticket{muster::store_options()};
  const muster::process trainer(train, ticket);
  const auto last = evaluate(ticket);
  trainer.join();
  trainer.watch();                                                   // throws what train() has thrown
  return last;
}

struct progress {
  std::uint64_t images = 0;
  double loss = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(images, loss);
  }
};

void report(const muster::store_ticket& ticket, std::uint64_t images, double loss) {
  const muster::store store(ticket);
  store.push("progress", progress(), {.expected = 0});               // only if there is no value yet
  store.update<progress>("progress", [=](const progress& now) {
    return progress{.images = now.images + images, .loss = now.loss + loss};
  });
}

float learn(const muster::kv_ticket& ticket, std::size_t rank) {
  const muster::kv_store kv(ticket, rank);
  kv.init("w", muster::tensor::zeros<float>({4}));                   // rank 0's counts
  kv.set_optimizer(muster::sgd{.rate = 0.1, .momentum = 0.5});
  for (int step = 0; step < 60; ++step) {
    try {
      kv.push("w", gradient_at(kv.pull("w")));
    } catch (const muster::task_error& failure) {
      // A worker has died, and its round had no effect: this step is lost, and the others go on without that worker.
      if (failure.code() != muster::errc::peer_lost) throw;
    }
  }
  if (kv.rank() == 0) kv.save(checkpoint);                           // values, and what the optimizer remembers
  return kv.pull("w").at<const float>(0);
}
// clang-format on

class StoresPage : public testing::Test {
protected:
  StoresPage() { checkpoint = directory_.path() / "model.safetensors"; }

  test::temporary_directory directory_;
};

TEST_F(StoresPage, OneProcessTrainsOthersLook) {
  EXPECT_EQ(train_and_evaluate(), 10);
  const store_ticket ticket{store_options()};
  const muster::store store(ticket);
  const auto weights = tensor::full<float>({1000}, 11);
  auto next = store.empty_like(weights);
  next.copy_from(weights);
  store.push("weights", std::move(next));
  EXPECT_EQ(store.pull<tensor>("weights").value.span<const float>()[0], 11);
}

TEST_F(StoresPage, SeveralProcessesChangeOneValue) {
  const store_ticket ticket{store_options()};
  const muster::store store(ticket);
  const auto often = [](const store_ticket& of) {
    for (int each = 0; each < 100; ++each) report(of, 2, 0.5);
  };
  const process one(often, ticket);
  const process other(often, ticket);
  one.join();
  other.join();
  EXPECT_EQ(store.pull<progress>("progress").value.images, 400U);
  EXPECT_EQ(store.pull<progress>("progress").value.loss, 100);
}

TEST_F(StoresPage, WorkersTrainOneModel) {
  // clang-format off
  muster::kv_ticket ticket(muster::kv_kind::sync, {.workers = 2});
  // clang-format on
  const process other([](const kv_ticket& of) { learn(of, 1); }, ticket);
  EXPECT_NEAR(learn(ticket, 0), 1, 0.01);
  other.join();
  other.watch();
  EXPECT_TRUE(std::ifstream(checkpoint).good());
  const muster::kv_store again(ticket, 1);
  EXPECT_NEAR(again.pull("w").at<const float>(3), 1, 0.01);
  const auto rule = muster::sgd{.rate = 0.1, .momentum = 0.5};
  const muster::kv_store kv(muster::kv_kind::local);
  kv.set_optimizer(rule);
  kv.load(checkpoint);
  EXPECT_TRUE(equal(kv.pull("w"), again.pull("w")));
}

TEST_F(StoresPage, Calling) {
  // clang-format off
  muster::store_ticket kept({.depth = 2});
  // clang-format on
  const muster::store store(kept);
  store.push("limits", limits{.most = 3});
  EXPECT_EQ(store.pull<limits>("limits").value.most, 3);
  EXPECT_TRUE(store.try_pull<limits>("limits"));
  EXPECT_TRUE(store.push("limits", limits{.most = 4}, {.expected = 1}).ok);
  const auto w = tensor::ones<float>({3});
  const auto b = tensor::zeros<float>({1});
  EXPECT_TRUE(store.push_all({{"w", w}, {"b", b}}).ok);
  auto both = store.pull_all<muster::tensor>({"w", "b"});
  EXPECT_EQ(both[0].value.at<const float>(2), 1);
  store.push("w", b);
  EXPECT_TRUE(store.try_pull<muster::tensor>("w", 1));
  EXPECT_TRUE(store.wait_for("w", 2, 10s));
  EXPECT_EQ(store.version("w"), 2U);
  EXPECT_THAT(store.keys(), testing::ElementsAre("b", "limits", "w"));
  store.save(checkpoint);
  store.erase("b");
  store.load(checkpoint);
  EXPECT_TRUE(store.contains("b"));
  const state_dict first{{"w", w}};
  const state_dict second{{"b", b}};
  EXPECT_EQ(muster::assign({first, second}, {{{0, 1}, 1.0}}).devices.size(), 2U);
  const auto found = assign({first, second}, {{{0, 1}, 1.0}});
  EXPECT_EQ(found.move({first, second}).size(), 2U);
  {
    muster::kv_store kv(muster::kv_kind::device);
    EXPECT_EQ(kv.size(), 1U);
  }
}

TEST_F(StoresPage, WhatCanGoWrong) {
  const store_ticket kept{store_options()};
  const std::string broken = directory_.path() / "broken";
  directory_.write("broken", "no file of tensors");
  try {
    muster::store(kept).load(broken);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& failure) {
    EXPECT_FALSE(failure.code() == muster::errc::peer_lost);
    EXPECT_FALSE(failure.code() == muster::errc::timed_out);
    EXPECT_FALSE(failure.code() == muster::errc::out_of_memory);
    EXPECT_TRUE(failure.code() == muster::errc::corrupted);
  }
  muster::store(kept).push("w", 1);
  try {
    static_cast<void>(muster::store(kept).pull<std::string>("w"));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& failure) {
    EXPECT_TRUE(failure.code() == muster::errc::invalid_argument);
  }
}

TEST_F(StoresPage, IsAllHere) {
  test::expect_compiled(MUSTER_DOCS "stores.md", __FILE__, 12);
  test::expect_blocks_compiled(MUSTER_DOCS "stores.md", __FILE__, 3);
}

}  // namespace
}  // namespace muster::stores_page_test
