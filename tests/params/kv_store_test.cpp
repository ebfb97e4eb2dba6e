// SPDX-License-Identifier: BSL-1.0
// The key-value store: MXNet's numbers (docs/coming-from-mxnet.md), and what it does not do.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/text.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/kv_store.hpp>
#include <muster/pool/process.hpp>
#include <muster/queue/event.hpp>

#include "processes.hpp"

namespace muster::kv_store_test {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::HasSubstr;

std::string text_of(const auto& call) {
  try {
    call();
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

tensor ones(const tensor_shape& shape, float value = 1) { return tensor::full<float>(shape, value); }
const tensor_shape small({2, 3});
const tensor_shape odd({1211, 11});

void require_all(const tensor& found, float wanted, const std::string& where) {
  for (const float each : found.to_vector<float>()) {
    if (each != wanted) throw std::runtime_error(text(where, ": ", each, " instead of ", wanted));
  }
}

// ---- one process

TEST(KvStore, AssignsWithoutAnUpdater) {
  const kv_store kv(kv_kind::local);
  kv.init(3, ones(small, 4));
  EXPECT_THAT(kv.pull(3).to_vector<float>(), Each(4));
  kv.push(3, ones(small, 8));
  kv.push(3, ones(small, 1));
  EXPECT_THAT(kv.pull(3).to_vector<float>(), Each(1));
  kv.push(3, {ones(small), ones(small), ones(small), ones(small)});
  EXPECT_THAT(kv.pull(3).to_vector<float>(), Each(4)) << "several devices are summed";
}

TEST(KvStore, AnUpdaterMakesTheNextValue) {
  const kv_store kv(kv_kind::local);
  kv.init("a", ones(small, 4));
  kv.set_updater([](const store_key&, const tensor& input, tensor& stored) { axpy(2.0, input, stored); });
  kv.push("a", ones(small));
  EXPECT_THAT(kv.pull("a").to_vector<float>(), Each(6));
  const auto into = ones(small, 0);
  kv.pull("a", into);
  EXPECT_THAT(into.to_vector<float>(), Each(6));
  EXPECT_THAT(kv.push_pull("a", ones(small)).to_vector<float>(), Each(8));
}

TEST(KvStore, OneThatThrowsFailsThePush) {
  const kv_store kv(kv_kind::local);
  kv.init("a", ones(small, 4));
  kv.set_updater([](const store_key&, const tensor&, tensor&) { throw std::runtime_error("no"); });
  EXPECT_THROW(kv.push("a", ones(small)), std::runtime_error);
  EXPECT_THAT(kv.pull("a").to_vector<float>(), Each(4));
}

TEST(KvStore, ARuleIsApplied) {
  const kv_store kv(kv_kind::local);
  kv.init("w", ones(small, 1));
  kv.set_optimizer(sgd{.rate = 0.5, .momentum = 0.5});
  kv.push("w", ones(small, 1));
  EXPECT_THAT(kv.pull("w").to_vector<float>(), Each(0.5F));
  kv.push("w", ones(small, 1));
  EXPECT_THAT(kv.pull("w").to_vector<float>(), Each(-0.25F)) << "with what it remembers";
}

TEST(KvStore, WhatDoesNotFitIsSaid) {
  const kv_store kv(kv_kind::local);
  EXPECT_THAT(text_of([&] { kv.push("w", ones(small)); }), HasSubstr("there is no value 'w'"));
  kv.init("w", ones(small));
  EXPECT_THAT(text_of([&] { kv.init("w", ones(small)); }), HasSubstr("initialized twice"));
  EXPECT_THAT(text_of([&] { kv.push("w", ones(odd)); }), HasSubstr("shape"));
  EXPECT_THAT(text_of([&] { kv.push("w", tensor::zeros<int>(small)); }), HasSubstr("dtype"));
  EXPECT_THAT(text_of([] { const kv_store alone(kv_kind::sync); }), HasSubstr("needs a kv_ticket"));
  EXPECT_THAT(text_of([] { static_cast<void>(kv_kind_of("lcoal")); }), HasSubstr("dist_sync"));
  EXPECT_THAT(text_of([] { static_cast<void>(kv_kind_of("horovod")); }), HasSubstr("muster::group"));
  EXPECT_EQ(kv_kind_of("Dist_Sync"), kv_kind::sync);
  EXPECT_THAT(kv.pull("w").to_vector<float>(), Each(1)) << "the store goes on";
}

// ---- several workers

void add_twice(const store_key&, const tensor& input, tensor& stored) { axpy(2.0, input, stored); }

/// Workers in processes of their own.
std::vector<process> start(const kv_ticket& ticket, std::size_t count, void (*run)(const kv_ticket&, std::size_t)) {
  std::vector<process> all;
  for (std::size_t rank = 0; rank < count; ++rank) all.emplace_back(run, ticket, rank);
  return all;
}

void join_all(const std::vector<process>& all) {
  for (const auto& each : all) {
    each.join();
    EXPECT_NO_THROW(each.watch());
  }
}

// Values pushed by rank r are (r + 1), the store begins at 1: 1 + 2·(i + 1)·n(n + 1)/2 after round i.
void push_in_rounds(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  const auto n = static_cast<float>(kv.size());
  for (const auto& [key, shape] : {std::pair(store_key(3), small), std::pair(store_key("odd"), odd)}) {
    kv.init(key, ones(shape, 1));
  }
  kv.set_updater(add_twice);
  kv.barrier();
  for (int round = 0; round < 7; ++round) {
    const auto wanted = 1 + 2 * static_cast<float>(round + 1) * n * (n + 1) / 2;
    kv.push(3, ones(small, static_cast<float>(rank + 1)));
    require_all(kv.pull(3), wanted, "3");
    kv.push("odd", ones(odd, static_cast<float>(rank + 1)));
    require_all(kv.pull("odd"), wanted, "odd");
    kv.barrier();
  }
}

TEST(KvStoreSync, RoundsSumThePushesOfAllWorkers) {
  for (const std::size_t workers : {1U, 2U, 4U, 7U}) {
    const kv_ticket ticket(kv_kind::sync, {.workers = workers, .owners = workers == 7 ? 3U : 0U});
    join_all(start(ticket, workers, push_in_rounds));
  }
}

// Without an updater the value is the round's sum.
void push_without(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  const std::vector<store_key> keys{"a", "b", "c"};
  for (const auto& each : keys) kv.init(each, ones(small, 0));
  for (int round = 0; round < 5; ++round) {
    const auto mine = ones(small, static_cast<float>(rank + 1));
    kv.push(keys, {mine, mine, mine});
    for (const auto& each : keys) require_all(kv.pull(each), 10, each.text());
    kv.barrier();
  }
}

TEST(KvStoreSync, WithoutAnUpdaterTheValueIsTheSumOfTheRound) {
  const kv_ticket ticket(kv_kind::sync, {.workers = 4});
  join_all(start(ticket, 4, push_without));
}

// The worker that is killed has not pushed: the others are told once, and go on.
void push_beside_a_death(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  kv.init("w", ones(small, 0));
  kv.push("w", ones(small, 1));
  require_all(kv.pull("w"), 3, "three workers");
  if (rank == 2) {
    kv.values().push("ready", 1);
    event().wait();
  }
  try {
    kv.push("w", ones(small, 1));
    throw std::runtime_error("the push was not failed");
  } catch (const task_error& failure) {
    if (failure.code() != errc::peer_lost) throw;
  }
  kv.push("w", ones(small, 1));
  require_all(kv.pull("w"), 2, "two workers");
}

TEST(KvStoreSync, AWorkerThatDiesFailsTheRoundOnce) {
  const kv_ticket ticket(kv_kind::sync, {.workers = 3, .owners = 1});
  auto all = start(ticket, 3, push_beside_a_death);
  const store values(ticket.values());
  ASSERT_TRUE(values.wait_for("ready", 1));
  all[2].kill(SIGKILL);
  all[2].join();
  all.pop_back();
  join_all(all);
}

// The owner of the key is killed between rounds and within them: its state is in the store.
void push_beside_owners_deaths(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  if (rank >= kv.size()) return kv.run();
  kv.init("w", ones(small, 0));
  kv.set_optimizer(sgd{.rate = 1, .momentum = 0.5});
  kv.barrier();
  for (int round = 0; round < 200; ++round) {
    kv.push("w", ones(small, 0.5F));
    if (rank == 0) kv.values().push("round", round);
  }
}

float undisturbed() {
  const kv_store kv(kv_kind::local);
  kv.init("w", ones(small, 0));
  kv.set_optimizer(sgd{.rate = 1, .momentum = 0.5});
  for (int round = 0; round < 200; ++round) kv.push("w", ones(small, 1));
  return kv.pull("w").at<float>(0, 0);
}

TEST(KvStoreSync, AnOwnerThatDiesLeavesWhatItsRuleRemembers) {
  const kv_ticket ticket(kv_kind::sync, {.workers = 2, .spare_owners = 2});
  auto all = start(ticket, 4, push_beside_owners_deaths);
  const store values(ticket.values());
  ASSERT_TRUE(values.wait_for("round", 20));
  all[2].kill(SIGKILL);
  ASSERT_TRUE(values.wait_for("round", 60));
  all[3].kill(SIGKILL);
  all[2].join();
  all[3].join();
  all.erase(all.begin() + 2, all.end());
  join_all(all);
  EXPECT_EQ(values.pull<tensor>("w").value.at<float>(1, 2), undisturbed());
}

// Each push is applied as it comes, and all are there in the end.
void push_alone(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  kv.init("w", ones(small, 5));
  kv.set_updater([](const store_key&, const tensor& input, tensor& stored) { axpy(1.0, input, stored); });
  kv.barrier();
  for (int each = 0; each < 50; ++each) kv.push("w", ones(small, 1));
  kv.barrier();
  require_all(kv.pull("w"), 5 + 50 * static_cast<float>(kv.size()), "w");
  kv.barrier();
}

TEST(KvStoreAsync, EveryPushCountsOnce) {
  for (const std::size_t workers : {1U, 2U, 4U}) {
    const kv_ticket ticket(kv_kind::async, {.workers = workers});
    join_all(start(ticket, workers, push_alone));
  }
}

// The first worker may be so many pushes ahead of the second.
void push_ahead(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  kv.init("w", ones(small, 0));
  kv.push("w", ones(small, 0));
  kv.barrier();
  if (rank == 0) {
    for (int each = 0; each < 10; ++each) {
      kv.push("w", ones(small, 0));
      kv.values().push("ahead", each);
    }
    return;
  }
  for (int each = 0; each < 10; ++each) {
    if (!kv.values().wait_for("ahead", static_cast<std::uint64_t>(std::min(each + 3, 10)))) return;
    if (kv.values().version("ahead") > static_cast<std::uint64_t>(each) + 3) throw std::runtime_error("too far ahead");
    kv.push("w", ones(small, 0));
  }
}

TEST(KvStoreAsync, AWorkerIsNoFurtherAheadThanTheStaleness) {
  const kv_ticket ticket(kv_kind::async, {.workers = 2, .staleness = 2});
  join_all(start(ticket, 2, push_ahead));
}

}  // namespace
}  // namespace muster::kv_store_test
