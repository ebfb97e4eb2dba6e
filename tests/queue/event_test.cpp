// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/domain.hpp>
#include <muster/queue/event.hpp>

#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/serialize/detail/codec.hpp>

#include "error_code.hpp"
#include "processes.hpp"

namespace muster::event_test {
namespace {

using namespace std::chrono_literals;
using test::code_of;
using testing::HasSubstr;

class Event : public testing::Test {
protected:
  std::shared_ptr<domain> domain_ = domain::of_program({.inherited = true});
};

TEST_F(Event, IsClearUntilItIsSetAndAfterItWasCleared) {
  const event done;
  EXPECT_FALSE(done.is_set());
  done.set();
  EXPECT_TRUE(done.is_set());
  done.set();
  EXPECT_TRUE(done.is_set());
  done.clear();
  EXPECT_FALSE(done.is_set());
  done.clear();
  EXPECT_FALSE(done.is_set());
}

TEST_F(Event, CopiesAreTheSameEvent) {
  const event one;
  const event same = one;  // NOLINT(performance-unnecessary-copy-initialization)
  same.set();
  EXPECT_TRUE(one.is_set());
  EXPECT_EQ(one, same);
  EXPECT_NE(one, event());
}

TEST_F(Event, OneThatWasMovedFromIsTheSameEventStill) {
  event one;
  const event moved = std::move(one);
  one.set();  // NOLINT(bugprone-use-after-move): that is the question
  EXPECT_TRUE(moved.is_set());
  const auto both = all_of(std::move(one), moved);
  EXPECT_TRUE(both.is_set());
  one.clear();  // NOLINT(bugprone-use-after-move): as above
  EXPECT_FALSE(both.is_set());
}

TEST_F(Event, OneThatIsSetIsNotWaitedForWhateverTheTime) {
  const event done;
  done.set();
  done.wait();
  EXPECT_TRUE(done.wait_for(0s));
  EXPECT_TRUE(done.wait_for(-1s));
  EXPECT_TRUE(any_of(event(), done).wait_for(-1s));
}

TEST_F(Event, AWaitForOneThatIsNotSetTakesItsTimeAndEndsInFalse) {
  const event done;
  EXPECT_FALSE(done.wait_for(0s));
  EXPECT_FALSE(done.wait_until(deadline(clock::time_point())));
  const auto start = clock::now();
  EXPECT_FALSE(done.wait_for(20ms));
  EXPECT_FALSE(all_of(done, event()).wait_for(20ms));
  EXPECT_GE(clock::now() - start, 40ms);
}

TEST_F(Event, SettingClearingAndWaitingForOneThatIsSetMakeNoSystemCalls) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has a thread of its own, which the exit of this one does not end";
#endif
  const event done;
  const auto both = all_of(done, any_of(event(), done));
  auto strict = test::spawn(1, [&](std::size_t) {
    ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);  // read, write and exit only; for others the process is killed
    done.set();
    done.wait();
    both.wait();
    done.clear();
    done.set();
    ::syscall(SYS_exit, 0);
    return 1;
  });
  EXPECT_EQ(strict->wait(0), exit_status::exited(0));
}

TEST_F(Event, AProcessThatSleepsIsWokenByAnother) {
  const event done;
  auto sleeper = test::spawn(1, [&](std::size_t) {
    done.wait();
    return 0;
  });
  ASSERT_TRUE(test::eventually([&] { return test::sleeps_on_futex(sleeper->pid(0)); }));
  done.set();
  EXPECT_EQ(sleeper->wait(0), exit_status::exited(0));
}

TEST_F(Event, AllWhoSleepAreWoken) {
  const event done;
  auto sleepers = test::spawn(8, [&](std::size_t) { return done.wait_for(100s) ? 0 : 1; });
  for (std::size_t each = 0; each < sleepers->size(); ++each) {
    ASSERT_TRUE(test::eventually([&] { return test::sleeps_on_futex(sleepers->pid(each)); }));
  }
  done.set();
  for (std::size_t each = 0; each < sleepers->size(); ++each) {
    EXPECT_EQ(sleepers->wait(each), exit_status::exited(0));
  }
}

