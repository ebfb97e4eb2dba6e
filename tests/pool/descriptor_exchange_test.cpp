// SPDX-License-Identifier: BSL-1.0
// Workers of a pool hand descriptors to one another and to the program, whoever dies in between.
#include <muster/memory/detail/descriptor_exchange.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/base/memfd.hpp>
#include <muster/memory/detail/mapping.hpp>
#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/this_worker.hpp>

#include "open_files.hpp"
#include "processes.hpp"
#include "seed.hpp"

namespace muster::descriptor_exchange_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* label = "exchange-test";
constexpr std::size_t bytes = 4096;

using name_bits = std::uint64_t;

descriptor_exchange& exchange() { return domain::of_program()->descriptors(); }

// What goes with a descriptor, as an argument or a result.
struct anchor_value {
  shared_block block;

  static anchor_value make() { return {domain::of_program()->blocks().allocate_shared(100)}; }
  void save(output_archive& out) const { out.attach(block); }
  void load(input_archive& in) { block = in.take_attachment(); }
};

// ---- what workers do

unique_fd file_with(const std::string& content) {
  auto made = make_memfd(label, bytes);
  const mapping memory(made, bytes, mapping::inherit::no);
  std::copy(content.begin(), content.end(), reinterpret_cast<char*>(memory.bytes().data()));
  return made;
}

name_bits make_name() { return exchange().make_name().bits(); }

name_bits deposit_as(name_bits name, const std::string& content) {
  exchange().deposit(descriptor_name(name), file_with(content), {});
  return name;
}

name_bits deposit(const std::string& content) { return deposit_as(make_name(), content); }

// The anchor is the worker's own, and goes to whoever has called.
std::pair<name_bits, anchor_value> deposit_anchored(const std::string& content) {
  auto anchor = anchor_value::make();
  anchor.block.bytes()[8] = std::byte{7};
  const auto name = exchange().make_name();
  exchange().deposit(name, file_with(content), anchor.block);
  return {name.bits(), std::move(anchor)};
}

void withdraw(name_bits name) { exchange().withdraw(descriptor_name(name)); }

// Maps it, and reads; "nothing" if there is none.
std::string fetch_and_read(name_bits name) {
  const auto found = exchange().fetch(descriptor_name(name), deadline::never());
  if (!found) return "nothing";
  const mapping memory(*found, bytes, mapping::inherit::no);
  return reinterpret_cast<const char*>(memory.bytes().data());
}

std::string fetch_within(std::chrono::milliseconds time, name_bits name) {
  try {
    return exchange().fetch(descriptor_name(name), deadline::after(time)) ? "something" : "nothing";
  } catch (const error& failure) {
    return failure.code() == errc::timed_out ? "too late" : failure.what();
  }
}

std::size_t deposit_and_withdraw(std::size_t times) {
  const auto before = test::count_open("");
  for (std::size_t each = 0; each < times; ++each) withdraw(deposit("for a moment"));
  return test::count_open("") - before;
}

// How many of so many deposits were taken.
std::size_t flood(std::size_t times) {
  const auto file = file_with("one of many");
  std::size_t taken = 0;
  for (std::size_t each = 0; each < times; ++each) {
    try {
      exchange().deposit(exchange().make_name(), unique_fd(::dup(file.get())), {});
      ++taken;
    } catch (const error& failure) {
      if (failure.code() != errc::out_of_memory) throw;
    }
  }
  return taken;
}

// All that there is to do, until it is killed.
void churn(const std::vector<name_bits>& others, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<std::pair<name_bits, anchor_value>> mine;
  for (;;) {
    mine.push_back(deposit_anchored("churned"));
    static_cast<void>(fetch_within(0ms, mine[random() % mine.size()].first));
    static_cast<void>(fetch_within(1ms, others[random() % others.size()]));
    if (mine.size() < 20) continue;
    withdraw(mine.front().first);
    mine.erase(mine.begin());
  }
}

// ---- the tests

class DescriptorExchange : public testing::Test {
protected:
  [[nodiscard]] descriptor_store& store() { return domain_->deposits(); }
  // Nothing of what was handed over is left in this process.
  void expect_nothing_left() {
    EXPECT_TRUE(test::eventually([&] {
      const auto found = store().read_statistics();
      const auto memory = domain_->blocks().read_statistics();
      return found.kept + found.waiting + memory.holds + memory.live_blocks == 0 && test::count_open(label) == 0;
    })) << store().read_statistics().kept;
  }
  bool come_to_wait(std::size_t count) {
    return test::eventually([&] { return store().read_statistics().waiting == count; });
  }
  static void kill(const pool& workers, std::size_t which) {
    const auto before = workers.workers().at(which);
    ::kill(before.pid, SIGKILL);
    EXPECT_TRUE(test::eventually([&] { return workers.workers().at(which).incarnation > before.incarnation; }));
  }

  std::shared_ptr<domain> domain_ = domain::of_program();
};

