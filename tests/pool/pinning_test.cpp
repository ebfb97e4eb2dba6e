// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/pinning.hpp>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/cpu_list.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/effective_cpus.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/thread_pool.hpp>

#include "made_up_gpus.hpp"
#include "processes.hpp"
#include "refused_calls.hpp"
#include "temporary_directory.hpp"

namespace muster::pinning_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A made-up machine: its processors are those that this program may use, and some more.
class Pinning : public testing::Test {
protected:
  [[nodiscard]] std::vector<cpu_list> resolve(const pinning& made) const { return made.resolve(directory_.path()); }
  void node(unsigned number, const std::string& cpus) const {
    directory_.write("sys/devices/system/node/node" + std::to_string(number) + "/cpulist", cpus + "\n");
  }
  void nodes(const std::string& online) const { directory_.write("sys/devices/system/node/online", online + "\n"); }
  void core(const cpu_list& cpus) const {
    for (const auto cpu : cpus) {
      directory_.write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
                       describe(cpus) + "\n");
    }
  }
  static std::string why(const std::function<void()>& refused) {
    try {
      refused();
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::invalid_argument);
      return failure.what();
    }
    return "accepted";
  }

  const cpu_list mine_ = allowed_cpus();
  const unsigned foreign_ = mine_.back() + 1;
  test::temporary_directory directory_;
};

TEST_F(Pinning, ByDefaultNobodyIsBound) { EXPECT_THAT(resolve({}), IsEmpty()); }

TEST_F(Pinning, OneEachTakesEveryProcessorOnce) {
  std::vector<cpu_list> expected;
  for (const auto cpu : mine_) expected.push_back({cpu});
  EXPECT_EQ(resolve(pinning::one_each()), expected) << "each is a core";
}

TEST_F(Pinning, OneEachTakesTheSecondOfACoreLast) {
  if (mine_.size() < 2) GTEST_SKIP() << "this program may use one processor only";
  core({mine_[0], mine_[1]});
  const auto lists = resolve(pinning::one_each());
  EXPECT_EQ(lists.front(), cpu_list{mine_[0]});
  EXPECT_EQ(lists.back(), cpu_list{mine_[1]});
}

TEST_F(Pinning, NodesAreTakenInTurnAndThoseOfOthersLeftOut) {
  nodes("0-2");
  node(0, describe({mine_.front()}));
  node(1, "");
  node(2, describe({mine_.back(), foreign_}));
  EXPECT_THAT(resolve(pinning::node_each()), ElementsAre(cpu_list{mine_.front()}, cpu_list{mine_.back()}));
}

TEST_F(Pinning, WithoutNodesAllIsNear) { EXPECT_THAT(resolve(pinning::node_each()), ElementsAre(mine_)); }

TEST_F(Pinning, ToANodeMeansWhatOfItMayBeUsed) {
  node(3, describe({mine_.front(), foreign_}));
  EXPECT_THAT(resolve(pinning::to_node(3)), ElementsAre(cpu_list{mine_.front()}));
  EXPECT_THAT(why([&] { static_cast<void>(resolve(pinning::to_node(4))); }), HasSubstr("no NUMA node 4"));
}

TEST_F(Pinning, NearADeviceIsWhereItsBusSays) {
  directory_.write("sys/bus/pci/devices/0000:3b:00.0/local_cpulist", describe({mine_.back()}) + "\n");
  EXPECT_THAT(resolve(pinning::near_device("0000:3b:00.0")), ElementsAre(cpu_list{mine_.back()}));
  EXPECT_THAT(why([&] { static_cast<void>(resolve(pinning::near_device("3b"))); }), HasSubstr("'3b'"));
}

TEST_F(Pinning, ProcessorsThatMayNotBeUsedAreRefusedWithThoseThatMay) {
  const auto text = why([&] { static_cast<void>(resolve(pinning::to({{mine_.front()}, {foreign_}}))); });
  EXPECT_THAT(text, testing::AllOf(HasSubstr("'" + describe({foreign_}) + "'"), HasSubstr(describe(mine_))));
  EXPECT_NE(why([&] { pool({.workers = 1, .pin = pinning::to({{foreign_}})}); }), "accepted");
}

TEST_F(Pinning, WorkersRunWhereTheyAreBound) {
  const auto seen = [] { return allowed_cpus(); };
  pool pool({.workers = 2, .pin = pinning::to({{mine_.back()}, mine_})});
  EXPECT_EQ(pool.on(0).apply(seen), cpu_list{mine_.back()});
  EXPECT_EQ(pool.on(1).apply(seen), mine_);
  pool.resize(3);
  EXPECT_EQ(pool.on(2).apply(seen), cpu_list{mine_.back()}) << "in turn";
  EXPECT_EQ(allowed_cpus(), mine_) << "the program itself is not bound";
}

