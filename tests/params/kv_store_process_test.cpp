// SPDX-License-Identifier: BSL-1.0
// A key-value store of several processes: rounds, pushes alone, deaths.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/text.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/detail/kv_round.hpp>
#include <muster/params/kv_store.hpp>
#include <muster/pool/process.hpp>
#include <muster/queue/event.hpp>

#include "kv_support.hpp"

namespace muster::kv_store_test {
namespace {

using namespace std::chrono_literals;

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
  return kv.pull("w").at<const float>(0, 0);
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
  EXPECT_EQ(values.pull<tensor>("w").value.at<const float>(1, 2), undisturbed());
}

// A worker that is put in the place of a dead one finds the values, and is waited for again.
void push_for_another(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  kv.init("w", ones(small, 0));
  const bool is_second = kv.values().contains("dies");
  if (rank == 1 && !is_second) {
    kv.push("w", ones(small, 1));
    kv.values().push("dies", 1);
    event().wait();
  }
  if (rank == 0) {
    kv.push("w", ones(small, 1));
    if (!kv.values().wait_for("again", 1)) throw std::runtime_error("no other worker comes");
  } else {
    kv.values().push("again", 1);
  }
  const auto push_or_be_told = [&] {
    try {
      kv.push("w", ones(small, 3));
    } catch (const task_error& failure) {
      if (failure.code() != errc::peer_lost) throw;
      kv.push("w", ones(small, 3));
    }
  };
  push_or_be_told();
  require_all(kv.pull("w"), 6, "both");
}

TEST(KvStoreSync, ARankThatIsJoinedAnewGoesOn) {
  const kv_ticket ticket(kv_kind::sync, {.workers = 2, .owners = 1});
  auto all = start(ticket, 2, push_for_another);
  const store values(ticket.values());
  ASSERT_TRUE(values.wait_for("dies", 1));
  all[1].kill(SIGKILL);
  all[1].join();
  all[1] = process(push_for_another, ticket, 1);
  join_all(all);
}

// A worker that pushes a key twice before others push it once contributes once to each round.
void push_twice_at_once(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  kv.init("w", ones(small, 0));
  if (rank == 0) {
    auto first = kv.push_async("w", ones(small, 1));
    auto second = kv.push_async("w", ones(small, 2));
    kv.values().push("pushed", 1);
    first.get();
    second.get();
    return;
  }
  if (!kv.values().wait_for("pushed", 1)) throw std::runtime_error("not pushed");
  kv.push("w", ones(small, 10));
  require_all(kv.pull("w"), 11, "first");
  kv.push("w", ones(small, 10));
  require_all(kv.pull("w"), 12, "second");
}

TEST(KvStoreSync, AWorkerCountsOnceInARound) {
  const kv_ticket ticket(kv_kind::sync, {.workers = 2});
  join_all(start(ticket, 2, push_twice_at_once));
}

// Keys in any order, as long as they do not wait for one another.
void push_in_another_order(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  kv.init({"a", "b"}, {ones(small, 0), ones(small, 0)});
  const std::vector<store_key> order = rank == 0 ? std::vector<store_key>{"a", "b"} : std::vector<store_key>{"b", "a"};
  std::vector<future<void>> all;
  for (const auto& each : order) all.push_back(kv.push_async(each, ones(small, 1)));
  for (auto& each : all) each.get();
  require_all(kv.pull("a"), 2, "a");
  require_all(kv.pull("b"), 2, "b");
}

TEST(KvStoreSync, AsynchronousPushesOfKeysDoNotWaitForOneAnother) {
  const kv_ticket ticket(kv_kind::sync, {.workers = 2});
  join_all(start(ticket, 2, push_in_another_order));
}

// What holds the first one back is the other worker.
void push_by_priority(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  const std::vector<store_key> keys{"held", "low", "high"};
  kv.init(keys, {ones(small, 0), ones(small, 0), ones(small, 0)});
  if (rank == 0) {
    auto held = kv.push_async("held", ones(small));
    auto low = kv.push_async("low", ones(small));
    auto high = kv.push_async("high", ones(small), {.priority = 1});
    kv.values().push("pushed", 1);
    held.get();
    high.get();
    if (low.ready()) throw std::runtime_error("the one of low priority came first");
    kv.values().push("high came first", 1);
    return low.get();
  }
  if (!kv.values().wait_for("pushed", 1)) throw std::runtime_error("not pushed");
  kv.push({"held", "high"}, {ones(small), ones(small)});
  if (!kv.values().wait_for("high came first", 1)) throw std::runtime_error("not in order");
  kv.push("low", ones(small));
}

TEST(KvStoreSync, TheOneOfHigherPriorityThatWasPushedLastGoesFirst) {
  const kv_ticket ticket(kv_kind::sync, {.workers = 2, .window = 1});
  join_all(start(ticket, 2, push_by_priority));
}

// The order in which pushes come changes no bit.
void push_fractions(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  kv.init("w", ones(small, 0));
  kv.set_optimizer(adam{.rate = 0.1});
  kv.barrier();
  std::mt19937 random(static_cast<unsigned>(rank * 7919U + std::random_device()()));
  for (int round = 0; round < 10; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));  // not to wait: to come in any order
    kv.push("w", ones(small, 1.0F / static_cast<float>(3 * rank + static_cast<std::size_t>(round) + 1)));
  }
}