TEST_F(DescriptorExchange, WhatAWorkerDepositsAnotherFetchesMapsAndReads) {
  {
    const pool workers({.workers = 2});
    const auto name = workers.on(0).apply(deposit, std::string("from the first"));
    EXPECT_EQ(workers.on(1).apply(fetch_and_read, name), "from the first");
    EXPECT_EQ(workers.on(0).apply(fetch_and_read, name), "from the first");
    EXPECT_EQ(fetch_and_read(name), "from the first");
    workers.on(0).apply(withdraw, name);
    EXPECT_EQ(workers.on(1).apply(fetch_and_read, name), "nothing");
  }
  expect_nothing_left();
}

TEST_F(DescriptorExchange, WorkersFetchWhatTheProgramDeposits) {
  const pool workers({.workers = 2});
  const auto name = deposit("from the program");
  EXPECT_THAT(workers.broadcast(fetch_and_read, name), testing::Each("from the program"));
  withdraw(name);
  EXPECT_EQ(workers.apply(fetch_and_read, name), "nothing");
}

TEST_F(DescriptorExchange, WithoutItsDepositorItIsThereForWhoHoldsTheAnchor) {
  {
    const pool workers({.workers = 2});
    auto [name, anchor] = workers.on(0).apply(deposit_anchored, std::string("of the dead"));
    kill(workers, 0);
    EXPECT_EQ(workers.on(1).apply(fetch_and_read, name), "of the dead");
    EXPECT_EQ(workers.on(0).apply(fetch_and_read, name), "of the dead") << "by its successor, too";
    EXPECT_EQ(fetch_and_read(name), "of the dead");
    anchor.block.reset();
    exchange().let_go(descriptor_name(name));
    EXPECT_EQ(workers.on(1).apply(fetch_and_read, name), "nothing");
    EXPECT_EQ(test::count_open(label), 0U);
  }
  expect_nothing_left();
}

TEST_F(DescriptorExchange, WhatAWorkerThatLeavesHasDepositedIsThereForWhoHoldsTheAnchor) {
  std::optional<std::pair<name_bits, anchor_value>> made;
  {
    const pool workers({.workers = 1});
    made = workers.apply(deposit_anchored, std::string("of one that left"));
  }
  EXPECT_EQ(fetch_and_read(made->first), "of one that left");
  made->second.block.reset();
  exchange().let_go(descriptor_name(made->first));
  expect_nothing_left();
}

name_bits deposited_by_this_process = 0;

TEST_F(DescriptorExchange, AWorkerThatLeavesMayWithdraw) {
  std::optional<std::pair<name_bits, anchor_value>> made;
  {
    const pool workers({.workers = 1, .finalizer = worker_task([] { withdraw(deposited_by_this_process); })});
    made = workers.apply([] {
      auto result = deposit_anchored("withdrawn at the end");
      deposited_by_this_process = result.first;
      return result;
    });
    EXPECT_EQ(fetch_and_read(made->first), "withdrawn at the end");
  }
  EXPECT_EQ(fetch_and_read(made->first), "nothing") << "though its anchor is held";
}

TEST_F(DescriptorExchange, WhenAWorkerDiesTheProgramIsShownItsAnchors) {
  std::atomic<int> shown = 0;
  const auto registration =
      store().on_depositor_death([&](const shared_block& anchor) { shown += static_cast<int>(anchor.bytes()[8]); });
  {
    const pool workers({.workers = 1});
    const auto made = workers.apply(deposit_anchored, std::string("of the dead"));
    kill(workers, 0);
    EXPECT_EQ(shown, 7);
    const auto count = *reinterpret_cast<const std::uint64_t*>(made.second.block.data());
    EXPECT_NE(count & descriptor_exchange::dead_count, 0U);
  }
  expect_nothing_left();
}

// ---- waiting

TEST_F(DescriptorExchange, AFetchWaitsForTheDeposit) {
  const pool workers({.workers = 2});
  const auto name = workers.on(0).apply(make_name);
  auto found = workers.on(1).apply_async(fetch_and_read, name);
  EXPECT_TRUE(come_to_wait(1));
  workers.on(0).apply(deposit_as, name, std::string("at last"));
  EXPECT_EQ(found.get(), "at last");
  EXPECT_TRUE(come_to_wait(0));
}

TEST_F(DescriptorExchange, AFetchFindsNothingWhenTheDepositorDies) {
  const pool workers({.workers = 2});
  const auto name = workers.on(0).apply(make_name);
  auto found = workers.on(1).apply_async(fetch_and_read, name);
  EXPECT_TRUE(come_to_wait(1));
  kill(workers, 0);
  EXPECT_EQ(found.get(), "nothing");
  EXPECT_EQ(workers.on(1).apply(fetch_and_read, name), "nothing") << "and at once from then on";
}

TEST_F(DescriptorExchange, OfWhoIsKilledWhileItWaitsNothingIsLeft) {
  {
    const pool workers({.workers = 2});
    const auto name = workers.on(0).apply(make_name);
    auto found = workers.on(1).apply_async(fetch_and_read, name);
    EXPECT_TRUE(come_to_wait(1));
    kill(workers, 1);
    EXPECT_THROW(static_cast<void>(found.get()), error);
    EXPECT_EQ(store().read_statistics().waiting, 0U);
    workers.on(0).apply(deposit_as, name, std::string("too late for that one"));
    EXPECT_EQ(workers.on(1).apply(fetch_and_read, name), "too late for that one");
  }
  expect_nothing_left();
}

