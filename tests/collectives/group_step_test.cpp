// SPDX-License-Identifier: BSL-1.0
// A rank is killed after every few instructions of each call, a message, a split, and of the making of the survivors'
// group. Whoever is left always gets the right result or peer_lost, goes on alone, and has lost no memory.
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/detail/futex.hpp>
#include <muster/collectives/detail/group_memory.hpp>
#include <muster/collectives/detail/rank_end.hpp>
#include <muster/collectives/group_objects.hpp>
#include <muster/memory/domain.hpp>

#include "group_operations.hpp"
#include "group_support.hpp"
#include "memory_state.hpp"
#include "tracee.hpp"

namespace muster::group_step_test {
namespace {

using test::rank_processes;

constexpr std::size_t short_count = 8;
constexpr std::size_t long_count = 300;  // lies in place, and in the sender's memory
constexpr group_options options = {
    .timeout = std::chrono::seconds(20), .inline_bytes = 64, .spin = std::chrono::nanoseconds(0)};

// What host and victim say to each other.
struct stage {
  std::atomic<std::uint32_t> traced = 0;
  std::atomic<bool> ready = false;  // to be traced, after the warm-up
  std::atomic<bool> ended = false;
};

// What a rank does, with a tensor that is there before; a group, if it is in one then. Only the others look at what
// comes out, which takes more instructions than what is tested.
using act = std::optional<group> (*)(group&, const tensor&, bool is_victim);

struct scenario {
  const char* name;
  act what;
  std::size_t count = short_count;
  std::size_t ranks = 2;
  std::size_t victim = 1;
  unsigned points = 30;
  bool warms_up = true;    // else the last rank leaves first
  bool in_thread = false;  // what is stepped is the group's thread, which does the asynchronous calls
};

std::optional<group> all_reduce(group& in, const tensor& own, bool is_victim) {
  own.fill(3.0F);
  in.all_reduce(own);
  if (!is_victim) test::expect_all(own, own.size(), 6, "all_reduce");
  return {};
}

// Of the others rank 0 is the root.
std::optional<group> broadcast(group& in, const tensor& own, bool is_victim) {
  own.fill(in.rank() == 0 ? 4.0F : 0.0F);
  in.broadcast(own, 0);
  if (!is_victim) test::expect_all(own, own.size(), 4, "broadcast");
  return {};
}

std::optional<group> reduce(group& in, const tensor& own, bool is_victim) {
  own.fill(3.0F);
  in.reduce(own, 0);
  if (!is_victim) test::expect_all(own, own.size(), in.rank() == 0 ? 6 : 3, "reduce");
  return {};
}

std::optional<group> gather(group& in, const tensor& own, bool is_victim) {
  own.fill(3.0F);
  const auto all = in.gather(own, 0);
  if (!is_victim && in.rank() == 0) test::expect_all(all, 2 * own.size(), 3, "gather");
  return {};
}

std::optional<group> all_gather(group& in, const tensor& own, bool is_victim) {
  own.fill(3.0F);
  const auto all = in.all_gather(own);
  if (!is_victim) test::expect_all(all, 2 * own.size(), 3, "all_gather");
  return {};
}

std::optional<group> all_gather_ragged(group& in, const tensor& own, bool is_victim) {
  own.fill(3.0F);
  const auto all = in.all_gather(own.slice(0, own.size() / (in.rank() + 1)));
  if (!is_victim) test::expect_all(all, own.size() + own.size() / 2, 3, "all_gather of different numbers of rows");
  return {};
}

std::optional<group> scatter(group& in, const tensor& own, bool is_victim) {
  own.fill(3.0F);
  const auto part = in.scatter(own, 0);
  if (!is_victim) test::expect_all(part, own.size() / 2, 3, "scatter");
  return {};
}

std::optional<group> reduce_scatter(group& in, const tensor& own, bool is_victim) {
  own.fill(3.0F);
  const auto part = test::floats(own.size() / 2, 0);
  in.reduce_scatter(own, part);
  if (!is_victim) test::expect_all(part, own.size() / 2, 6, "reduce_scatter");
  return {};
}

std::optional<group> all_to_all(group& in, const tensor& own, bool is_victim) {
  own.fill(3.0F);
  const auto all = in.all_to_all(own, std::vector{own.size() / 2, own.size() / 2});
  if (!is_victim) test::expect_all(all, own.size(), 3, "all_to_all");
  return {};
}

// Rank 0 gets all but two rows of each, rank 1 the two.
std::optional<group> all_to_all_ragged(group& in, const tensor& own, bool is_victim) {
  own.fill(3.0F);
  const auto all = in.all_to_all(own, std::vector{own.size() - 2, std::size_t{2}});
  if (!is_victim) test::expect_all(all, in.rank() == 0 ? 2 * own.size() - 4 : 4, 3, "all_to_all of different numbers");
  return {};
}

std::optional<group> barrier(group& in, const tensor&, bool) {
  in.barrier();
  return {};
}

std::optional<group> broadcast_object(group& in, const tensor& own, bool is_victim) {
  const std::string sent(own.size(), 'x');
  auto what = in.rank() == 0 ? sent : std::string();
  in.broadcast_object(what, 0);
  EXPECT_TRUE(is_victim || what == sent) << "broadcast_object";
  return {};
}

std::optional<group> all_gather_object(group& in, const tensor& own, bool is_victim) {
  const std::string sent(own.size(), 'x');
  const auto all = in.all_gather_object(sent);
  EXPECT_TRUE(is_victim || all == std::vector({sent, sent})) << "all_gather_object";
  return {};
}

// Several under way at once.
std::optional<group> asynchronous(group& in, const tensor& own, bool is_victim) {
  own.fill(3.0F);
  const auto other = test::floats(own.size(), 4);
  const std::array works = {in.all_reduce_async(own), in.all_gather_async(other), in.barrier_async()};
  for (const auto& each : works) each.wait();
  if (is_victim) return {};
  test::expect_all(own, own.size(), 6, "all_reduce");
  test::expect_all(works[1].result(), 2 * own.size(), 4, "all_gather");
  return {};
}

std::optional<group> send(group& in, const tensor& own, bool is_victim) {
  own.fill(is_victim ? 7.0F : 0.0F);
  if (is_victim) {
    in.send(own, 0, 5);
  } else {
    in.recv(own, 1, 5);
    test::expect_all(own, own.size(), 7, "received");
  }
  return {};
}

std::optional<group> receive(group& in, const tensor& own, bool is_victim) {
  is_victim ? static_cast<void>(in.recv(own, 0, 5)) : in.send(own, 1, 5);
  return {};
}

std::optional<group> split(group& in, const tensor&, bool) { return in.split(1); }
std::optional<group> subset(group& in, const tensor&, bool) { return in.subset({1, 0}); }
std::optional<group> subset_led(group& in, const tensor&, bool) { return in.subset({0, 1}); }
std::optional<group> shrink(group& in, const tensor&, bool) { return in.shrink(); }

constexpr scenario scenarios[] = {
    {.name = "AllReduceInline", .what = all_reduce},
    {.name = "AllReduceInPlace", .what = all_reduce, .count = long_count},
    {.name = "BroadcastInline", .what = broadcast, .points = 8},
    {.name = "BroadcastInPlaceAsRoot", .what = broadcast, .count = long_count, .victim = 0, .points = 8},
    {.name = "ReduceInline", .what = reduce, .points = 8},
    {.name = "ReduceInPlaceAsRoot", .what = reduce, .count = long_count, .victim = 0, .points = 8},
    {.name = "GatherInline", .what = gather, .points = 8},
    {.name = "GatherInPlaceAsRoot", .what = gather, .count = long_count, .victim = 0, .points = 8},
    {.name = "AllGatherInline", .what = all_gather, .points = 8},
    {.name = "AllGatherInPlace", .what = all_gather, .count = long_count, .points = 8},
    {.name = "AllGatherOfDifferentNumbersOfRows", .what = all_gather_ragged, .count = long_count, .points = 8},
    {.name = "ScatterInline", .what = scatter, .points = 8},
    {.name = "ScatterInPlaceAsRoot", .what = scatter, .count = long_count, .victim = 0, .points = 8},
    {.name = "ReduceScatterInline", .what = reduce_scatter, .points = 8},
    {.name = "ReduceScatterInPlace", .what = reduce_scatter, .count = long_count, .points = 8},
    {.name = "AllToAllInline", .what = all_to_all, .points = 8},
    {.name = "AllToAllInPlace", .what = all_to_all, .count = long_count, .points = 8},
    {.name = "AllToAllOfDifferentNumbersOfRows", .what = all_to_all_ragged, .count = long_count, .points = 8},
    {.name = "Barrier", .what = barrier, .points = 8},
    {.name = "BroadcastOfAnObjectAsRoot", .what = broadcast_object, .count = long_count, .victim = 0, .points = 8},
    {.name = "AllGatherOfObjects", .what = all_gather_object, .points = 6},
    {.name = "AsynchronousWhereTheyAreBegun", .what = asynchronous, .count = long_count, .points = 8},
    {.name = "AsynchronousWhereTheyAreDone",
     .what = asynchronous,
     .count = long_count,
     .points = 12,
     .in_thread = true},
    {.name = "SendInTheRing", .what = send},
    {.name = "SendFromItsPlace", .what = send, .count = long_count},
    {.name = "ReceiveFromTheRing", .what = receive},
    {.name = "ReceiveFromItsPlace", .what = receive, .count = long_count},
    {.name = "SplitAsMember", .what = split, .points = 12},
    {.name = "SplitAsLeader", .what = split, .victim = 0, .points = 12},
    {.name = "SubsetAsLeader", .what = subset, .points = 12},
    {.name = "SubsetAsMember", .what = subset_led, .points = 12},
    {.name = "ShrinkAsLeader", .what = shrink, .ranks = 3, .victim = 0, .points = 12, .warms_up = false},
    {.name = "ShrinkAsMember", .what = shrink, .ranks = 3, .victim = 1, .points = 12, .warms_up = false}};

// Until it has come to its end at most. Returns how many instructions it has executed.
unsigned step(test::tracee& traced, const stage& with, unsigned instructions, test::tracee::outcome& last) {
  unsigned done = 0;
  for (; done < instructions && !with.ended; ++done) {
    last = traced.step();
    if (last != test::tracee::outcome::stopped) break;
  }
  return done;
}

void wait_for_tracer(const stage& with) {
  while (with.traced == 0) futex_wait(futex_address(with.traced), 0, futex_scope::shared);
}

// Kills it, `kill_after`, at so many points of its way.
template <class KillAfter>
void kill_at_points(unsigned most, KillAfter kill_after) {
  const auto all = std::min(kill_after(UINT_MAX), kill_after(UINT_MAX));
  const auto points = std::min(all, most);
  unsigned reached = 0;
  for (unsigned point = 0; point < points && !testing::Test::HasFailure(); ++point) {
    const auto at = static_cast<unsigned>(std::uint64_t{all} * point / points);
    if (kill_after(at) == at) ++reached;
    if (testing::Test::HasFailure()) ADD_FAILURE() << "killed after " << at << " instructions";
  }
  std::printf("%u kill points in %u instructions\n", reached, all);
  EXPECT_GE(reached, points * 2 / 3);
}

class GroupStep : public testing::TestWithParam<scenario> {
protected:
  // Kills the victim after so many instructions, or at its end. Returns how many it has executed.
  unsigned kill_after(unsigned instructions) {
    const auto& what = GetParam();
    const test::shared<stage> with;
    unsigned done = 0;
    {
      rank_processes all(what.ranks, [&](group& mine) { run_rank(mine, *with); }, options);
      EXPECT_TRUE(test::eventually([&] { return !what.in_thread || with->ready; }));
      test::tracee traced(what.in_thread ? second_thread_of(all.pid(what.victim)) : all.pid(what.victim));
      if (what.in_thread) traced.interrupt();
      with->traced = 1;
      futex_wake(futex_address(with->traced), 1, futex_scope::shared);
      if (!what.in_thread) traced.run_to_landing();
      EXPECT_TRUE(test::eventually([&] { return test::sleeps_on_futex(all.pid(1 - what.victim)); }));
      auto last = test::tracee::outcome::stopped;
      done = step(traced, *with, instructions, last);
      all.kill(what.victim);
      // Its process has not ended before this one knows that the thread has.
      while (what.in_thread && last != test::tracee::outcome::gone) last = traced.await_stop();
      all.end(what.victim);
      all.expect_all_end_well();
    }
    EXPECT_TRUE(test::is_all_free(*domain_));
    return done;
  }

