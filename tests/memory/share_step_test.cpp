// SPDX-License-Identifier: BSL-1.0
// A participant is killed after every few instructions of what it does to blocks that several hold. Afterwards the
// others still have what they held, and when they let go of it everything is free: memory and descriptors. Or it is
// stopped there, and goes on when the block that it is at has ended and another has begun in its descriptor.
#include <sys/prctl.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/detail/futex.hpp>
#include <muster/base/error.hpp>
#include <muster/memory/domain.hpp>

#include "processes.hpp"
#include "tracee.hpp"

namespace muster::share_step_test {
namespace {

constexpr std::size_t block_bytes = 100'000;
constexpr std::size_t descriptors = 40;

unique_fd duplicate(const unique_fd& file) { return unique_fd(::dup(file.get())); }

// What host and victim say to each other.
struct stage {
  std::atomic<std::uint64_t> to_victim = 0;  // the name of a hold
  std::atomic<std::uint64_t> lent = 0;       // the name of a block
  std::atomic<std::uint64_t> from_victim = 0;
  std::atomic<std::uint32_t> traced = 0;
  std::atomic<bool> ended = false;
  std::atomic<bool> has_kept = false;
  std::atomic<bool> was_refused = false;
  std::atomic<bool> has_looked_again = false;  // and was refused then
};

// The host says when it is traced. It lands where it stands.
void land_once_traced(stage& with) {
  while (with.traced == 0) futex_wait(futex_address(with.traced), 0, futex_scope::shared);
  ::raise(SIGTRAP);
}
void let_land(stage& with, test::tracee& victim) {
  with.traced = 1;
  futex_wake(futex_address(with.traced), 1, futex_scope::shared);
  victim.run_to_landing();
}
// False when it had come to its end before.
bool step(const stage& with, test::tracee& victim, unsigned instructions) {
  unsigned done = 0;
  for (; done < instructions && !with.ended; ++done) {
    if (victim.step() != test::tracee::outcome::stopped) break;
  }
  return done == instructions;
}

struct scenario {
  const char* name;
  // The way to where the victim lands, and the way from there on.
  void (*before)(arena&, stage&, shared_block& block);
  void (*after)(arena&, stage&, shared_block& block);
  unsigned stride = 2;  // instructions from one point to the next
};

// The first allocation looks how much memory there is, which is many instructions and touches nothing shared.
void warm_up(arena& memory, stage&, shared_block&) { memory.allocate_shared(block_bytes).reset(); }
void receive(arena& memory, stage& with, shared_block& block) { block = memory.receive(with.to_victim); }
void make(arena& memory, stage&, shared_block& block) { block = memory.allocate_shared(block_bytes); }
void borrow(arena& memory, stage& with, shared_block& block) { block = memory.borrow(with.lent); }
// A run that is too long for what is cached: extents are claimed, and a descriptor is bound to them.
void make_longer(arena& memory, stage&, shared_block& block) { block = memory.allocate_shared(3 * block_bytes); }
// The first small block of its size: an extent is claimed, and cut.
void make_small(arena& memory, stage&, shared_block&) {
  static block kept;
  kept = memory.allocate(300);
}

// What messages lie in.
shared_block& carrier_here() {
  static shared_block made;
  return made;
}

constexpr scenario scenarios[] = {
    {.name = "Allocate", .before = warm_up, .after = make},
    {.name = "AllocateAFreshRun", .before = warm_up, .after = make_longer, .stride = 6},
    {.name = "AllocateAFreshExtentOfSmallBlocks", .before = warm_up, .after = make_small, .stride = 5},
    {.name = "HandOver",
     .before = make,
     .after = [](arena& memory, stage& with,
                 shared_block& block) { with.from_victim = memory.hand_over(std::move(block)); },
     .stride = 4},
    {.name = "Release", .before = make, .after = [](arena&, stage&, shared_block& block) { block.reset(); }},
    {.name = "ShareAndSend",
     .before = make,
     .after = [](arena& memory, stage& with, shared_block& block) { with.from_victim = memory.send(block); },
     .stride = 6},
    {.name = "SendOn",
     .before = receive,
     .after = [](arena& memory, stage& with, shared_block& block) { with.from_victim = memory.send(block); },
     .stride = 4},
    {.name = "Receive", .before = warm_up, .after = receive, .stride = 1},
    {.name = "DropOneOfTwoHolds",
     .before = receive,
     .after = [](arena&, stage&, shared_block& block) { block.reset(); }},
    {.name = "DropTheLastHold",
     .before =
         [](arena& memory, stage&, shared_block& block) {
           block = memory.allocate_shared(block_bytes);
           static_cast<void>(memory.name_of(block));
         },
     .after = [](arena&, stage&, shared_block& block) { block.reset(); },
     .stride = 5},
    {.name = "SendInABlock",
     .before =
         [](arena& memory, stage& with, shared_block& block) {
           block = memory.receive(with.to_victim);
           carrier_here() = memory.allocate_shared(block_bytes);
           static_cast<void>(memory.name_of(carrier_here()));
         },
     .after = [](arena& memory, stage&,
                 shared_block& block) { memory.entrust(memory.send(block, carrier_here()), carrier_here()); },
     .stride = 4},
    {.name = "FreeABlockWithWhatItCarries",
     .before =
         [](arena& memory, stage& with, shared_block& block) {
           block = memory.allocate_shared(block_bytes);
           auto theirs = memory.receive(with.to_victim);
           auto inner = memory.allocate_shared(block_bytes);
           memory.entrust(memory.send(theirs, inner), inner);
           memory.entrust(memory.send(inner, block), block);
         },
     .after = [](arena&, stage&, shared_block& block) { block.reset(); },
     .stride = 37},
    {.name = "KeepWhatIsLent",
     .before = borrow,
     .after = [](arena& memory, stage&, shared_block& block) { memory.keep(block); },
     .stride = 4},
    {.name = "MakeAndSendACell",
     .before = warm_up,
     .after =
         [](arena& memory, stage& with, shared_block& block) {
           block = memory.allocate_cell();
           with.from_victim = memory.send(block);
         },
     .stride = 40},
    {.name = "DropTheLastHoldOnACell",
     .before =
         [](arena& memory, stage&, shared_block& block) {
           block = memory.allocate_cell();
           static_cast<void>(memory.name_of(block));
         },
     .after = [](arena&, stage&, shared_block& block) { block.reset(); },
     .stride = 17},
    {.name = "KeepAndDrop",
     .before = borrow,
     .after =
         [](arena& memory, stage&, shared_block& block) {
           memory.keep(block);
           block.reset();
         },
     .stride = 6}};

class Share : public testing::Test {
protected:
  domain join(participant_id id) {
    return domain({.control = duplicate(host_.files().control), .arena = duplicate(host_.files().arena)}, id);
  }
  void expect_all_is_free() {
    const auto found = host_.blocks().read_statistics();
    EXPECT_EQ(found.live_blocks, 0U);
    EXPECT_EQ(found.holds, 0U);
    EXPECT_EQ(found.held_bytes, found.cached_bytes);
    expect_descriptors_are_free();
  }