TEST_F(DescriptorExchange, AFetchEndsAtItsDeadline) {
  const pool workers({.workers = 2});
  const auto name = workers.on(0).apply(make_name);
  EXPECT_EQ(workers.on(1).apply(fetch_within, 5ms, name), "too late");
  EXPECT_EQ(fetch_within(5ms, name), "too late");
  EXPECT_TRUE(come_to_wait(0));
}

TEST_F(DescriptorExchange, ThreadsOfAWorkerWaitForDifferentThings) {
  const pool workers({.workers = 2});
  const auto from_other = workers.on(1).apply(make_name);
  auto found = workers.on(0).apply_async(
      [](name_bits wanted) {
        std::array<std::string, 2> results;
        std::thread waits([&] { results[0] = fetch_and_read(wanted); });
        const auto own = make_name();
        std::thread waits_too([&] { results[1] = fetch_and_read(own); });
        deposit_as(own, "by another thread");
        waits_too.join();
        waits.join();
        return results;
      },
      from_other);
  workers.on(1).apply(deposit_as, from_other, std::string("by another process"));
  EXPECT_THAT(found.get(), testing::ElementsAre("by another process", "by another thread"));
}

std::thread fetches_meanwhile;
std::string fetched_meanwhile;

// A successor stands by: its main thread waits for the word to begin, and another for a descriptor.
TEST_F(DescriptorExchange, WhoStandsByMayFetchAndStillHearsThatItIsItsTurn) {
  const auto name = make_name();
  {
    const pool workers({.workers = 1,
                        .initializer = muster::bind_front(
                            [](name_bits wanted) {
                              fetches_meanwhile = std::thread([wanted] { fetched_meanwhile = fetch_and_read(wanted); });
                            },
                            name),
                        .finalizer = worker_task([] {
                          if (fetches_meanwhile.joinable()) fetches_meanwhile.join();
                        }),
                        .max_tasks_per_worker = 8});
    EXPECT_TRUE(come_to_wait(1));
    for (int task = 0; task < 7; ++task) workers.apply([] {});
    EXPECT_TRUE(come_to_wait(2)) << "the second process";
    deposit_as(name, "for both");
    workers.apply([] {});
    const auto [incarnation, found] = workers.apply([] {
      fetches_meanwhile.join();
      return std::pair(this_worker::incarnation(), fetched_meanwhile);
    });
    EXPECT_EQ(incarnation, 2U);
    EXPECT_EQ(found, "for both");
  }
  withdraw(name);
  expect_nothing_left();
}

// ---- many

TEST_F(DescriptorExchange, AThousandDepositsLeaveNoDescriptor) {
  {
    const pool workers({.workers = 1});
    workers.apply(deposit_and_withdraw, std::size_t{1});
    const auto before = test::count_open("");
    EXPECT_EQ(workers.apply(deposit_and_withdraw, std::size_t{1000}), 0U);
    EXPECT_EQ(workers.apply(fetch_and_read, name_bits{0}), "nothing");  // after the last withdrawal
    EXPECT_LE(test::count_open(""), before);
  }
  expect_nothing_left();
}

TEST_F(DescriptorExchange, AWorkerThatFloodsIsRefusedAndOthersAreServed) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto most = std::min<std::size_t>(4096, limit.rlim_cur / 2);
  {
    const pool workers({.workers = 2});
    EXPECT_EQ(workers.on(0).apply(flood, std::size_t{5000}), most);
    EXPECT_EQ(test::count_open(label), most);
    if (limit.rlim_cur / 2 > most) {
      EXPECT_EQ(workers.on(1).apply(fetch_and_read, workers.on(1).apply(deposit, std::string("of another"))),
                "of another");
    }
    kill(workers, 0);
    EXPECT_LE(test::count_open(label), 1U);
  }
  expect_nothing_left();
}

TEST_F(DescriptorExchange, KillsAtAnyInstantLeaveNothing) {
  std::minstd_rand random(test::seed());
  {
    // Some are killed before they have begun.
    const pool workers({.workers = 3, .quarantine_after = 0, .start_tries = 1000});
    const std::vector never = {make_name(), make_name()};  // are deposited
    std::vector<future<void>> tasks;
    for (int round = 0; round < 40; ++round) {
      const auto which = random() % 3;
      tasks.push_back(workers.on(which).apply_async(churn, never, static_cast<unsigned>(random())));
      test::work_for(std::chrono::microseconds(random() % 5000));
      kill(workers, which);
    }
    for (auto& each : tasks) {  // one that nobody had begun runs in the next process
      for (std::size_t which = 0; !each.ready(); which = (which + 1) % 3) kill(workers, which);
      EXPECT_THROW(each.get(), error);
    }
    EXPECT_EQ(workers.apply(fetch_and_read, workers.on(0).apply(deposit, std::string("after all"))), "after all");
  }
  expect_nothing_left();
}

}  // namespace
}  // namespace muster::descriptor_exchange_test