  static void run_rank(group& mine, stage& with) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto& what = GetParam();
    const bool is_victim = mine.rank() == what.victim;
    if (is_victim && !what.in_thread) wait_for_tracer(with);
    const auto own = test::floats(what.count, 0);  // the first allocation is a long way
    mine.barrier();
    if (what.warms_up) {
      static_cast<void>(what.what(mine, own, is_victim));
    } else {
      if (mine.rank() + 1 == what.ranks) return;
      EXPECT_THROW(mine.barrier(), peer_lost);
    }
    if (is_victim) run_victim(mine, own, with);
    go_on(mine, own);
  }

  [[noreturn]] static void run_victim(group& mine, const tensor& own, stage& with) {
    if (GetParam().in_thread) {
      with.ready = true;
      wait_for_tracer(with);
    } else {
      ::raise(SIGTRAP);
    }
    const auto made = GetParam().what(mine, own, true);
    with.ended = true;
    if (GetParam().in_thread) ::raise(SIGKILL);  // or a step of a thread that sleeps from now on would not end
    for (;;) ::pause();
  }

  static pid_t second_thread_of(pid_t process) {
    for (const auto& each : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
      const auto thread = std::stoi(each.path().filename());
      if (thread != process) return thread;
    }
    ADD_FAILURE() << "it has one thread only";
    return process;
  }

