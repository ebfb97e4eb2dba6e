// SPDX-License-Identifier: BSL-1.0
// Ranks that are killed or stopped while they are at an operation. Whoever is left is told, makes a group of those who
// are left, and goes on; and no memory is lost.
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "group_operations.hpp"
#include "group_support.hpp"
#include "memory_state.hpp"
#include "seed.hpp"
#include "soak_time.hpp"

namespace muster::group_kill_test {
namespace {

using namespace std::chrono_literals;
using test::operation;
using test::operation_size;
using test::rank_processes;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

constexpr std::size_t short_count = 16;
constexpr std::size_t long_count = 20'000;
constexpr auto never = 24h;  // who waits for so long is ended by the test's watchdog

void end_with_parent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

// How far the ranks have come; what the parent waits for.
struct progress {
  std::array<std::atomic<std::uint32_t>, 4> rounds{};
  std::atomic<std::uint32_t> told = 0;
  std::atomic<bool> stopped = false;  // one is, for good, or will be at once
  std::atomic<bool> late = false;     // so was a rank that nobody had stopped
};

void expect_right(group& in) {
  test::run_all_reduce(in, {.count = short_count, .round = 1});
  test::run_all_gather(in, {.count = long_count, .round = 2});
}

class GroupKill : public testing::Test {
protected:
  ~GroupKill() override { EXPECT_TRUE(test::is_all_free(*domain_)); }

  // At random times, but never before all have joined.
  static void wait_for_rounds(const progress& with, std::size_t ranks, std::uint32_t rounds) {
    EXPECT_TRUE(test::eventually([&] {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        if (with.rounds[rank] < rounds) return false;
      }
      return true;
    }));
  }

  std::shared_ptr<domain> domain_ = domain::of_program(
      {.arena_bytes = std::size_t{128} << 20U, .max_participants = 64, .max_blocks = 4096, .inherited = true});
};

// ---- each operation

class GroupKillIn : public GroupKill, public testing::WithParamInterface<operation> {
protected:
  static void kill_in(const operation_size& how, std::size_t victim, std::chrono::microseconds delay) {
    SCOPED_TRACE(testing::Message() << how.count << " elements, " << (how.is_async ? "asynchronous, " : "") << "rank "
                                    << victim << " killed");
    constexpr std::size_t ranks = 3;
    const test::shared<progress> with;
    rank_processes all(ranks, [&](group& mine) { run_rank(mine, how, victim, *with); }, {.timeout = never});
    wait_for_rounds(*with, ranks, 2);
    test::work_for(delay);
    all.kill(victim);
    all.end(victim);
    all.expect_all_end_well();
    EXPECT_EQ(with->told, ranks - 1);
  }

  static void run_rank(group& mine, operation_size how, std::size_t victim, progress& with) {
    end_with_parent();
    mine.barrier();
    const auto pid = mine.members()[victim].pid;
    try {
      for (;; ++how.round) {
        GetParam().run(mine, how);
        if (testing::Test::HasFailure()) return;
        ++with.rounds[mine.rank()];
      }
    } catch (const peer_lost& found) {
      expect_names(found, {.rank = victim, .pid = pid}, how.round, mine.size());
      ++with.told;
    }
    auto rest = mine.shrink();
    EXPECT_EQ(rest.size(), mine.size() - 1);
    expect_right(rest);
  }