TEST(KvStoreSync, TheSameBitsInEveryRun) {
  std::vector<float> first;
  for (int run = 0; run < 5; ++run) {
    const kv_ticket ticket(kv_kind::sync, {.workers = 3, .owners = 1});
    join_all(start(ticket, 3, push_fractions));
    const auto found = store(ticket.values()).pull<tensor>("w").value.to_vector<float>();
    if (first.empty()) first = found;
    EXPECT_EQ(found, first);
  }
}

// Two of three make a round; the third is too late for one, and counts in the next.
void push_too_late(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  kv.init("w", ones(small, 0));
  kv.barrier();
  if (rank == 2 && !kv.values().wait_for("over", 2)) throw std::runtime_error("the round is not over");
  kv.push("w", ones(small, rank == 2 ? 100.0F : 1.0F));
  require_all(kv.pull("w"), 2, "of two");
  if (rank != 2) kv.values().push("over", 1);
  kv.barrier();
  if (rank == 1) return;
  kv.push("w", ones(small, 10));
  require_all(kv.pull("w"), 20, "of the two others");
}

TEST(KvStoreSync, WithEnoughPushesTheRoundIsOver) {
  const kv_ticket ticket(kv_kind::sync, {.workers = 3, .enough = 2});
  join_all(start(ticket, 3, push_too_late));
}

// Workers that wait for one another are told of which rounds.
void push_in_a_circle(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  kv.init({"a", "b"}, {ones(small, 0), ones(small, 0)});
  kv.set_timeout(20ms);
  const auto says_all = [](const std::string& said) {
    return said.find("has not been applied in time") != std::string::npos &&
           said.find("the round of 'a' has the pushes of workers 0 and waits for workers 1") != std::string::npos &&
           said.find("the round of 'b' has the pushes of workers 1 and waits for workers 0") != std::string::npos;
  };
  const std::vector<std::string> told{"first is told", "second is told"};
  while (!kv.values().contains(told[0]) || !kv.values().contains(told[1])) {
    if (says_all(text_of([&] { kv.push(rank == 0 ? "a" : "b", ones(small)); }))) kv.values().push(told[rank], 1);
  }
  kv.set_timeout(60s);
  kv.barrier();
  kv.push({"a", "b"}, {ones(small, 5), ones(small, 5)});
  require_all(kv.pull("a"), 10, "none of those that were late");
}

TEST(KvStoreSync, ATimeOutSaysWhichRoundsWaitForWhom) {
  const kv_ticket ticket(kv_kind::sync, {.workers = 2});
  join_all(start(ticket, 2, push_in_a_circle));
}

// An owner that has joined under a dead one's rank has no updater, until a worker gives it its own.
void push_to_a_new_owner(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  if (rank != 0) {
    kv.values().push("spare owners", rank);
    return kv.run();
  }
  kv.init("w", ones(small, 0));
  kv.set_updater(add_twice);
  kv.push("w", ones(small));
  kv.values().push("pushed", 1);
  if (!kv.values().wait_for("anew", 1)) throw std::runtime_error("there is no new owner");
  kv.push("w", ones(small));
  require_all(kv.pull("w"), 4, "twice");
}

TEST(KvStoreSync, ANewOwnerIsGivenTheUpdater) {
  const kv_ticket ticket(kv_kind::sync, {.workers = 1, .spare_owners = 1, .owners = 0});
  std::vector<process> all = start(ticket, 2, push_to_a_new_owner);
  const store values(ticket.values());
  ASSERT_TRUE(values.wait_for("pushed", 1));
  ASSERT_TRUE(values.wait_for("spare owners", 1));
  all[1].kill(SIGKILL);
  all[1].join();
  all[1] = process(push_to_a_new_owner, ticket, 1);
  ASSERT_TRUE(values.wait_for("spare owners", 2));
  values.push(std::string("\1o'w"), detail::kv_ownership{.rank = 1, .incarnation = 2});
  values.push("anew", 1);
  join_all(all);
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

// A value is replaced by one of another form while a round is open.
void push_to_another_form(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  kv.init("w", ones(small, 0));
  if (rank == 0) {
    auto first = kv.push_async("w", ones(small));
    kv.values().push("pushed", 1);
    if (text_of([&] { first.get(); }).find("'w'") == std::string::npos) throw std::runtime_error("it was applied");
    kv.push("w", ones(odd));
  } else {
    if (!kv.values().wait_for("pushed", 1)) throw std::runtime_error("not pushed");
    kv.values().push("w", ones(odd, 0));
    try {
      kv.push("w", ones(odd));
    } catch (const error&) {  // the other one's was in that round
      kv.push("w", ones(odd));
    }
  }
  kv.barrier();
  require_all(kv.pull("w"), 2, "of the new form");
}

TEST(KvStoreSync, ARoundOfGradientsThatFitNoMoreIsRefused) {
  const kv_ticket ticket(kv_kind::sync, {.workers = 2, .owners = 1});
  join_all(start(ticket, 2, push_to_another_form));
}

}  // namespace
}  // namespace muster::kv_store_test
