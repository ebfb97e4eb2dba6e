// SPDX-License-Identifier: BSL-1.0
// Pools whose workers are pinned to devices of a made-up machine: nobody here makes a call of CUDA's.
#include <muster/pool/pool.hpp>

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/detail/mutex.hpp>
#include <muster/base/text.hpp>
#include <muster/pool/ctx_pool.hpp>
#include <muster/pool/process.hpp>

#include "made_up_gpus.hpp"
#include "processes.hpp"
#include "waiting_tasks.hpp"

namespace muster::pinned_worker_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto first = device::cuda(0);
constexpr auto second = device::cuda(1);
constexpr auto third = device::cuda(2);

std::string value_of(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr ? value : "unset";
}
std::string visible() { return value_of("CUDA_VISIBLE_DEVICES"); }
std::string own_device() { return text(this_worker::device()); }

class PinnedWorker : public testing::Test {
protected:
  PinnedWorker() { machine_.add_three(); }

  [[nodiscard]] pool_options options(const device_choice& devices, unsigned workers = 0) const {
    auto made = test::quiet(workers);
    made.devices = devices.on_machine(machine_.root());
    return made;
  }

  test::made_up_gpus machine_;
  const test::variable visible_{"CUDA_VISIBLE_DEVICES"};
  const test::variable order_{"CUDA_DEVICE_ORDER"};
  const test::variable threads_{"OMP_NUM_THREADS"};
};

TEST_F(PinnedWorker, SeesItsOwnDeviceFirstAndItsPeersBehindIt) {
  pool pool(options({first, second, third}, 3));
  EXPECT_THAT(pool.broadcast(visible), ElementsAre("0,1,2", "1,2,0", "2,0,1"));
  EXPECT_THAT(pool.broadcast(own_device), ElementsAre("cuda:0", "cuda:1", "cuda:2"));
  EXPECT_EQ(pool.apply(value_of, std::string("CUDA_DEVICE_ORDER")), "PCI_BUS_ID");
  EXPECT_EQ(visible(), "unset") << "the program itself sees what it saw";
}

TEST_F(PinnedWorker, OneForEachDeviceUnlessSaidOtherwise) {
  pool all(options(device_choice::automatic()));
  EXPECT_EQ(all.size(), 3U);
  pool pool(options({third, first}));
  EXPECT_THAT(pool.broadcast(own_device), ElementsAre("cuda:2", "cuda:0"));
  pool.resize(1);
  pool.resize(0);
  EXPECT_EQ(pool.size(), 2U);
}

TEST_F(PinnedWorker, SeveralShareADeviceInTurn) {
  pool pool(options({first, third}, 4));
  EXPECT_THAT(pool.broadcast(visible), ElementsAre("0,2", "2,0", "0,2", "2,0"));
}

TEST_F(PinnedWorker, TheVariableOfTheProgramIsReplacedAndNotRepeated) {
  visible_.set("2,1");
  order_.set("PCI_BUS_ID");
  pool pool(options({first, second}));
  EXPECT_THAT(pool.broadcast(visible), ElementsAre("2,1", "1,2"));
  const auto count = [](const std::string& name) {
    int found = 0;
    for (char** entry = environ; *entry != nullptr; ++entry) found += std::string(*entry).starts_with(name) ? 1 : 0;
    return found;
  };
  EXPECT_EQ(pool.apply(count, std::string("CUDA_VISIBLE_DEVICES=")), 1);
  EXPECT_EQ(pool.apply(count, std::string("CUDA_DEVICE_ORDER=")), 1);
}

TEST_F(PinnedWorker, AReplacementGetsWhatItsPredecessorHad) {
  pool pool(options({first, second}));
  EXPECT_THROW(pool.on(1).apply([] { ::raise(SIGKILL); }), worker_died);
  EXPECT_EQ(pool.on(1).apply([] { return this_worker::incarnation(); }), 2U);
  EXPECT_EQ(pool.on(1).apply(visible), "1,0");
  EXPECT_EQ(pool.on(1).apply(own_device), "cuda:1");
}

TEST_F(PinnedWorker, SoDoesASuccessor) {
  auto made = options({first, second});
  made.max_tasks_per_worker = 16;
  pool pool(made);
  for (int each = 0; each < 32; ++each) ASSERT_EQ(pool.on(1).apply(visible), "1,0");
  EXPECT_EQ(pool.on(1).apply([] { return this_worker::incarnation(); }), 3U);
}

TEST_F(PinnedWorker, NewOnesOfALargerPoolGetTheirsInTurn) {
  pool pool(options({first, second, third}, 1));
  pool.resize(5);
  EXPECT_THAT(pool.broadcast(own_device), ElementsAre("cuda:0", "cuda:1", "cuda:2", "cuda:0", "cuda:1"));
}

TEST_F(PinnedWorker, IsListedWithItsDevice) {
  pool pool(options({first, second}));
  const auto listed = pool.workers();
  EXPECT_EQ(listed.at(0).device, first);
  EXPECT_EQ(listed.at(1).device, second);
  EXPECT_EQ(pool.apply([](int x) { return x; }, 3), 3);
}