  // The victim dies, so that every group that it is in ends at last.
  static void go_on(group& mine, const tensor& own) {
    std::optional<group> last;
    try {
      last = GetParam().what(mine, own, false);
      for (auto& in = last ? *last : mine; in.size() > 1;) test::run_all_reduce(in, {.count = short_count});
    } catch (const peer_lost& found) {
      EXPECT_FALSE(found.lost().empty()) << found.what();
    }
    while (!last || last->size() > 1) {
      auto rest = last ? last->shrink() : mine.shrink();
      last.emplace(std::move(rest));
      try {
        test::run_all_reduce(*last, {.count = long_count});
      } catch (const peer_lost&) {
        continue;
      }
    }
    test::run_all_reduce(*last, {.count = short_count});
  }

  std::shared_ptr<domain> domain_ = domain::of_program(
      {.arena_bytes = std::size_t{16} << 20U, .max_participants = 16, .max_blocks = 256, .inherited = true});
};

TEST_P(GroupStep, AKillAtAnyInstructionLeavesTheOthersRightOrTold) {
  kill_at_points(GetParam().points, [this](unsigned at) { return kill_after(at); });
}

INSTANTIATE_TEST_SUITE_P(Groups, GroupStep, testing::ValuesIn(scenarios),
                         [](const auto& each) { return each.param.name; });

// ---- messages of one that leaves

struct departure {
  const char* name;
  bool is_by_sender = true;  // who is killed; else the receiver, when the other one has left
  bool has_ring = false;     // the receiver, before
  bool is_kept = false;      // the tensor, by the sender's program
  bool is_wanted = true;     // else the receiver leaves
};

constexpr departure departures[] = {
    {.name = "WithARingThatNobodyHas"},
    {.name = "WithARingThatTheOtherHas", .has_ring = true},
    {.name = "WithMessagesThatAreCopied", .has_ring = true, .is_kept = true},
    {.name = "BeforeTheyAreReceived", .is_by_sender = false},
    {.name = "BeforeTheyAreReceivedFromARing", .is_by_sender = false, .has_ring = true},
    {.name = "BeforeTheirReceiverLeaves", .is_by_sender = false, .is_wanted = false},
    {.name = "BeforeTheirReceiverLeavesWithTheRing", .is_by_sender = false, .has_ring = true, .is_wanted = false}};

// Rank 1 is killed. What is left and received is of a part of the group, so that the other learns of it in the whole.
class GroupStepOfADeparture : public testing::TestWithParam<departure> {
protected:
  struct both : stage {
    std::atomic<std::uint32_t> is_over = 0;  // the victim has been buried
    std::atomic<bool> has_left = false;      // the sender, where it lives
  };

