// SPDX-License-Identifier: BSL-1.0
// A process is killed at many instructions of what it does with a store: push a short and a long value, over a short, a
// long and none, with one version kept and several; erase, pull, wait. Afterwards the key has a whole version, others
// go on, and nothing is left.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>
#include <muster/memory/domain.hpp>
#include <muster/params.hpp>
#include <muster/pool/process.hpp>
#include <muster/queue/event.hpp>

#include "tracee.hpp"

namespace muster::store_step_test {
namespace {

enum class act : std::uint8_t { push_short, push_long, give, push_all, erase, pull };

struct scenario {
  const char* name;
  act what;
  bool over_long = false;  // the value that is there
  std::size_t depth = 1;
};

constexpr scenario scenarios[] = {
    {.name = "ShortOverShort", .what = act::push_short},
    {.name = "ShortOverLong", .what = act::push_short, .over_long = true},
    {.name = "LongOverShort", .what = act::push_long},
    {.name = "LongOverLong", .what = act::push_long, .over_long = true},
    {.name = "LongOverLongOfThree", .what = act::push_long, .over_long = true, .depth = 3},
    {.name = "GivenOverShort", .what = act::give},
    {.name = "GivenOverLongOfThree", .what = act::give, .over_long = true, .depth = 3},
    {.name = "AllOverShort", .what = act::push_all},
    {.name = "AllOverLongOfThree", .what = act::push_all, .over_long = true, .depth = 3},
    {.name = "EraseShort", .what = act::erase},
    {.name = "EraseLong", .what = act::erase, .over_long = true},
    {.name = "EraseLongOfThree", .what = act::erase, .over_long = true, .depth = 3},
    {.name = "PullLong", .what = act::pull, .over_long = true}};

using numbers = std::vector<int>;
numbers short_of(int value) { return numbers(10, value); }
numbers long_of(int value) { return numbers(100, value); }

void perform(const store& s, act what, const std::string& key) {
  switch (what) {
    case act::push_short: s.push(key, short_of(7)); return;
    case act::push_long: s.push(key, long_of(7)); return;
    case act::give: s.push(key, tensor::full<int>({1000}, 7)); return;
    case act::push_all: s.push_all({{key, short_of(7)}, {key + " too", long_of(7)}}); return;
    case act::erase: s.erase(key); return;
    case act::pull: static_cast<void>(s.pull<numbers>(key)); return;
  }
}

// The victim: it does the thing twice, the second time under the eyes of the tracer.
void run_victim(const store_ticket& ticket, act what, const event& is_traced, const tensor& has_ended) {
  const store s(ticket);
  perform(s, what, "warm");
  is_traced.wait();
  ::raise(SIGTRAP);
  perform(s, what, "key");
  has_ended.at<std::uint32_t>(0) = 1;
  for (;;) ::pause();
}

struct in_use {
  std::uint64_t blocks = 0;
  std::uint64_t holds = 0;

