// SPDX-License-Identifier: BSL-1.0
// Several ranks of a call fail: the error is that of the first, and has the others behind it. No rank fails before the
// one before it has, and that is seen in /proc or by a group, never waited for with a clock.
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <muster/collectives/group.hpp>

#include "leak_check.hpp"
#include "processes.hpp"
#include "world_support.hpp"

namespace muster::first_failure_test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int rounds = 10;

/// A world of three ranks, whoever the caller is.
template <class Test>
void in_worlds_of_three(const Test& test) {
  for (const auto who : {test::caller::first, test::caller::last, test::caller::none}) {
    SCOPED_TRACE(testing::Message() << "caller " << static_cast<int>(who));
    auto options = test::options_for(3, who);
    options.grace = 30s;
    world w(options);
    test(w);
  }
}

/// What the function's ranks can see of one another: which have come, which have begun to fail, and their processes.
struct stage {
  tensor begun;
  std::vector<int> pids;

  // A call replaces ranks that are dead.
  explicit stage(world& w) : begun(tensor::zeros<std::int64_t>({w.ranks() + 1})) {
    w.function([] {})();
    for (const auto pid : w.pids()) pids.push_back(pid == 0 ? ::getpid() : pid);
  }
};

void note_beginning(const tensor& begun, int rank) {
  std::atomic_ref(begun.span<std::int64_t>()[static_cast<std::size_t>(rank)]).store(1);
}

// A rank that has not begun with the call leaves it unseen when another one fails.
void await_all(const tensor& begun) {
  const auto seen = begun.span<std::int64_t>();
  const auto ranks = static_cast<std::int64_t>(seen.size()) - 1;
  std::atomic_ref(seen.back()).fetch_add(1);
  if (!test::eventually([&] { return std::atomic_ref(seen.back()).load() == ranks; })) {
    throw std::logic_error("a rank did not come");
  }
}

// A rank that has begun to fail sleeps only when it has answered.
void await_failure(const tensor& begun, int rank, const std::vector<int>& pids) {
  const auto index = static_cast<std::size_t>(rank);
  const auto has_failed = [&] {
    return std::atomic_ref(begun.span<std::int64_t>()[index]).load() != 0 && test::sleeps_on_futex(pids[index]);
  };
  if (!test::eventually(has_failed)) throw std::logic_error("a rank did not fail");
}

// Until the kernel has let go of it, as its parent has.
void await_death(int pid) {
  if (!test::eventually([&] { return ::kill(pid, 0) == -1; })) throw std::logic_error("a rank did not die");
}

[[noreturn]] void throw_as(const rank_context& context) {
  throw std::range_error("too much in rank " + std::to_string(context.rank));
}

std::vector<std::size_t> others_of(const rank_error& failure) {
  std::vector<std::size_t> ranks;
  for (const auto& each : failure.others()) ranks.push_back(each.rank);
  return ranks;
}

/// The types of what the others threw.
std::vector<std::string> types_behind(const rank_error& failure) {
  std::vector<std::string> types;
  for (const auto& each : failure.others()) types.push_back(each.info.type_name());
  return types;
}

bool is_range_error_nested_in(const std::exception& failure) {
  try {
    std::rethrow_if_nested(failure);
  } catch (const std::range_error&) {
    return true;
  } catch (...) {
    return false;
  }
  return false;
}

struct caught : rank_error {
  explicit caught(const rank_error& failure, bool nested = false) : rank_error(failure), has_range_error(nested) {}
  bool has_range_error;  ///< nested
};

template <class Call>
caught failure_of(const Call& call) {
  try {
    call();
  } catch (const rank_error& failure) {
    return caught(failure, is_range_error_nested_in(failure));
  } catch (const std::exception& failure) {
    ADD_FAILURE() << "another exception: " << failure.what();
    return caught(rank_error({}, "", 99, ""));
  }
  ADD_FAILURE() << "nothing was thrown";
  return caught(rank_error({}, "", 99, ""));
}

void fail_in_order(const rank_context& context, const std::vector<int>& order, const tensor& begun,
                   const std::vector<int>& pids) {
  const int own = static_cast<int>(context.rank);
  const auto place = std::ranges::find(order, own);
  await_all(begun);
  if (place == order.end()) return;
  if (place != order.begin()) await_failure(begun, *(place - 1), pids);
  note_beginning(begun, own);
  throw_as(context);
}

