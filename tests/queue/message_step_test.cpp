// SPDX-License-Identifier: BSL-1.0
// A producer or consumer is killed after every few instructions of a push, a pop and a lease. Afterwards the queue has
// what it must have, in order and whole, its whole capacity, and when it is dropped nothing is left of it.
#include <sys/prctl.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdio>

#include <gtest/gtest.h>

#include <muster/memory/domain.hpp>
#include <muster/queue/p2p_queue.hpp>
#include <muster/queue/shared_queue.hpp>

#include "message_support.hpp"
#include "tracee.hpp"

namespace muster::message_step_test {
namespace {

using test::member;
using test::parcel;

constexpr std::size_t capacity = 4;
constexpr std::uint64_t pushed_first = 1000;  // by the host, and two more
constexpr std::uint64_t pushed_by_victim = 2000;
constexpr std::size_t descriptors = 96;

// What host and victim say to each other.
struct stage {
  std::atomic<std::uint32_t> traced = 0;
  std::atomic<bool> ended = false;
};

enum class act { push, pop, lease, lease_and_ack };

struct scenario {
  const char* name;
  act what;
  std::size_t blocks;      // that go with each message
  std::size_t text_bytes;  // of each
  bool p2p = false;
};

constexpr std::size_t long_text = 1000;  // goes in a block
constexpr scenario scenarios[] = {
    {.name = "PushInTheCell", .what = act::push, .blocks = 0, .text_bytes = 20},
    {.name = "PushWithBlocks", .what = act::push, .blocks = 2, .text_bytes = 20},
    {.name = "PushInABlock", .what = act::push, .blocks = 1, .text_bytes = long_text},
    {.name = "PushBetweenTwo", .what = act::push, .blocks = 0, .text_bytes = 20, .p2p = true},
    {.name = "PopFromTheCell", .what = act::pop, .blocks = 0, .text_bytes = 20},
    {.name = "PopWithBlocks", .what = act::pop, .blocks = 2, .text_bytes = 20},
    {.name = "PopFromABlock", .what = act::pop, .blocks = 1, .text_bytes = long_text},
    {.name = "PopBetweenTwo", .what = act::pop, .blocks = 0, .text_bytes = 20, .p2p = true},
    {.name = "LeaseAndPutBack", .what = act::lease, .blocks = 2, .text_bytes = 20},
    {.name = "LeaseAndAck", .what = act::lease_and_ack, .blocks = 2, .text_bytes = 20},
    {.name = "LeaseAndAckFromABlock", .what = act::lease_and_ack, .blocks = 1, .text_bytes = long_text},
    {.name = "PushWithBlocksBetweenTwo", .what = act::push, .blocks = 2, .text_bytes = 20, .p2p = true},
    {.name = "PushInABlockBetweenTwo", .what = act::push, .blocks = 1, .text_bytes = long_text, .p2p = true},
    {.name = "PopWithBlocksBetweenTwo", .what = act::pop, .blocks = 2, .text_bytes = 20, .p2p = true},
    {.name = "PopFromABlockBetweenTwo", .what = act::pop, .blocks = 1, .text_bytes = long_text, .p2p = true},
    {.name = "LeaseAndPutBackBetweenTwo", .what = act::lease, .blocks = 2, .text_bytes = 20, .p2p = true},
    {.name = "LeaseAndAckBetweenTwo", .what = act::lease_and_ack, .blocks = 2, .text_bytes = 20, .p2p = true},
    {.name = "LeaseAndAckFromABlockBetweenTwo",
     .what = act::lease_and_ack,
     .blocks = 1,
     .text_bytes = long_text,
     .p2p = true}};

template <class Queue>
void perform(const Queue& queue, act what, const parcel& given, parcel& taken) {
  switch (what) {
    case act::push: queue.push(given); return;
    case act::pop: taken = *queue.pop(); return;
    case act::lease: static_cast<void>(queue.lease()); return;
    case act::lease_and_ack: queue.lease()->ack(); return;
  }
}

class MessageStep : public testing::TestWithParam<scenario> {
protected:
  // Kills the victim after so many instructions, or at its end. Returns how many it has executed.
  template <class Queue>
  unsigned kill_after(unsigned instructions) {
    const test::shared<stage> with;
    unsigned done = 0;
    {
      const Queue queue(capacity, {.spin = std::chrono::nanoseconds(0)});
      member<Queue> victim(queue, [&](auto& mine) { return run_victim(mine, *with); });
      test::tracee traced(victim.process().pid(0));
      with->traced = 1;
      futex_wake(futex_address(with->traced), 1, futex_scope::shared);
      traced.run_to_landing();  // it has warmed up, and left the queue empty
      for (std::uint64_t each = 0; each < 3; ++each) queue.push(make(pushed_first + each));
      traced.run_to_landing();
      for (; done < instructions && !with->ended; ++done) {
        if (traced.step() != test::tracee::outcome::stopped) break;
      }
      victim.kill();
      expect_contents(queue, with->ended);
      expect_capacity(queue);
    }
    EXPECT_TRUE(test::is_all_free(*domain_));
    expect_descriptors_are_free();
    return done;
  }