  unsigned kill_after(unsigned instructions) {
    const test::shared<both> with;
    unsigned done = 0;
    {
      rank_processes all(2, [&](group& mine) { run_rank(mine, *with); }, options);
      test::tracee traced(all.pid(1));
      with->traced = 1;
      futex_wake(futex_address(with->traced), 1, futex_scope::shared);
      traced.run_to_landing();
      EXPECT_TRUE(test::eventually([&] { return test::sleeps_on_futex(all.pid(0)); }));
      auto last = test::tracee::outcome::stopped;
      done = step(traced, *with, instructions, last);
      all.kill(1);
      all.end(1);
      with->is_over = 1;
      futex_wake(futex_address(with->is_over), 1, futex_scope::shared);
      all.expect_all_end_well();
    }
    EXPECT_TRUE(test::is_all_free(*domain_));
    return done;
  }

private:
  static void run_rank(group& mine, both& with) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const bool is_victim = mine.rank() == 1;
    if (is_victim) wait_for_tracer(with);
    std::optional<group> part = mine.subset({0, 1});
    const auto kept = test::floats(long_count, 7);
    const auto into = test::floats(long_count, 0);
    const bool is_sender = is_victim == GetParam().is_by_sender;
    if (GetParam().has_ring && is_sender) part->send(kept, 1 - mine.rank(), 1);
    if (GetParam().has_ring && !is_sender) part->recv(into, any_source, 1);
    if (is_sender) send(*part, kept);
    mine.barrier();
    is_victim ? run_victim(part, into, is_sender, with) : run_other(mine, part, into, is_sender, with);
  }

