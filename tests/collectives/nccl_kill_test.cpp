// SPDX-License-Identifier: BSL-1.0
// Ranks that are killed or stopped while devices are at an operation. Whoever is left is told, makes a group of those
// who are left, and goes on.
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <random>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/cuda/cuda_device.hpp>
#include <muster/memory/domain.hpp>

#include "group_operations.hpp"
#include "memory_state.hpp"
#include "nccl_support.hpp"

namespace muster::nccl_kill_test {
namespace {

using namespace std::chrono_literals;
using test::operation;
using test::operation_size;
using test::rank_processes;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

constexpr std::size_t ranks = 3;
constexpr std::size_t long_count = 50'000;
constexpr auto soon = 30s;  // of a timeout of a minute

struct progress {
  std::array<std::atomic<std::uint32_t>, ranks> rounds{};
  std::atomic<std::uint32_t> told = 0;
};

class NcclKill : public test::nccl_test {
protected:
  ~NcclKill() override { EXPECT_TRUE(test::is_all_free(*domain_)); }

  static void wait_for_rounds(const progress& with, std::uint32_t rounds) {
    EXPECT_TRUE(test::eventually(
        [&] { return std::ranges::all_of(with.rounds, [&](const auto& each) { return each >= rounds; }); }));
  }

  // Makes a group of those who are left. Of neither does anything stay on the device.
  static void go_on_without_one(group& all, device there) {
    {
      auto before = std::move(all);
      auto rest = before.shrink();
      EXPECT_EQ(rest.size(), ranks - 1);
      expect_goes_on(rest, there);
    }
    expect_nothing_held(there);
    if (is_fake()) {
      EXPECT_EQ(test::fake_nccl().live(), 0U);
    }
  }

  static void expect_nothing_held(device there) {
    const auto device = cuda_device::open(there);
    device->trim();
    EXPECT_EQ(device->memory().held_bytes, 0U);
  }

  static void expect_goes_on(group& rest, device there) {
    test::run_all_reduce(rest, {.count = 16, .round = 1, .where = there});
    test::run_all_gather(rest, {.count = long_count, .round = 2, .where = there});
    EXPECT_TRUE(rest.way_of_devices().is_direct) << rest.way_of_devices().how;
  }

  std::shared_ptr<domain> domain_ = domain::of_program(
      {.arena_bytes = std::size_t{128} << 20U, .max_participants = 64, .max_blocks = 4096, .inherited = true});
};

class NcclKillIn : public NcclKill, public testing::WithParamInterface<operation> {
protected:
  // How the victim ends itself, if it is not the parent that does it.
  using device_rank = std::function<void(group& mine, std::size_t round)>;

  static void run_rank(group& mine, operation_size how, std::size_t victim, progress& with, const device_rank& before) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    how.where = test::take_device(mine);
    how.is_into = true;
    mine.barrier();
    const auto pid = mine.members()[victim].pid;
    try {
      for (;; ++how.round) {
        before(mine, how.round);
        GetParam().run(mine, how);
        if (testing::Test::HasFailure()) return;
        ++with.rounds[mine.rank()];
      }
    } catch (const peer_lost& found) {
      expect_names(found, {.rank = victim, .pid = pid}, how.round);
      ++with.told;
    }
    go_on_without_one(mine, how.where);
  }

  static void expect_names(const peer_lost& found, group_member victim, std::size_t round) {
    const auto& what = GetParam();
    EXPECT_THAT(what.calls, Contains(found.operation()));
    EXPECT_THAT(found.what(), AllOf(HasSubstr(found.operation()), HasSubstr(std::to_string(victim.pid))));
    const bool is_in_part = what.rank_in_part != nullptr && found.operation() == what.calls[1];
    if (is_in_part) victim.rank = what.rank_in_part(victim.rank, ranks, round);
    EXPECT_THAT(found.lost(), Contains(victim)) << found.what();
  }