  template <class Queue>
  static int run_victim(const Queue& queue, stage& with) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when the test is killed
    while (with.traced == 0) futex_wait(futex_address(with.traced), 0, futex_scope::shared);
    parcel taken;
    queue.push(make(1));
    perform(queue, GetParam().what == act::push ? act::pop : GetParam().what, taken, taken);
    static_cast<void>(queue.try_pop());
    const auto given = make(pushed_by_victim);
    taken = {};
    ::raise(SIGTRAP);
    ::raise(SIGTRAP);
    perform(queue, GetParam().what, given, taken);
    with.ended = true;
    for (;;) ::pause();
  }

  static parcel make(std::uint64_t number) {
    return parcel::of(number, GetParam().blocks, std::string(GetParam().text_bytes, 'x'));
  }

  template <class Queue>
  static void expect_contents(const Queue& queue, bool ended) {
    std::vector<std::uint64_t> found;
    while (const auto each = queue.try_pop()) {
      EXPECT_TRUE(each->is_whole());
      EXPECT_EQ(each->blocks.size(), GetParam().blocks);
      EXPECT_EQ(each->text.size(), GetParam().text_bytes);
      found.push_back(each->number);
    }
    std::vector<std::uint64_t> expected{pushed_first, pushed_first + 1, pushed_first + 2};
    const auto what = GetParam().what;
    const bool changed = found.size() != expected.size();
    EXPECT_TRUE(changed || !ended || what == act::lease);
    if (changed && what == act::push) expected.push_back(pushed_by_victim);
    if (changed && (what == act::pop || what == act::lease_and_ack)) expected.erase(expected.begin());
    EXPECT_EQ(found, expected);
  }

  template <class Queue>
  static void expect_capacity(const Queue& queue) {
    for (std::uint64_t each = 0; each < capacity; ++each) EXPECT_TRUE(queue.try_push(parcel::of(each)));
    EXPECT_FALSE(queue.try_push(parcel::of(capacity)));
    for (std::uint64_t each = 0; each < capacity; ++each) EXPECT_EQ(queue.try_pop()->number, each);
    EXPECT_FALSE(queue.try_pop());
  }

  void expect_descriptors_are_free() {
    auto& memory = domain_->blocks();
    const auto some = memory.allocate_shared(1);
    std::vector<std::uint64_t> sent;
    try {
      for (;;) sent.push_back(memory.send(some));
    } catch (const error&) {  // NOLINT(bugprone-empty-catch): that was all
    }
    const auto cached = memory.read_statistics().cached_bytes / extent_bytes;
    EXPECT_EQ(sent.size() + 2 + cached, descriptors);
    for (const auto each : sent) memory.receive(each).reset();
  }

  std::shared_ptr<domain> domain_ = domain::of_program(
      {.arena_bytes = std::size_t{16} << 20U, .max_participants = 8, .max_blocks = descriptors, .inherited = true});
};

TEST_P(MessageStep, AKillAtAnyInstructionLosesNothingThatWasPromised) {
  const auto kill = [this](unsigned at) {
    return GetParam().p2p ? kill_after<p2p_queue<parcel>>(at) : kill_after<shared_queue<parcel>>(at);
  };
  const auto all = std::min({kill(UINT_MAX), kill(UINT_MAX), kill(UINT_MAX)});  // some runs take a longer way
  const auto points = std::min(all, 300U);
  unsigned reached = 0;
  for (unsigned point = 0; point < points && !HasFailure(); ++point) {
    const auto at = static_cast<unsigned>(std::uint64_t{all} * point / points);
    if (kill(at) == at) ++reached;
    if (HasFailure()) ADD_FAILURE() << "killed after " << at << " instructions";
  }
  std::printf("%u kill points in %u instructions\n", reached, all);
  EXPECT_GE(reached, 250U);
}

INSTANTIATE_TEST_SUITE_P(Queues, MessageStep, testing::ValuesIn(scenarios),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace muster::message_step_test