TEST_F(PinnedWorker, WithoutAChoiceNobodyHasADevice) {
  visible_.set("1");
  pool pool({.workers = 1});
  EXPECT_EQ(pool.apply(visible), "1");
  EXPECT_EQ(pool.apply(own_device), "cpu");
  EXPECT_EQ(pool.workers()[0].device, device::cpu());
  EXPECT_EQ(this_worker::device(), device::cpu()) << "in the program";
}

TEST_F(PinnedWorker, ContextsAreMadeWithTheDeviceAtHand) {
  ctx_pool<std::string> pool(visible, options({first, second}));
  EXPECT_EQ(pool.on(1).apply([](const std::string& context) { return context; }), "1,0");
}

TEST_F(PinnedWorker, AProcessHasTheFirstOfItsChoice) {
  const auto check = [](const std::string& wanted) {
    const auto found = own_device() + " of " + visible();
    if (found != wanted) throw std::runtime_error(found);
  };
  const process one({.devices = device_choice({second, third}).on_machine(machine_.root())}, check,
                    std::string("cuda:1 of 1,2"));
  one.join();
  EXPECT_NO_THROW(one.watch());
}

// ---- processors

TEST_F(PinnedWorker, RunsNearItsDeviceAndSharesTheProcessorsThere) {
  const auto mine = allowed_cpus();
  if (mine.size() < 2) GTEST_SKIP() << "this program may use one processor only";
  machine_.place("0000:1b:00.0", {mine.front()});
  pool pool(options({first, second}, 4));
  EXPECT_THAT(pool.broadcast(allowed_cpus), ElementsAre(cpu_list{mine.front()}, mine, cpu_list{mine.front()}, mine));
  EXPECT_EQ(pool.on(2).apply(value_of, std::string("OMP_NUM_THREADS")), "1");
}

TEST_F(PinnedWorker, RunsWhereItIsToldIfItIsTold) {
  const auto mine = allowed_cpus();
  if (mine.size() < 2) GTEST_SKIP() << "this program may use one processor only";
  machine_.place("0000:1b:00.0", {mine.front()});
  auto made = options({first});
  made.pin = pinning::to({{mine.back()}});
  EXPECT_EQ(pool(made).apply(allowed_cpus), cpu_list{mine.back()});
  made.pin = pinning::to({mine});
  EXPECT_EQ(pool(made).apply(allowed_cpus), mine);
}

// ---- errors

TEST_F(PinnedWorker, TheErrorOfItsDeathNamesTheDevice) {
  pool pool(options({first, second}));
  try {
    pool.on(1).apply([] { ::raise(SIGKILL); });
    ADD_FAILURE();
  } catch (const worker_died& death) {
    EXPECT_EQ(death.info().place().device, second);
    EXPECT_THAT(death.what(), HasSubstr("worker 1 on cuda:1 (process "));
  }
  const auto found = pool.collect_errors().map(
      [](int x) {
        if (x == 2) ::raise(SIGKILL);
        return x;
      },
      std::vector{1, 2, 3});
  EXPECT_THAT(found[1].error().describe(), testing::ContainsRegex("worker [01] on cuda:[01] "));
}

TEST_F(PinnedWorker, TheErrorOfATaskNamesTheDevice) {
  pool pool(options({first, second}));
  const auto failing = [] { throw std::runtime_error("no room"); };
  const auto found = pool.on(1).apply_async(failing).get_result();
  EXPECT_EQ(found.error().place().device, second);
}

TEST_F(PinnedWorker, TheErrorOfACallThatATaskMakesNamesTheDevice) {
  pool pool(options({second}));
  const auto outer = [] {
    try {
      this_pool::apply([] { throw std::runtime_error("no room"); });
    } catch (const std::exception& failure) {
      return text(remote_info(failure)->place().device);
    }
    return std::string("nothing thrown");
  };
  EXPECT_EQ(pool.apply(outer), "cuda:1");
}

TEST_F(PinnedWorker, AStartThatFailsNamesTheDevice) {
  auto made = options({first, second});
  made.initializer = [] {
    if (this_worker::device() == device::cuda(1)) throw std::runtime_error("no context");
  };
  made.start_tries = 1;
  made.wait_for_start = false;
  pool pool(made);
  try {
    pool.started().get();
    while (true) pool.on(1).apply([] {});
  } catch (const error& failure) {
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("on cuda:1"), HasSubstr("no context")));
  }
}

TEST_F(PinnedWorker, WhatIsLoggedOfItNamesTheDevice) {
  mutex guard;
  std::string log;
  auto made = options({first, second});
  made.log = [&](log_level, std::string_view message) {
    const scoped_lock lock(guard);
    log += message;
  };
  {
    pool pool(made);
    const event began;
    auto late = pool.on(1).with({.timeout = std::chrono::milliseconds(20)}).apply_async(test::run_for_ever, began);
    EXPECT_EQ(late.get_result().error(), errc::timed_out);
  }
  EXPECT_THAT(log, HasSubstr("worker 1 of 'pool' on cuda:1 (process "));
}

TEST_F(PinnedWorker, ADeviceThatIsNotThereIsAnErrorOfTheConstructor) {
  EXPECT_THROW(pool{options({device::cuda(3)})}, error);
  EXPECT_THROW(pool({.devices = device_choice::automatic().on_machine("/nonexistent")}), error);
}

}  // namespace
}  // namespace muster::pinned_worker_test