std::vector<std::size_t> behind_first(const std::vector<int>& order) { return {order.begin() + 1, order.end()}; }

TEST(FirstFailure, TheRankThatThrewFirstIsReportedAndTheOthersBehindItInOrder) {
  in_worlds_of_three([](world& w) {
    auto f = w.function(fail_in_order, whole("order", "begun", "pids"), named("fails"));
    std::vector<int> order = {0, 1, 2};
    do {
      for (const bool all : {false, true}) {
        auto failing = order;
        if (!all) failing.pop_back();
        const stage s(w);
        const auto failure = failure_of([&] { f(failing, s.begun, s.pids); });
        EXPECT_EQ(failure.rank(), static_cast<std::size_t>(failing[0]));
        EXPECT_EQ(others_of(failure), behind_first(failing));
        EXPECT_THAT(types_behind(failure), Each("std::range_error"));
        EXPECT_TRUE(failure.has_range_error);
        const auto said = [](int rank) { return "too much in rank " + std::to_string(rank); };
        const std::string text = failure.what();
        EXPECT_LT(text.find(said(failing[0])), text.find(said(failing[1]))) << text;
        EXPECT_THAT(text, AllOf(HasSubstr(said(failing[0])), HasSubstr(said(failing[1])), HasSubstr("'fails'")));
      }
    } while (std::ranges::next_permutation(order).found);
    f(std::vector<int>(), tensor::zeros<std::int64_t>({4}), std::vector<int>());
    EXPECT_EQ(w.replaced_ranks(), 0U);
  });
}

TEST(FirstFailure, ALongListIsCutShortInTheTextAlone) {
  world w({.ranks = 6, .caller_computes = false, .grace = 30s});
  const stage s(w);
  const std::vector<int> order = {5, 4, 3, 2, 1, 0};
  const auto failure =
      failure_of([&] { w.function(fail_in_order, whole("order", "begun", "pids"))(order, s.begun, s.pids); });
  EXPECT_EQ(others_of(failure), behind_first(order));
  EXPECT_THAT(failure.what(), AllOf(HasSubstr("in rank 5"), HasSubstr("in rank 2"), HasSubstr("2 more"),
                                    testing::Not(HasSubstr("in rank 1"))));
}

// ---- with a group

enum class in_group : int { barrier, wrapped, abort, reduction };

[[noreturn]] void wrap_failure(group& mine) {
  try {
    mine.barrier();
  } catch (...) {
    std::throw_with_nested(std::runtime_error("the step failed"));
  }
  throw std::logic_error("the barrier ended");
}

// Behind the failures that it has caused.
[[noreturn]] void abort_and_fail(const rank_context& context, group& mine, const tensor& begun,
                                 const std::vector<int>& pids) {
  mine.abort("bad numbers");
  for (int rank = 0; rank < 3; ++rank) {
    if (rank != static_cast<int>(context.rank)) await_failure(begun, rank, pids);
  }
  throw_as(context);
}

// A rank that has begun to fail sleeps only when it has answered.
void be_aborted(const rank_context& context, group& mine, const tensor& begun) {
  try {
    mine.barrier();
  } catch (...) {
    note_beginning(begun, static_cast<int>(context.rank));
    throw;
  }
}

void fail_with_group(const rank_context& context, const group_ticket& ticket, int first, in_group how,
                     const tensor& begun, const std::vector<int>& pids) {
  group mine(ticket, context.rank);
  mine.barrier();
  const bool is_first = static_cast<int>(context.rank) == first;
  switch (how) {
    case in_group::barrier:
      if (is_first) throw_as(context);
      mine.barrier();
      break;
    case in_group::wrapped:
      if (is_first) throw_as(context);
      wrap_failure(mine);
    case in_group::abort:
      if (is_first) abort_and_fail(context, mine, begun, pids);
      be_aborted(context, mine, begun);
      break;
    case in_group::reduction: {
      const auto add = [is_first](float a, float b) {
        if (is_first) throw std::range_error("too much");
        return a + b;
      };
      mine.all_reduce(tensor::ones<float>({4}), reduction::custom<float>("add", add));
      break;
    }
  }
}