  [[nodiscard]] static in_use now() {
    const auto where = domain::of_program();
    where->keepsakes().tidy();
    const auto found = where->blocks().read_statistics();
    return {.blocks = found.live_blocks, .holds = found.holds};
  }
  friend bool operator==(const in_use&, const in_use&) = default;
};

class StoreStep : public testing::TestWithParam<scenario> {
protected:
  // Kills the victim after so many instructions, or at the end. Returns how many it has executed.
  static unsigned kill_after(unsigned instructions) {
    const store_ticket ticket({.depth = GetParam().depth, .most_keys = 16});
    const store here(ticket);
    for (const auto* key : {"warm", "key", "warm too", "key too"}) {
      for (int each = 1; each <= 4; ++each) here.push(key, GetParam().over_long ? long_of(each) : short_of(each));
    }
    const event is_traced;
    const auto has_ended = tensor::zeros<std::uint32_t>({1});
    const process other(run_victim, ticket, GetParam().what, is_traced, has_ended);
    test::tracee traced(other.pid());
    is_traced.set();
    traced.run_to_landing();
    unsigned done = 0;
    while (done < instructions && has_ended.at<std::uint32_t>(0) == 0 &&
           traced.step() == test::tracee::outcome::stopped) {
      ++done;
    }
    other.kill(SIGKILL);
    other.join();
    expect_all_is_well(here);
    return done;
  }

private:
  static numbers value_of_key(const store& here, std::uint64_t version) {
    EXPECT_TRUE(version == 4 || version == 5) << version;
    const bool is_tensor = GetParam().what == act::give && version == 5;
    return is_tensor ? here.pull<tensor>("key").value.to_vector<int>() : here.pull<numbers>("key").value;
  }
  static void expect_all_is_well(const store& here) {
    const auto version = here.version("key");
    if (version != 0) {
      EXPECT_THAT(value_of_key(here, version), testing::Each(version == 4 ? 4 : 7));
    } else {
      EXPECT_EQ(GetParam().what, act::erase);
    }
    if (GetParam().what == act::push_all) {
      EXPECT_EQ(here.version("key too"), version) << "all or nothing";
    }
    const auto before = version != 0 ? version : 5;
    for (std::uint64_t each = 1; each <= 4; ++each) {
      EXPECT_EQ(here.push("key", long_of(1)).version, before + each);
      for (const auto* key : {"warm", "warm too", "key too"}) EXPECT_TRUE(here.push(key, long_of(1)).ok);
    }
    // So many as the depth says, of both keys; nothing of what was there before.
    const auto full = in_use::now();
    here.push("key", long_of(2));
    EXPECT_EQ(in_use::now(), full);
  }
};

TEST_P(StoreStep, LeavesAWholeVersionAndNothingElse) {
  constexpr unsigned kills = 60;
  const auto stays = domain::of_program();
  const unsigned all = kill_after(~0U);
  kill_after(0);  // the first one leaves things warm
  const auto before = in_use::now();
  for (unsigned each = 0; each < kills && !HasFailure(); ++each) {
    const unsigned after = static_cast<unsigned>(std::uint64_t{all} * each / kills) + each % 7;
    kill_after(after);
    EXPECT_EQ(in_use::now(), before) << "killed after " << after << " of " << all << " instructions";
  }
}

INSTANTIATE_TEST_SUITE_P(All, StoreStep, testing::ValuesIn(scenarios),
                         [](const auto& each) { return std::string(each.param.name); });

// ---- stopped for a while in the middle of a push of several

unsigned stop_after(unsigned instructions) {
  const store_ticket ticket({.most_keys = 16});
  const store here(ticket);
  for (const auto* key : {"warm", "key", "warm too", "key too"}) here.push(key, short_of(1));
  const event is_traced;
  const auto has_ended = tensor::zeros<std::uint32_t>({1});
  const process other(run_victim, ticket, act::push_all, is_traced, has_ended);
  test::tracee traced(other.pid());
  is_traced.set();
  traced.run_to_landing();
  unsigned done = 0;
  while (done < instructions && has_ended.at<std::uint32_t>(0) == 0 &&
         traced.step() == test::tracee::outcome::stopped) {
    ++done;
  }
  const auto both = here.pull_all<numbers>({"key", "key too"});
  EXPECT_EQ(both[0].value.front(), both[1].value.front()) << "all or nothing, also while it stands still";
  EXPECT_TRUE(here.push("key", short_of(9), {.expected = both[0].version})) << "it holds up no other process";
  EXPECT_EQ(here.pull<numbers>("key").value, short_of(9));
  traced.release();
  EXPECT_TRUE(test::eventually([&] { return has_ended.at<std::uint32_t>(0) == 1; }));
  EXPECT_EQ(here.pull<numbers>("key too").value, long_of(7));
  EXPECT_EQ(here.pull<numbers>("key").value, both[1].value.front() == 7 ? short_of(9) : short_of(7));
  return done;
}

TEST(StoreStoppedStep, APushOfSeveralHoldsUpNoOther) {
  constexpr unsigned stops = 60;
  const auto stays = domain::of_program();
  const unsigned all = stop_after(~0U);
  stop_after(0);
  const auto before = in_use::now();
  for (unsigned each = 0; each < stops && !testing::Test::HasFailure(); ++each) {
    const unsigned after = static_cast<unsigned>(std::uint64_t{all} * each / stops) + each % 7;
    stop_after(after);
    EXPECT_EQ(in_use::now(), before) << "stopped after " << after << " of " << all << " instructions";
  }
}

}  // namespace
}  // namespace muster::store_step_test