  static void send(group& part, const tensor& kept) {
    const auto other = 1 - part.rank();
    static_cast<void>(part.isend(GetParam().is_kept ? kept : test::floats(long_count, 7), other, 2));
    part.send(test::floats(short_count, 8), other, 3);
  }

  [[noreturn]] static void run_victim(std::optional<group>& part, const tensor& into, bool is_sender, both& with) {
    while (!is_sender && !with.has_left) ::sched_yield();
    ::raise(SIGTRAP);
    if (!is_sender && GetParam().is_wanted) {
      part->recv(into, 0, 2);
      part->recv(into.slice(0, short_count), 0, 3);
    } else {
      part.reset();
    }
    with.ended = true;
    for (;;) ::pause();
  }

  static void run_other(group& mine, std::optional<group>& part, const tensor& into, bool is_sender, both& with) {
    if (is_sender) {
      part.reset();
      with.has_left = true;
    }
    while (with.is_over == 0) futex_wait(futex_address(with.is_over), 0, futex_scope::shared);
    if (!is_sender) receive(*part, into, with.ended);
    EXPECT_THROW(mine.barrier(), peer_lost);
  }

  // All of what was sent before one left who had left.
  static void receive(group& part, const tensor& into, bool has_left) {
    try {
      part.recv(into, 1, 2);
      test::expect_all(into, long_count, 7, "received");
      const auto few = into.slice(0, short_count);
      part.recv(few, 1, 3);
      test::expect_all(few, short_count, 8, "received");
    } catch (const peer_lost& found) {
      EXPECT_FALSE(has_left) << found.what();
    }
  }

  std::shared_ptr<domain> domain_ = domain::of_program(
      {.arena_bytes = std::size_t{16} << 20U, .max_participants = 16, .max_blocks = 256, .inherited = true});
};

TEST_P(GroupStepOfADeparture, AKillAtAnyInstructionLeavesTheOtherRightOrToldAndNothingHeld) {
  kill_at_points(30, [this](unsigned at) { return kill_after(at); });
}

INSTANTIATE_TEST_SUITE_P(Groups, GroupStepOfADeparture, testing::ValuesIn(departures),
                         [](const auto& each) { return each.param.name; });

// ---- who has left and ended is not dead

// A rank looks for another one, which leaves and ends after any of its instructions.
TEST(GroupStepOfALook, WhoLeavesAndEndsMeanwhileIsNotTakenForDead) {
  const auto shared =
      domain::of_program({.arena_bytes = std::size_t{16} << 20U, .max_participants = 16, .inherited = true});
  {
    const group_ticket ticket(2, options);
    detail::rank_end end(shared, ticket.block(), 0);
    auto& other = end.memory().line(1);
    test::thread_stepper stepper;
    unsigned points = 0;
    for (unsigned at = 0; at < 200; ++at, ++points) {
      const auto id = shared->participants().enrol();
      shared->participants().publish(id, 1);
      other.member = detail::rank_identity::of(*shared, id).pack();
      other.presence_ = static_cast<std::uint32_t>(detail::rank_line::presence::joined);
      bool found_dead = true;
      const auto leave = [&] {
        other.presence_ = static_cast<std::uint32_t>(detail::rank_line::presence::left);
        shared->participants().retire(id);
      };
      const auto done = stepper.run([&] { found_dead = end.is_dead(1); }, at, leave);
      ASSERT_FALSE(found_dead) << "after " << at << " instructions";
      if (done < at) break;
    }
    std::printf("%u points\n", points);
    EXPECT_GE(points, 20U);
  }
  EXPECT_TRUE(test::is_all_free(*shared));
}

}  // namespace
}  // namespace muster::group_step_test