void expect_first_in_group(in_group how, const std::string& type_behind) {
  in_worlds_of_three([&](world& w) {
    auto f = w.function(fail_with_group, whole("ticket", "first", "how", "begun", "pids"), named("together"));
    for (int round = 0; round < rounds; ++round) {
      const int first = round % 3;
      const stage s(w);
      const auto failure = failure_of([&] { f(group_ticket(3), first, how, s.begun, s.pids); });
      EXPECT_EQ(failure.rank(), static_cast<std::size_t>(first)) << failure.what();
      EXPECT_TRUE(failure.has_range_error) << failure.what();
      EXPECT_THAT(others_of(failure), SizeIs(2));
      EXPECT_THAT(types_behind(failure), Each(type_behind));
    }
    EXPECT_EQ(w.replaced_ranks(), 0U);
  });
}

TEST(FirstFailure, RanksThatLoseTheirGroupByAnothersFailureAreBehindIt) {
  expect_first_in_group(in_group::barrier, "muster::peer_lost");
}

TEST(FirstFailure, SoAreThoseThatThrowAnotherErrorAroundThat) {
  expect_first_in_group(in_group::wrapped, "std::runtime_error");
}

TEST(FirstFailure, RanksWhoseGroupWasAbortedAreBehindTheOneThatDidSo) {
  expect_first_in_group(in_group::abort, "muster::group_error");
}

TEST(FirstFailure, RanksWhoseReductionFailedInAnotherRankAreBehindIt) {
  expect_first_in_group(in_group::reduction, "muster::member_failed");
}

// ---- deaths

void die_or_lose(const rank_context& context, const group_ticket& ticket, int victim) {
  group mine(ticket, context.rank);
  mine.barrier();
  if (static_cast<int>(context.rank) == victim) std::raise(SIGKILL);
  mine.barrier();
}

TEST(FirstFailure, ADeadRankComesBeforeThoseThatLostItsGroup) {
  in_worlds_of_three([](world& w) {
    auto f = w.function(die_or_lose, whole("ticket", "victim"), named("together"));
    for (int round = 0; round < rounds; ++round) {
      const auto victim = static_cast<std::size_t>(round % 3);
      if (w.pids()[victim] == 0) continue;  // that is this process
      const auto failure = failure_of([&] { f(group_ticket(3), static_cast<int>(victim)); });
      EXPECT_EQ(failure.rank(), victim) << failure.what();
      EXPECT_EQ(failure.code(), errc::worker_died);
      EXPECT_THAT(types_behind(failure), ElementsAre("muster::peer_lost", "muster::peer_lost"));
    }
  });
}

void fail_after_death(const rank_context& context, int victim, int second, const tensor& begun,
                      const std::vector<int>& pids) {
  const auto own = static_cast<int>(context.rank);
  await_all(begun);
  if (own == victim) std::raise(SIGKILL);
  if (own != second) return;
  await_death(pids[static_cast<std::size_t>(victim)]);
  throw_as(context);
}

TEST(FirstFailure, ADeadRankComesBeforeARankThatThrowsAfterItsDeath) {
  in_worlds_of_three([](world& w) {
    auto f = w.function(fail_after_death, whole("victim", "second", "begun", "pids"));
    for (int victim = 0; victim < 3; ++victim) {
      if (w.pids()[static_cast<std::size_t>(victim)] == 0) continue;
      const stage s(w);
      const int second = (victim + 1) % 3;
      const auto failure = failure_of([&] { f(victim, second, s.begun, s.pids); });
      EXPECT_EQ(failure.rank(), static_cast<std::size_t>(victim)) << failure.what();
      EXPECT_EQ(failure.code(), errc::worker_died);
      EXPECT_THAT(others_of(failure), ElementsAre(static_cast<std::size_t>(second)));
    }
  });
}

void die_after_failure(const rank_context& context, int first, int victim, const tensor& begun,
                       const std::vector<int>& pids) {
  const auto own = static_cast<int>(context.rank);
  await_all(begun);
  if (own == first) {
    note_beginning(begun, own);
    throw_as(context);
  }
  if (own != victim) return;
  await_failure(begun, first, pids);
  std::raise(SIGKILL);
}

TEST(FirstFailure, ARankThatDiesBecauseAnotherThrewIsBehindIt) {
  in_worlds_of_three([](world& w) {
    auto f = w.function(die_after_failure, whole("first", "victim", "begun", "pids"));
    for (int first = 0; first < 3; ++first) {
      const int victim = (first + 1) % 3;
      if (w.pids()[static_cast<std::size_t>(victim)] == 0) continue;
      const stage s(w);
      const auto failure = failure_of([&] { f(first, victim, s.begun, s.pids); });
      EXPECT_EQ(failure.rank(), static_cast<std::size_t>(first)) << failure.what();
      EXPECT_TRUE(failure.has_range_error);
      ASSERT_THAT(others_of(failure), ElementsAre(static_cast<std::size_t>(victim)));
      EXPECT_EQ(failure.others()[0].info.code(), errc::worker_died);
    }
  });
}