  // What was being done, and who is gone: by its rank where that was being done.
  static void expect_names(const peer_lost& found, group_member victim, std::size_t round, std::size_t ranks) {
    const auto& what = GetParam();
    EXPECT_EQ(found.code(), errc::peer_lost);
    EXPECT_THAT(what.calls, Contains(found.operation()));
    EXPECT_THAT(found.what(), AllOf(HasSubstr(found.operation()), HasSubstr(std::to_string(victim.pid))));
    const bool is_in_part = what.rank_in_part != nullptr && found.operation() == what.calls[1];
    if (is_in_part) victim.rank = what.rank_in_part(victim.rank, ranks, round);
    EXPECT_THAT(found.lost(), Contains(victim)) << found.what();
  }
};

TEST_P(GroupKillIn, TheOthersAreToldAndGoOn) {
  std::mt19937 random(7);
  for (const auto count : {short_count, long_count}) {
    for (const bool is_async : {false, true}) {
      for (std::size_t victim = 0; victim < 3 && !HasFailure(); ++victim) {
        kill_in({.count = count, .is_async = is_async}, victim, std::chrono::microseconds(random() % 2000));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operation, GroupKillIn, testing::ValuesIn(test::operations),
                         [](const auto& given) { return given.param.name; });

// ---- shrink

TEST_F(GroupKill, OfWhoMakesOrJoinsTheGroupOfTheSurvivorsLeavesAGroupOfTheOthers) {
  std::mt19937 random(11);
  for (std::size_t round = 0; round < 60 && !HasFailure(); ++round) {
    const auto victim = round % 3;
    SCOPED_TRACE(testing::Message() << "round " << round << ", rank " << victim << " killed");
    const test::shared<progress> with;
    const auto run = [&](group& mine) {
      end_with_parent();
      mine.barrier();
      ++with->rounds[mine.rank()];
      EXPECT_THROW(for (;;) mine.barrier(), peer_lost);
      auto rest = mine.shrink();
      while (rest.size() > 2) {
        try {
          expect_right(rest);
        } catch (const peer_lost&) {
          rest = rest.shrink();
        }
      }
      expect_right(rest);
    };
    rank_processes all(4, run, {.timeout = never});
    wait_for_rounds(*with, 4, 1);
    all.kill(3);
    all.end(3);
    test::work_for(std::chrono::microseconds(random() % 1500));
    all.kill(victim);
    all.end(victim);
    all.expect_all_end_well();
  }
}

// ---- stopped, not dead

// Who is stopped in an operation, and what becomes of it.
struct stop {
  operation_size how;
  std::size_t whom = 0;
  bool goes_on = true;  // at last; else it is killed while it is stopped
};

// The groups' timeout. Where there is much to do, a rank that nobody has stopped may be late, too, and is missed as
// rightly: such a trial shows nothing, and is repeated with twice the patience.
constexpr std::chrono::milliseconds least_patience = 1s;
constexpr std::chrono::milliseconds most_patience = 16s;

class GroupStopIn : public GroupKill, public testing::WithParamInterface<operation> {
protected:
  // All three ranks repeat an operation. One is stopped for less than the timeout, and later for good.
  class trial {
  public:
    trial(const stop& what, std::chrono::milliseconds patience)
        : what_(what),
          patience_(patience),
          all_(ranks, [this](group& mine) { run_rank(mine, what_, *with_); }, {.timeout = patience}) {}

    void stop_it(std::chrono::microseconds delay) {
      SCOPED_TRACE(description());
      wait_for_rounds_or_late(2);
      test::work_for(delay);
      all_.freeze(what_.whom);
      test::work_for(patience_ / 20);
      all_.thaw(what_.whom);
      wait_for_rounds_or_late(with_->rounds[what_.whom] + 2);
      test::work_for(delay);
      with_->stopped = true;
      all_.freeze(what_.whom);
    }

    // Waits for the others, who go on, and then for the one that was stopped. False if another was late.
    [[nodiscard]] bool shows_something() {
      SCOPED_TRACE(description());
      std::array<exit_status, ranks> ends;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        if (rank != what_.whom) ends[rank] = all_.end(rank);
      }
      what_.goes_on ? all_.thaw(what_.whom) : all_.kill(what_.whom);
      ends[what_.whom] = all_.end(what_.whom);
      if (!what_.goes_on) ends[what_.whom] = exit_status::exited(0);
      const bool all_well = std::ranges::all_of(ends, &exit_status::success);
      if (with_->late || (all_well && with_->told == 0)) return false;
      EXPECT_THAT(ends, testing::Each(exit_status::exited(0)));
      return true;
    }

    [[nodiscard]] const stop& what() const { return what_; }

  private:
    static constexpr std::size_t ranks = 3;

    void wait_for_rounds_or_late(std::uint32_t rounds) {
      const auto has_come = [&](const auto& each) { return each >= rounds; };
      const auto first = with_->rounds.begin();
      EXPECT_TRUE(test::eventually([&] { return with_->late || std::all_of(first, first + ranks, has_come); }));
    }

    [[nodiscard]] testing::Message description() const {
      return testing::Message() << what_.how.count << " elements, " << (what_.how.is_async ? "asynchronous, " : "")
                                << "rank " << what_.whom << " stopped";
    }

    const stop what_;
    const std::chrono::milliseconds patience_;
    const test::shared<progress> with_;
    rank_processes all_;
  };

  // One for each, at once, since most of their time is spent waiting. Returns those that showed nothing.
  static std::vector<stop> try_all(const std::vector<stop>& stops, std::chrono::milliseconds patience) {
    std::mt19937 random(13);
    std::vector<std::unique_ptr<trial>> all;
    for (const auto& each : stops) {
      all.push_back(std::make_unique<trial>(each, patience));
      all.back()->stop_it(std::chrono::microseconds(random() % 2000));
    }
    std::vector<stop> again;
    for (const auto& each : all) {
      if (!each->shows_something()) again.push_back(each->what());
    }
    return again;
  }

  static void run_rank(group& mine, const stop& what, progress& with) {
    end_with_parent();
    mine.barrier({.timeout = never});
    const bool is_it = mine.rank() == what.whom;
    try {
      for (auto how = what.how;; ++how.round) {
        GetParam().run(mine, how);
        if (testing::Test::HasFailure()) return;
        ++with.rounds[mine.rank()];
      }
    } catch (const group_error& found) {
      if (!with.stopped) return note_lateness(found, with);
      if (is_it) return expect_left_out(mine, found);
      expect_late(mine, found, what.whom, with);
    }
    // Late messages break nothing, and what is late in a part of the group only that part.
    if (mine.is_whole()) {
      try {
        mine.barrier();
        ADD_FAILURE() << "rank " << what.whom << " was at the barrier";
      } catch (const group_error& found) {
        expect_late(mine, found, what.whom, with);
      }
    }
    EXPECT_FALSE(mine.is_whole());
    go_on_without_it(mine, with);
  }

  static void go_on_without_it(group& mine, progress& with) {
    try {
      auto rest = mine.shrink();
      if (rest.size() != 2) with.late = true;
      expect_right(rest);
    } catch (const group_error& found) {
      note_lateness(found, with);
    }
  }

  static void note_lateness(const group_error& found, progress& with) {
    EXPECT_EQ(found.code(), errc::timed_out) << found.what();
    if (found.code() == errc::timed_out) with.late = true;
  }

  // Who gives up first names the missing one. Or somebody who waits for it in turn, of messages. In a part of the group
  // who comes later may find that the first has left it.
  static void expect_late(const group& mine, const group_error& found, std::size_t victim, progress& with) {
    const bool was_in_part = mine.is_whole();
    EXPECT_TRUE(found.code() == errc::timed_out || (was_in_part && found.code() == errc::peer_lost)) << found.what();
    const auto pid = mine.members()[victim].pid;
    const auto& missing = found.missing();
    if (std::any_of(missing.begin(), missing.end(), [&](const auto& each) { return each.pid == pid; })) ++with.told;
  }

  // The others have broken the group, or left its part, by then.
  static void expect_left_out(group& mine, const group_error& found) {
    EXPECT_THAT(found.code(), testing::AnyOf(errc::timed_out, errc::peer_lost)) << found.what();
    EXPECT_FALSE(mine.is_whole());
    EXPECT_THROW(mine.barrier(), group_error);
    EXPECT_THROW(static_cast<void>(mine.shrink()), group_error);
  }
};

TEST_P(GroupStopIn, TheOthersWaitForItAndThenMissItAndGoOnAndItFindsThatOut) {
  // Nobody waits in vain for an asynchronous message but who says how long: the next test.
  const bool has_async = GetParam().run != test::run_messages;
  std::vector<stop> left = {{.how = {.count = short_count}, .whom = 0},
                            {.how = {.count = short_count, .is_async = has_async}, .whom = 1, .goes_on = false},
                            {.how = {.count = long_count}, .whom = 2},
                            {.how = {.count = long_count, .is_async = has_async}, .whom = 1},
                            {.how = {.count = long_count}, .whom = 0, .goes_on = false}};
  for (auto patience = least_patience; !left.empty() && !HasFailure(); patience *= 2) {
    ASSERT_LE(patience, most_patience) << "nobody missed the rank that was stopped, or everybody another";
    left = try_all(left, patience);
    if (!left.empty()) std::printf("%zu trials showed nothing: a rank that nobody had stopped was late\n", left.size());
    std::fflush(stdout);  // before the next fork
  }
}

INSTANTIATE_TEST_SUITE_P(Operation, GroupStopIn, testing::ValuesIn(test::operations),
                         [](const auto& given) { return given.param.name; });

TEST_F(GroupKill, AsynchronousMessagesOfWhoIsStoppedAreLateAndComeWhenItGoesOn) {
  const test::shared<progress> with;
  rank_processes all(2, [&](group& mine) {
    end_with_parent();
    mine.barrier();
    const auto other = 1 - mine.rank();
    if (mine.rank() == 1) {
      ::raise(SIGSTOP);
      ++with->rounds[1];
    }
    for (const auto count : {short_count, long_count}) {
      const auto own = test::floats(count, mine.rank() + 5);
      const auto into = test::floats(count, 0);
      const std::array works = {mine.irecv(into, other, 3), mine.isend(own, other, 3)};
      if (mine.rank() == 0 && with->told == 0) {
        EXPECT_FALSE(works[0].wait_for(20ms));
        EXPECT_FALSE(wait_any(std::span(works).first(1), deadline::after(20ms)).has_value());
        EXPECT_TRUE(mine.is_whole());
        ++with->told;
      }
      for (const auto& each : works) each.wait();
      test::expect_all(into, count, other + 5, "received");
    }
    mine.barrier();
  });
  EXPECT_TRUE(test::eventually([&] { return with->told == 1; }));
  const auto goes_on = [&] {
    all.thaw(1);  // it may have been slow to stop
    return with->rounds[1] == 1;
  };
  EXPECT_TRUE(test::eventually(goes_on));
  all.expect_all_end_well();
}

// ---- anything at any time

class storm {
public:
  explicit storm(unsigned seed) : random_(seed) {}

  void run_one() {
    const test::shared<progress> with;
    const auto seed = static_cast<std::uint32_t>(random_());
    rank_processes all(ranks, [&](group& mine) { run_rank(mine, seed, *with); }, options());
    EXPECT_TRUE(test::eventually([&] { return with->told == ranks; }));
    std::vector<std::size_t> left = {0, 1, 2, 3};
    while (left.size() > 1) {
      test::work_for(std::chrono::microseconds(random_() % 8000));
      const auto at_once = std::min<std::size_t>(1 + random_() % 4 / 3, left.size() - 1);
      std::vector<std::size_t> victims;
      for (std::size_t each = 0; each < at_once; ++each) {
        const auto which = left.begin() + static_cast<std::ptrdiff_t>(random_() % left.size());
        victims.push_back(*which);
        left.erase(which);
      }
      for (const auto each : victims) all.kill(each);
      for (const auto each : victims) all.end(each);
      killed += victims.size();
    }
    all.expect_all_end_well();
    for (const auto& each : with->rounds) operations += each;
    ++groups;
  }

  std::size_t groups = 0;
  std::size_t killed = 0;
  std::uint64_t operations = 0;

private:
  static constexpr std::size_t ranks = 4;

  group_options options() {
    return {.inline_bytes = random_() % 2 == 0 ? std::size_t{64} : std::size_t{4096},
            .spin = std::chrono::microseconds(random_() % 2 == 0 ? 0 : 20)};
  }

  static void run_rank(group& first, std::uint32_t seed, progress& with) {
    end_with_parent();
    const auto self = first.rank();
    first.barrier();
    ++with.told;
    std::optional<group> smaller;
    auto* mine = &first;
    for (std::uint64_t step = 0; mine->size() > 1 && !testing::Test::HasFailure();) {
      try {
        run_step(*mine, seed, step++);
        ++with.rounds[self];
      } catch (const peer_lost&) {
        auto rest = mine->shrink();
        smaller.emplace(std::move(rest));
        mine = &*smaller;
        step = 1'000'000 * (ranks - mine->size());
      }
    }
  }

  // The same of all ranks.
  static void run_step(group& mine, std::uint32_t seed, std::uint64_t step) {
    std::seed_seq mixed{std::uint64_t{seed}, step};
    std::minstd_rand random(mixed);
    const auto which = random() % test::operations.size();
    constexpr std::array<std::size_t, 4> counts = {1, 20, 700, 9'000};
    test::operations[which].run(
        mine, {.count = counts[random() % counts.size()], .is_async = random() % 3 == 0, .round = step});
  }

  std::mt19937 random_;
};

TEST_F(GroupKill, InAStormGroupsShrinkToOneAgainAndAgain) {
  storm all(test::seed());
  const auto until = deadline::after(test::soak_time(std::chrono::seconds(3)));
  while (!until.expired() && !HasFailure()) {
    all.run_one();
    EXPECT_TRUE(test::is_all_free(*domain_));
  }
  std::printf("%zu groups, %zu ranks killed, %llu operations\n", all.groups, all.killed,
              static_cast<unsigned long long>(all.operations));
  std::fflush(stdout);  // or each fork of a later test prints it again
}

}  // namespace
}  // namespace muster::group_kill_test