TEST_F(Pinning, WorkersWhoseProcessorsAreTakenFromTheProgramGoOnWithoutBeingBound) {
  const auto seen = [] { return allowed_cpus(); };
  const auto die = [] { ::raise(SIGKILL); };
  mutex guard;
  std::string log;
  {
    pool pool({.workers = 1, .pin = pinning::to({{mine_.back()}}), .log = [&](log_level, std::string_view message) {
                 const scoped_lock lock(guard);
                 log.append(message).append("\n");
               }});
    {
      const test::refused_calls taken("sched_setaffinity", EINVAL);
      for (int times = 0; times < 2; ++times) {
        EXPECT_THROW(pool.apply(die), worker_died);
        EXPECT_EQ(pool.apply(seen), mine_);
      }
    }
    EXPECT_THROW(pool.apply(die), worker_died);
    EXPECT_EQ(pool.apply(seen), cpu_list{mine_.back()}) << "they are there again";
  }
  const std::string told = "worker 0 of 'pool' cannot be bound to processors " + describe({mine_.back()});
  ASSERT_THAT(log, HasSubstr(told));
  EXPECT_EQ(log.find(told), log.rfind(told)) << "once";
}

// An OpenMP runtime or a database driver may have bound it.
TEST_F(Pinning, WorkersRunWhereTheProcessMayWhateverTheCallingThreadIsBoundTo) {
  if (mine_.size() < 2) GTEST_SKIP() << "this program may use one processor only";
  const auto seen = [] { return allowed_cpus(); };
  const auto threads = [] { return std::string(std::getenv("OMP_NUM_THREADS")); };
  const test::variable unset("OMP_NUM_THREADS");
  const auto all = std::to_string(effective_cpus());
  const affinity_scope one({mine_.back()});
  EXPECT_EQ(process_cpus(), mine_);
  EXPECT_EQ(std::to_string(effective_cpus()), all);
  pool first({.workers = 1});  // makes the thread that starts the workers of all
  EXPECT_EQ(first.apply(seen), mine_);
  EXPECT_EQ(first.apply(threads), all);
  first.resize(2);
  EXPECT_EQ(first.on(1).apply(seen), mine_);
  EXPECT_EQ(pool({}).workers().size(), effective_cpus());
  EXPECT_THAT(pool({.workers = 2, .pin = pinning::one_each()}).broadcast(seen),
              testing::UnorderedElementsAre(cpu_list{mine_[0]}, cpu_list{mine_[1]}));
  EXPECT_EQ(allowed_cpus(), cpu_list{mine_.back()}) << "the thread itself stays where it is";
}

TEST_F(Pinning, ThreadsOfPoolsRunWhereTheProcessMayWhateverTheCallingThreadIsBoundTo) {
  if (mine_.size() < 2) GTEST_SKIP() << "this program may use one processor only";
  const auto seen = [] { return allowed_cpus(); };
  const affinity_scope one({mine_.back()});
  thread_pool pool({});
  EXPECT_EQ(pool.size(), effective_cpus());
  EXPECT_THAT(pool.broadcast(seen), testing::Each(mine_));
  thread_pool bound({.as_caller = true});
  EXPECT_EQ(bound.size(), 1U);
  EXPECT_EQ(bound.apply(seen), cpu_list{mine_.back()});
}

TEST_F(Pinning, WorkersRunWhereTheCallingThreadMayWhenAskedTo) {
  if (mine_.size() < 2) GTEST_SKIP() << "this program may use one processor only";
  const auto seen = [] { return allowed_cpus(); };
  const auto threads = [] { return std::string(std::getenv("OMP_NUM_THREADS")); };
  const test::variable unset("OMP_NUM_THREADS");
  const affinity_scope one({mine_.back()});
  pool pool({.pin = pinning::as_caller()});
  EXPECT_EQ(pool.workers().size(), 1U);
  EXPECT_EQ(pool.apply(seen), cpu_list{mine_.back()});
  EXPECT_EQ(pool.apply(threads), "1");
}

// By taskset, say, before it calls muster::init.
TEST_F(Pinning, AProcessThatWasBoundOnPurposeKeepsToIt) {
  const auto child = test::spawn(1, [&](std::size_t) {
    const affinity_scope one({mine_.back()});
    init(0, nullptr);
    pool pool({.log = [](log_level, std::string_view) {}});
    return pool.workers().size() == 1 && pool.apply([] { return allowed_cpus(); }) == cpu_list{mine_.back()} ? 0 : 1;
  });
  EXPECT_EQ(child->wait(0), exit_status::exited(0));
}

TEST_F(Pinning, LibrariesAreToldOfAsManyThreads) {
  const auto threads = [] { return std::string(std::getenv("OMP_NUM_THREADS")); };
  pool pool({.workers = 1, .pin = pinning::to({{mine_.back()}})});
  EXPECT_EQ(pool.apply(threads), "1");
}

}  // namespace
}  // namespace muster::pinning_test