TEST_F(Event, ASetThatIsUndoneAtOnceReleasesWhoWaits) {
  const event done;
  const auto either = any_of(event(), any_of(done, all_of(event(), done)));
  auto sleepers = test::spawn(2, [&](std::size_t rank) { return (rank == 0 ? done.wait() : either.wait()), 0; });
  ASSERT_TRUE(test::eventually(
      [&] { return test::sleeps_on_futex(sleepers->pid(0)) && test::sleeps_on_futex(sleepers->pid(1)); }));
  sleepers->freeze(0);
  sleepers->freeze(1);
  done.set();
  done.clear();
  sleepers->thaw(0);
  sleepers->thaw(1);
  EXPECT_EQ(sleepers->wait(0), exit_status::exited(0));
  EXPECT_EQ(sleepers->wait(1), exit_status::exited(0));
}

TEST_F(Event, ASetAfterTheLastLookIsNotLostInTenThousandRaces) {
  constexpr int races = 10'000;
  const event there;
  const event back;
  auto other = test::spawn(1, [&](std::size_t) {
    for (int race = 0; race < races; ++race) {
      there.wait();
      there.clear();
      back.set();
    }
    return 0;
  });
  for (int race = 0; race < races; ++race) {
    there.set();
    ASSERT_TRUE(back.wait_for(100s));
    back.clear();
  }
  EXPECT_EQ(other->wait(0), exit_status::exited(0));
}

// Two others who set an event of their own again and again, once the one before has been seen.
struct two_setters {
  explicit two_setters(std::size_t races) {
    for (std::size_t rank = 0; rank < 2; ++rank)
      ranks.add([this, races](std::size_t self) { return run(self, races); });
  }

  // Now and then with a delay, so that the other side has fallen asleep, is falling asleep, or still spins.
  [[nodiscard]] int run(std::size_t self, std::size_t races) const {
    for (std::size_t race = 0; race < races; ++race) {
      if (race % 7 == self) test::work_for(std::chrono::microseconds(2 * (race % 9)));
      set[self].set();
      seen[self].wait();
      seen[self].clear();
    }
    return 0;
  }
  void see(std::size_t rank) const {
    set[rank].clear();
    seen[rank].set();
  }
  void expect_done() {
    EXPECT_EQ(ranks.wait(0), exit_status::exited(0));
    EXPECT_EQ(ranks.wait(1), exit_status::exited(0));
  }

  const event set[2];
  const event seen[2];
  test::processes ranks;
};

TEST_F(Event, WhoWaitsForEitherOfTwoMissesNoneInTenThousandRaces) {
  constexpr std::size_t races = 10'000;
  two_setters others(races);
  const auto either = any_of(others.set[0], others.set[1]);
  for (std::size_t left = 2 * races; left > 0;) {
    ASSERT_TRUE(either.wait_for(100s));
    for (std::size_t rank = 0; rank < 2; ++rank) {
      if (!others.set[rank].is_set()) continue;
      others.see(rank);
      --left;
    }
  }
  others.expect_done();
}

TEST_F(Event, WhoWaitsForBothOfTwoMissesNoneInTenThousandRaces) {
  constexpr std::size_t races = 10'000;
  two_setters others(races);
  const auto both = all_of(others.set[0], others.set[1]);
  for (std::size_t race = 0; race < races; ++race) {
    ASSERT_TRUE(both.wait_for(100s));
    ASSERT_TRUE(others.set[0].is_set() && others.set[1].is_set());
    others.see(race % 2);
    others.see(1 - race % 2);
  }
  others.expect_done();
}

TEST_F(Event, WhatWasDoneBeforeTheSetIsSeenAfterTheWait) {
  const event done;
  const event taken;
  int plain = 0;  // the thread sanitizer looks
  std::thread writer([&] {
    for (int round = 1; round <= 1000; ++round) {
      plain = round;
      done.set();
      taken.wait();
      taken.clear();
    }
  });
  for (int round = 1; round <= 1000; ++round) {
    done.wait();
    done.clear();
    EXPECT_EQ(plain, round);
    taken.set();
  }
  writer.join();
}

