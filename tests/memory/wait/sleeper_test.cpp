// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/wait/sleeper.hpp>

#include <array>
#include <thread>

#include <gtest/gtest.h>

#include <muster/base/cpu_list.hpp>

#include "processes.hpp"

namespace muster::sleeper_test {
namespace {

using namespace std::chrono_literals;

using bell = std::atomic<std::uint32_t>;

constexpr std::size_t small_arena = std::size_t{8} << 20U;

class Sleeper : public testing::Test {
protected:
  [[nodiscard]] sleeper make(std::chrono::nanoseconds spin = 0ns) { return {host_, {.spin = spin}, place_}; }

  domain host_{{.arena_bytes = small_arena, .inherited = true}};
  place_word place_ = 0;
  bell bell_ = 0;
  std::atomic<bool> is_there_ = false;
};

TEST_F(Sleeper, IsWokenByItsBell) {
  std::thread other([&] {
    is_there_ = true;
    ring(bell_);
  });
  const auto look = [&] { return is_there_.load(); };
  EXPECT_TRUE(make().wait(bell_, look, look, sleeper::of_unknown));
  other.join();
}

TEST_F(Sleeper, IsWokenByAnotherProcess) {
  const test::shared<bell> shared_bell;
  const test::shared<std::atomic<bool>> is_there;
  const auto ranks = test::spawn(1, [&](std::size_t) {
    is_there->store(true);
    ring(*shared_bell);
    return 0;
  });
  const auto look = [&] { return is_there->load(); };
  EXPECT_TRUE(make().wait(*shared_bell, look, look, sleeper::of_unknown));
  EXPECT_TRUE(ranks->wait(0).success());
}

TEST_F(Sleeper, IsWokenByTheDeathOfAParticipant) {
  const auto id = host_.participants().enrol();
  const auto before = host_.deaths().load();
  std::thread other([&] { host_.bury(id); });
  const auto has_died = [&] { return host_.deaths().load() != before; };
  EXPECT_TRUE(make().wait(bell_, [] { return false; }, has_died, sleeper::of_unknown));
  other.join();
}

TEST_F(Sleeper, GivesUpWhenItsTimeHasPassed) {
  const auto never = [] { return false; };
  EXPECT_FALSE(make().wait(bell_, never, never, sleeper::of_unknown, deadline::after(1ms)));
  EXPECT_FALSE(make(1h).wait(bell_, never, never, sleeper::of_unknown, deadline::after(1ms)));
}

TEST_F(Sleeper, LooksOnceMoreWhenItsTimeHasPassed) {
  const auto until = deadline::after(2ms);
  const auto is_late = [&] { return until.expired(); };
  EXPECT_TRUE(make().wait(bell_, [] { return false; }, is_late, sleeper::of_unknown, until));
}

TEST_F(Sleeper, SleepsAtOnceWhereItsPartnerIsToRunHere) {
  std::thread other([&] {
    is_there_ = true;
    ring(bell_);
  });
  const auto futile = [] { return prospect::futile; };
  EXPECT_TRUE(make(1h).wait(bell_, [] { return false; }, [&] { return is_there_.load(); }, futile));
  other.join();
}

TEST_F(Sleeper, TellsWhereItRuns) {
  prospect found = prospect::usual;
  const auto ask = [&] { return found = prospect_of(place_); };
  const affinity_scope scope({allowed_cpus().front()});
  EXPECT_FALSE(make(1ms).look_long([] { return false; }, ask));
  EXPECT_EQ(found, prospect::futile) << "it is its own partner";
}

TEST_F(Sleeper, LooksAnewWhenSomethingElseHasChanged) {
  int prepared = 0;
  const auto prepare = [&](sleep_words& words) {
    words.announce(bell_);
    return ++prepared == 3 ? last_look::over : last_look::changed;
  };
  EXPECT_TRUE(make().wait_on<1>([] { return false; }, prepare, sleeper::of_unknown));
  EXPECT_EQ(prepared, 3);
}

TEST_F(Sleeper, IsWokenByAnyOfItsWords) {
  std::array<bell, 3> bells{};
  for (auto& each : bells) {
    std::thread other([&] {
      is_there_ = true;
      ring(each);
    });
    const auto look = [&] { return is_there_.load(); };
    const auto prepare = [&](sleep_words& words) {
      for (auto& one : bells) words.announce(one);
      return look() ? last_look::over : last_look::nothing;
    };
    EXPECT_TRUE(make().wait_on<3>(look, prepare, sleeper::of_unknown));
    other.join();
    is_there_ = false;
  }
}

TEST(SleepWords, KeepTheirOrderAndCanBeCut) {
  std::array<futex_expectation, 3> room;
  sleep_words words(room);
  bell first = 1;
  std::atomic<std::uint64_t> second = 2;
  words.add(first, 10);
  words.add(second, 20);
  ASSERT_EQ(words.size(), 2U);
  EXPECT_EQ(words.all()[0].word, futex_address(first));
  EXPECT_EQ(words.all()[1].expected, 20U);
  words.cut(1);
  EXPECT_EQ(words.all().size(), 1U);
}

}  // namespace
}  // namespace muster::sleeper_test