  domain host_{
      {.arena_bytes = std::size_t{16} << 20U, .max_participants = 8, .max_blocks = descriptors, .inherited = true}};

private:
  void expect_descriptors_are_free() {
    auto& memory = host_.blocks();
    const auto some = memory.allocate_shared(1);
    std::vector<std::uint64_t> sent;
    try {
      for (;;) sent.push_back(memory.send(some));
    } catch (const error&) {  // NOLINT(bugprone-empty-catch): that was all
    }
    const auto cached = memory.read_statistics().cached_bytes / memory_of_a_run();
    EXPECT_EQ(sent.size() + 2 + cached, descriptors);
    for (const auto each : sent) memory.receive(each).reset();
  }
  static constexpr std::size_t memory_of_a_run() { return extents_for(block_bytes) * extent_bytes; }
};

class ShareStep : public Share, public testing::WithParamInterface<scenario> {
protected:
  // Kills the victim after so many instructions; false when it had come to its end before.
  bool kill_after(unsigned instructions, bool disturbed) {
    const test::shared<stage> with;
    auto mine = host_.blocks().allocate_shared(block_bytes);
    std::strcpy(reinterpret_cast<char*>(mine.data()), "the host's");
    with->lent = host_.blocks().name_of(mine);
    with->to_victim = host_.blocks().send(mine);
    const auto id = host_.participants().enrol();
    const auto victim = test::spawn(1, [&](std::size_t) { return act(*with, id); });
    test::tracee traced(victim->pid(0));
    let_land(*with, traced);
    const bool more = step(*with, traced, instructions);
    victim->kill(0);
    if (disturbed) host_.blocks().receive(host_.blocks().send(mine)).reset();  // others go on meanwhile
    static_cast<void>(victim->wait(0));
    expect_all_is_right(*with, id, mine);
    return more;
  }

  int act(stage& with, participant_id id) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when the test is killed
    domain joined = join(id);
    shared_block block;
    GetParam().before(joined.blocks(), with, block);
    land_once_traced(with);
    GetParam().after(joined.blocks(), with, block);
    with.ended = true;
    for (;;) ::pause();
  }

  void expect_all_is_right(stage& with, participant_id dead, shared_block& mine) {
    auto& memory = host_.blocks();
    shared_block arrived;
    if (with.from_victim != 0)
      arrived = memory.receive(with.from_victim);  // as a queue's recovery does, before that of blocks
    host_.bury(dead);
    EXPECT_STREQ(reinterpret_cast<const char*>(mine.data()), "the host's");
    try {
      memory.receive(with.to_victim).reset();  // the victim had not received it
    } catch (const error&) {                   // NOLINT(bugprone-empty-catch): it had, and recovery has dropped it
    }
    arrived.reset();
    mine.reset();
    expect_all_is_free();
  }
};

TEST_P(ShareStep, AKillAtAnyInstructionHarmsNobodyElse) {
  unsigned points = 0;
  for (bool more = true; more && !HasFailure(); ++points) {
    const auto at = points * GetParam().stride;
    more = kill_after(at, points % 2 == 0);
    if (HasFailure()) ADD_FAILURE() << "killed after " << at << " instructions";
  }
  std::printf("%u kill points\n", points);
  EXPECT_GE(points, 250U);
}

// The victim was lent a block, and is to keep it. Somewhere on that way it stops, the host lets go of the block and
// makes the next, and the victim goes on.
class ShareStepBetween : public Share {
protected:
  static constexpr unsigned stride = 7;  // instructions