TEST_F(Event, ADeathOfASleeperHarmsNobody) {
  const event done;
  auto sleepers = test::spawn(2, [&](std::size_t) { return done.wait(), 0; });
  ASSERT_TRUE(test::eventually(
      [&] { return test::sleeps_on_futex(sleepers->pid(0)) && test::sleeps_on_futex(sleepers->pid(1)); }));
  sleepers->kill(0);
  EXPECT_EQ(sleepers->wait(0), exit_status::killed(SIGKILL));
  done.set();
  EXPECT_EQ(sleepers->wait(1), exit_status::exited(0));
  EXPECT_TRUE(done.wait_for(0s));
}

TEST_F(Event, GoesOnlyWhereItsMemoryCanGo) {
  const event done;
  EXPECT_EQ(code_of([&] { static_cast<void>(codec<event>::size(done)); }), errc::not_serializable);
}

TEST_F(Event, OfAnotherDomainIsRefused) {
  struct source final : attachment_source {
    explicit source(arena& from) : from_(from), block_(from.allocate_shared(8)) {}
    shared_block take(std::uint64_t) override { return from_.borrow(from_.name_of(block_)); }
    arena& from_;
    shared_block block_;
  };
  const auto other = std::make_shared<domain>(domain_options{.arena_bytes = 1 << 22});
  source elsewhere(other->blocks());
  const std::uint64_t name = 0;
  const auto frame = std::as_bytes(std::span(&name, 1));
  EXPECT_EQ(code_of([&] { static_cast<void>(codec<event>::decode(frame, &elsewhere)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { static_cast<void>(codec<event>::decode(frame)); }), errc::not_serializable);
}

TEST_F(Event, KeepsItsDomain) {
  auto done = event(std::make_shared<domain>(domain_options{.arena_bytes = 1 << 22}));
  done.set();
  EXPECT_TRUE(done.is_set());
}

TEST_F(Event, AnArenaWithoutRoomIsSaid) {
  const auto small = std::make_shared<domain>(domain_options{.arena_bytes = 1 << 20});
  std::vector<event> all;
  EXPECT_EQ(code_of([&] {
              for (;;) all.emplace_back(small);
            }),
            errc::out_of_memory);
}

// ---- several

TEST_F(Event, AnyOfIsSetWhileOneIs) {
  const event a;
  const event b;
  const auto either = any_of(a, b);
  EXPECT_FALSE(either.is_set());
  b.set();
  EXPECT_TRUE(either.is_set());
  either.wait();
  b.clear();
  EXPECT_FALSE(either.is_set());
  EXPECT_FALSE(either.wait_for(0s));
}

TEST_F(Event, AllOfIsSetWhileAllAre) {
  const event a;
  const event b;
  const auto both = all_of(a, b);
  a.set();
  EXPECT_FALSE(both.is_set());
  EXPECT_FALSE(both.wait_for(1ms));
  b.set();
  EXPECT_TRUE(both.is_set());
  both.wait();
  a.clear();
  EXPECT_FALSE(both.wait_for(0s));
}

TEST_F(Event, ACombinationThatWasMovedFromIsTheSameStill) {
  const event a;
  const event b;
  auto both = all_of(a, b);
  const auto moved = std::move(both);
  EXPECT_FALSE(both.is_set());      // NOLINT(bugprone-use-after-move): that is the question
  EXPECT_FALSE(both.wait_for(0s));  // NOLINT(bugprone-use-after-move): as above
  const auto either = any_of(std::move(both), event());
  a.set();
  b.set();
  EXPECT_TRUE(moved.is_set());
  EXPECT_TRUE(both.wait_for(0s));  // NOLINT(bugprone-use-after-move): as above
  EXPECT_TRUE(either.is_set());
}

TEST_F(Event, CombinationsNest) {
  const event a;
  const event b;
  const event c;
  const event d;
  const auto all = all_of(any_of(a, b), any_of(c, all_of(b, d)));
  const auto bits = [&](unsigned set) {
    const event* const each[] = {&a, &b, &c, &d};
    for (unsigned bit = 0; bit < 4; ++bit) (set >> bit & 1U) != 0 ? each[bit]->set() : each[bit]->clear();
  };
  for (unsigned set = 0; set < 16; ++set) {
    bits(set);
    const bool wanted = (set & 0b0011U) != 0 && ((set & 0b0100U) != 0 || (set & 0b1010U) == 0b1010U);
    EXPECT_EQ(all.is_set(), wanted) << set;
    EXPECT_EQ(all.wait_for(0s), wanted) << set;
    EXPECT_EQ(all.wait_for(100us), wanted) << set;
  }
}

TEST_F(Event, AllOfWaitsForOneAfterTheOther) {
  const std::vector<event> events(300);
  const auto all = all_of(events);
  auto setter = test::spawn(1, [&](std::size_t) {
    for (std::size_t each = events.size(); each-- > 0;) events[each].set();
    return 0;
  });
  EXPECT_TRUE(all.wait_for(100s));
  EXPECT_EQ(setter->wait(0), exit_status::exited(0));
}

TEST_F(Event, EachOfTheMostEventsOfAnAnyOfEndsIt) {
  std::vector<event> events(combined_event::max_width);
  const auto either = any_of(events);
  for (std::size_t each = 0; each < events.size(); each += 21) {
    auto sleeper = test::spawn(1, [&](std::size_t) { return either.wait_for(100s) ? 0 : 1; });
    ASSERT_TRUE(test::eventually([&] { return test::sleeps_on_futex(sleeper->pid(0)); }));
    events[each].set();
    EXPECT_EQ(sleeper->wait(0), exit_status::exited(0));
    events[each].clear();
  }
  events.emplace_back();
  try {
    static_cast<void>(any_of(events));
    FAIL() << "128 events";
  } catch (const error& problem) {
    EXPECT_EQ(problem.code(), errc::invalid_argument);
    EXPECT_THAT(problem.what(), HasSubstr("128"));
    EXPECT_THAT(problem.what(), HasSubstr("127"));
  }
}

TEST_F(Event, WidthIsWhatAWaitMayNeedAtOnce) {
  const std::vector<event> many(combined_event::max_width);
  const auto either = any_of(many);
  EXPECT_NO_THROW(static_cast<void>(muster::all_of(either, either, many)));
  EXPECT_EQ(code_of([&] { static_cast<void>(any_of(either, event())); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { static_cast<void>(any_of(all_of(either, event()), event())); }), errc::invalid_argument);
}

TEST_F(Event, WhatCannotBeWaitedForIsRefused) {
  const event elsewhere(std::make_shared<domain>(domain_options{.arena_bytes = 1 << 22}));
  EXPECT_EQ(code_of([] { static_cast<void>(any_of()); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { static_cast<void>(all_of(std::vector<event>())); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { static_cast<void>(any_of(event(), elsewhere)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { static_cast<void>(all_of(event(), any_of(elsewhere))); }), errc::invalid_argument);
}

TEST_F(Event, NothingGrowsWithCombinationsOfOneEvent) {
  const event done;
  const auto use = [&](int count) {
    for (int each = 0; each < count; ++each) {
      const auto combined = any_of(done, all_of(done, done));
      EXPECT_FALSE(each % 100 == 0 ? combined.wait_for(1us) : combined.is_set());
    }
  };
  use(1000);
  const auto heap = ::mallinfo2().uordblks;
  const auto shared = domain_->blocks().read_statistics();
  constexpr int combinations = 100'000;
  use(combinations);
  // What the allocator's own caches hold counts as used there, and differs a little from time to time.
  EXPECT_LE(::mallinfo2().uordblks, heap + combinations) << "a byte for each would be a leak";
  EXPECT_EQ(domain_->blocks().read_statistics().live_blocks, shared.live_blocks);
  EXPECT_EQ(domain_->blocks().read_statistics().holds, shared.holds);
}

}  // namespace
}  // namespace muster::event_test