void die_in_order(const rank_context& context, const std::vector<int>& order, const tensor& begun,
                  const std::vector<int>& pids) {
  await_all(begun);
  const auto place = std::ranges::find(order, static_cast<int>(context.rank));
  if (place == order.end()) return;
  if (place != order.begin()) await_death(pids[static_cast<std::size_t>(*(place - 1))]);
  std::raise(SIGKILL);
}

TEST(FirstFailure, OfSeveralDeathsTheFirstIsReported) {
  world w({.ranks = 3, .caller_computes = false});
  auto f = w.function(die_in_order, whole("order", "begun", "pids"));
  for (const auto& order : {std::vector{2, 0, 1}, std::vector{1, 2}, std::vector{2, 1}}) {
    const stage s(w);
    const auto failure = failure_of([&] { f(order, s.begun, s.pids); });
    EXPECT_EQ(failure.rank(), static_cast<std::size_t>(order[0])) << failure.what();
    EXPECT_EQ(others_of(failure), behind_first(order));
  }
}

// ---- time

void throw_late(const rank_context& context, int late, std::chrono::milliseconds time) {
  if (static_cast<int>(context.rank) != late) return;
  test::work_for(time);
  throw_as(context);
}

TEST(FirstFailure, ARankThatIsTooLateAndThrowsThenWasTooLateFirst) {
  in_worlds_of_three([](world& w) {
    auto f = w.function(throw_late, whole("late", "time"));
    // Where there is load it may throw before the caller has found it late, or others be late; then there is more time.
    for (auto timeout = 20ms;; timeout *= 2) {
      const auto failure = failure_of([&] { f.with({.timeout = timeout})(1, 3 * timeout); });
      const bool is_alone = failure.code() == errc::timed_out && others_of(failure) == std::vector<std::size_t>{1};
      if (!is_alone && timeout < 5s) continue;
      EXPECT_EQ(failure.code(), errc::timed_out);
      EXPECT_EQ(failure.rank(), 1U) << failure.what();
      ASSERT_THAT(others_of(failure), ElementsAre(1));
      EXPECT_EQ(failure.others()[0].info.type_name(), "std::range_error");
      break;
    }
  });
}

TEST(FirstFailure, ARankThatIsKilledBecauseItDoesNotComeBackIsBehindTheFailure) {
  world w({.ranks = 2, .caller_computes = false, .grace = 50ms});
  auto f = w.function(
      [](const rank_context& context, const tensor& begun) {
        await_all(begun);
        if (context.rank == 1) throw_as(context);
        for (;;) ::pause();
      },
      whole("begun"));
  const stage s(w);
  const auto failure = failure_of([&] { f(s.begun); });
  EXPECT_EQ(failure.rank(), 1U);
  ASSERT_THAT(others_of(failure), ElementsAre(0));
  EXPECT_THAT(failure.others()[0].info.message(), HasSubstr("was killed"));
}

TEST(FirstFailure, AllRanksWhoseDevicesAreLostAreReplaced) {
  world w({.ranks = 3, .caller_computes = false, .grace = 30s});
  const auto before = w.pids();
  auto lose = w.function(
      [](const rank_context& context, const std::vector<int>& order, const tensor& begun,
         const std::vector<int>& pids) {
        const int own = static_cast<int>(context.rank);
        await_all(begun);
        if (own == 0) return;
        if (own == order[1]) await_failure(begun, order[0], pids);
        note_beginning(begun, own);
        throw error(errc::device_lost, "an illegal address was read");
      },
      whole("order", "begun", "pids"));
  const stage s(w);
  const auto failure = failure_of([&] { lose(std::vector{2, 1}, s.begun, s.pids); });
  EXPECT_EQ(failure.rank(), 2U);
  EXPECT_THAT(others_of(failure), ElementsAre(1));
  w.function([] {})();
  const auto after = w.pids();
  EXPECT_EQ(after[0], before[0]);
  EXPECT_NE(after[1], before[1]);
  EXPECT_NE(after[2], before[2]);
}

}  // namespace
}  // namespace muster::first_failure_test