  struct course {
    bool stopped = false;           // before it had come to its end
    bool refused_at_last = false;   // the block was there when it looked first, and not when it looked again
    bool counts_with_next = false;  // it was killed while it held the next block, which nobody had told it of
  };

  // After so many instructions the block ends. After so many more it is killed; or it lets go of what it has kept.
  course play(unsigned before, std::optional<unsigned> after = std::nullopt) {
    const test::shared<stage> with;
    auto mine = block_with("the first");
    with->lent = host_.blocks().name_of(mine);
    const auto id = host_.participants().enrol();
    const auto victim = test::spawn(1, [&](std::size_t) { return act(*with, id); });
    test::tracee traced(victim->pid(0));
    let_land(*with, traced);
    course seen{.stopped = step(*with, traced, before)};
    mine.reset();
    mine = block_with("the second");
    static_cast<void>(host_.blocks().name_of(mine));
    if (after) {
      step(*with, traced, *after);
      seen.counts_with_next = !host_.blocks().is_sole(mine);
    } else {
      traced.run_to_landing();
      EXPECT_NE(with->has_kept, with->was_refused);
      EXPECT_TRUE(host_.blocks().is_sole(mine));
      traced.run_to_landing();
    }
    seen.refused_at_last = with->has_looked_again;
    victim->kill(0);
    static_cast<void>(victim->wait(0));
    host_.bury(id);
    EXPECT_STREQ(reinterpret_cast<const char*>(mine.data()), "the second");
    mine.reset();
    expect_all_is_free();
    return seen;
  }

  // Where the victim has found the block and has not counted itself yet, far from either.
  unsigned between_look_and_count() {
    std::vector<unsigned> found;
    course seen{.stopped = true};
    for (unsigned before = 0; seen.stopped && !HasFailure(); before += 3 * stride) {
      seen = play(before);
      if (seen.refused_at_last) found.push_back(before);
    }
    EXPECT_FALSE(found.empty());
    return found.empty() ? 0 : found[found.size() / 2];
  }

private:
  shared_block block_with(const char* content) {
    auto made = host_.blocks().allocate_shared(block_bytes);
    std::strcpy(reinterpret_cast<char*>(made.data()), content);
    return made;
  }

  int act(stage& with, participant_id id) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when the test is killed
    domain joined = join(id);
    auto& memory = joined.blocks();
    auto block = memory.borrow(with.lent);
    memory.keep(block);  // so that the second time is like all others
    memory.unkeep(block);
    land_once_traced(with);
    keep(memory, block, with);
    with.ended = true;
    ::raise(SIGTRAP);
    block.reset();
    ::raise(SIGTRAP);
    for (;;) ::pause();
  }

  static void keep(arena& memory, const shared_block& block, stage& with) {
    try {
      memory.keep(block);
      with.has_kept = std::string_view(reinterpret_cast<const char*>(block.data())) == "the first";
    } catch (const error& refused) {
      with.was_refused = refused.code() == errc::corrupted;
      with.has_looked_again = std::string_view(refused.what()).find("such a block any more") != std::string_view::npos;
    }
  }
};

TEST_F(ShareStepBetween, ABlockThatEndsBeforeItIsCountedIsGoneAndTheNextIsNotKeptInItsPlace) {
  unsigned refused_at_last = 0;
  course seen{.stopped = true};
  for (unsigned before = 0; seen.stopped && !HasFailure(); before += stride) {
    seen = play(before);
    refused_at_last += seen.refused_at_last ? 1 : 0;
    if (HasFailure()) ADD_FAILURE() << "the block ended after " << before << " instructions";
  }
  EXPECT_GE(refused_at_last, 5U);
}

TEST_F(ShareStepBetween, AKillWhileTheNextIsHeldInItsPlaceHarmsNobodyElse) {
  constexpr unsigned points_behind = 20;  // when it holds that no more
  constexpr unsigned most_instructions = 30'000;
  const auto before = between_look_and_count();
  unsigned held = 0;
  unsigned behind = 0;
  for (unsigned after = 0; behind < points_behind && after < most_instructions && !HasFailure(); after += stride) {
    const auto seen = play(before, after);
    held += seen.counts_with_next ? 1 : 0;
    behind += held > 0 && !seen.counts_with_next ? 1 : 0;
    if (HasFailure()) ADD_FAILURE() << "the block ended after " << before << ", and the victim " << after << " later";
  }
  std::printf("%u kill points while it held the next\n", held);
  EXPECT_GE(held, 5U);
  EXPECT_EQ(behind, points_behind);
}

INSTANTIATE_TEST_SUITE_P(Arena, ShareStep, testing::ValuesIn(scenarios),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace muster::share_step_test