  static void expect_others_told(rank_processes& all, std::size_t victim, const progress& with) {
    all.end(victim);
    const auto until = deadline::after(soon);
    all.expect_all_end_well();
    EXPECT_FALSE(until.expired()) << "they were told by the timeout";
    EXPECT_EQ(with.told, ranks - 1);
  }
};

TEST_P(NcclKillIn, AtAnyTimeTheOthersAreToldAndGoOn) {
  std::mt19937 random(7);
  for (const bool is_async : {false, true}) {
    for (std::size_t victim = 0; victim < ranks && !HasFailure(); ++victim) {
      SCOPED_TRACE(testing::Message() << "rank " << victim << (is_async ? ", asynchronous" : ""));
      const test::shared<progress> with;
      rank_processes all(ranks, [&](group& mine) {
        run_rank(mine, {.count = long_count, .is_async = is_async}, victim, *with, [](group&, std::size_t) {});
      });
      wait_for_rounds(*with, 2);
      test::work_for(std::chrono::microseconds(random() % 20'000));
      all.kill(victim);
      expect_others_told(all, victim, *with);
    }
  }
}

// With some of its elements under way, and some not.
TEST_P(NcclKillIn, InTheMiddleOfItsElementsTheOthersAreToldAndGoOn) {
  if (!is_fake()) GTEST_SKIP() << "NCCL is the real one, which does not kill when it is asked to";
  if (GetParam().run == test::run_barrier || GetParam().run == test::run_messages) return;  // not by devices
  for (std::size_t victim = 0; victim < ranks && !HasFailure(); ++victim) {
    for (const int pieces : {0, 5}) {
      SCOPED_TRACE(testing::Message() << "rank " << victim << " killed after " << pieces << " pieces");
      const test::shared<progress> with;
      rank_processes all(ranks, [&](group& mine) {
        run_rank(mine, {.count = long_count}, victim, *with, [&](group& of, std::size_t round) {
          if (of.rank() == victim && round == 2) test::fake_nccl().fail("chunk", ncclInternalError, pieces);
        });
      });
      expect_others_told(all, victim, *with);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operation, NcclKillIn, testing::ValuesIn(test::operations),
                         [](const auto& given) { return given.param.name; });

TEST_F(NcclKill, WhileTheyJoinTheOthersAreToldAndGoOn) {
  std::mt19937 random(5);
  for (std::size_t round = 0; round < 6 && !HasFailure(); ++round) {
    const auto victim = round % ranks;
    const test::shared<progress> with;
    rank_processes all(ranks, [&](group& mine) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const auto there = test::take_device(mine);
      static_cast<void>(cuda_device::open(there));  // which takes long
      mine.barrier();
      ++with->rounds[mine.rank()];
      if (mine.rank() == victim && round % 2 == 0) ::raise(SIGKILL);
      try {
        const auto own = test::floats(1000, 1, there);
        for (;;) mine.all_reduce(own);
      } catch (const peer_lost&) {
        ++with->told;
      }
      go_on_without_one(mine, there);
    });
    wait_for_rounds(*with, 1);
    test::work_for(std::chrono::microseconds(random() % 3000));
    all.kill(victim);
    all.end(victim);
    all.expect_all_end_well();
    EXPECT_EQ(with->told, ranks - 1);
  }
}

// What its receiver was to read is a copy.
TEST_F(NcclKill, AMessageToADeadRankKeepsNothingOnTheDeviceWhileItsGroupLasts) {
  rank_processes all(2, [](group& mine) {
    const auto there = test::take_device(mine);
    const auto told = test::floats(1, 1, device::cpu());
    if (mine.rank() == 1) {
      mine.recv(told, 0, 4);
      ::raise(SIGKILL);
    }
    const auto sent = mine.isend(test::floats(long_count, 1, there), 1, 3);
    mine.send(told, 1, 4);
    EXPECT_THROW(sent.wait(), peer_lost);
    expect_nothing_held(there);
  });
  EXPECT_EQ(all.end(1).signal(), SIGKILL);
  all.expect_all_end_well();
}

TEST_F(NcclKill, OneThatIsStoppedIsMissedAtTheDeadlineAndTheOthersGoOn) {
  constexpr std::size_t victim = 1;
  const test::shared<progress> with;
  rank_processes all(ranks,
                     [&](group& mine) {
                       ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                       const auto there = test::take_device(mine);
                       mine.barrier({.timeout = 30s});
                       const auto pid = mine.members()[victim].pid;
                       try {
                         for (std::size_t round = 0;; ++round) {
                           test::run_all_reduce(mine, {.count = long_count, .round = round, .where = there});
                           ++with->rounds[mine.rank()];
                         }
                       } catch (const group_error& found) {
                         EXPECT_EQ(found.code(), errc::timed_out) << found.what();
                         const auto& missing = found.missing();
                         if (std::ranges::any_of(missing, [&](const auto& each) { return each.pid == pid; }))
                           ++with->told;
                       }
                       go_on_without_one(mine, there);
                     },
                     {.timeout = 3s});
  wait_for_rounds(*with, 2);
  all.freeze(victim);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(all.end(rank).code(), 0);
  }
  EXPECT_GE(with->told, 1U);
  all.kill(victim);
  all.end(victim);
}

}  // namespace
}  // namespace muster::nccl_kill_test
