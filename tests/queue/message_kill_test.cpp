// SPDX-License-Identifier: BSL-1.0
// Four producers and four consumers in processes of their own, which are killed at random and replaced.
#include <sys/prctl.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include <muster/queue/shared_queue.hpp>

#include "message_support.hpp"
#include "seed.hpp"
#include "soak_time.hpp"

namespace muster::message_kill_test {
namespace {

using test::member;
using test::parcel;

constexpr std::size_t producers = 4;
constexpr std::size_t consumers = 4;
constexpr std::uint64_t most_messages = std::uint64_t{1} << 20U;  // of a producer

std::uint64_t make_number(std::size_t producer, std::uint64_t count) { return producer << 32U | count; }
std::size_t producer_of(std::uint64_t number) { return number >> 32U; }
std::uint64_t count_of(std::uint64_t number) { return number & 0xffffffffU; }

// What they did, which outlives them.
struct record {
  struct of_producer {
    std::atomic<std::uint64_t> next = 0;
    std::array<std::atomic<std::uint8_t>, most_messages> confirmed{};
    std::array<std::atomic<std::uint8_t>, most_messages> seen{};
  };
  std::array<of_producer, producers> each{};
  std::atomic<std::uint64_t> overtaken = 0;
  std::atomic<std::uint64_t> broken = 0;
};

using queue_type = shared_queue<parcel>;

int produce(const queue_type& queue, record& with, std::size_t self) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto& mine = with.each[self];
  for (;;) {
    const auto count = mine.next.fetch_add(1);
    if (count >= most_messages) return 0;
    const std::size_t blocks = count % 16 == 0 ? 1 + count % 3 : 0;
    if (!queue.push(parcel::of(make_number(self, count), blocks, std::string(count % 64 == 1 ? 500 : 8, 'x'))))
      return 0;
    mine.confirmed[count] = 1;
  }
}

// Consumers of even number pop, the others lease.
int consume(const queue_type& queue, record& with, std::size_t self) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::array<std::uint64_t, producers> next{};
  const auto note = [&](const parcel& found) {
    const auto from = producer_of(found.number);
    const auto count = count_of(found.number);
    if (from >= producers || count >= most_messages || !found.is_whole()) {
      ++with.broken;
      return;
    }
    if (count < next[from]) ++with.overtaken;
    next[from] = std::max(next[from], count + 1);
    ++with.each[from].seen[count];
  };
  if (self % 2 == 0) {
    while (const auto found = queue.pop()) note(*found);
    return 0;
  }
  while (auto found = queue.lease()) {
    note(**found);
    found->ack();
  }
  return 0;
}

struct outcome {
  std::uint64_t confirmed = 0;
  std::uint64_t lost = 0;
  std::uint64_t doubled = 0;
};

outcome read(const record& with) {
  outcome found;
  for (const auto& each : with.each) {
    for (std::uint64_t count = 0; count < std::min(each.next.load(), most_messages); ++count) {
      if (each.confirmed[count] != 0) ++found.confirmed;
      if (each.confirmed[count] != 0 && each.seen[count] == 0) ++found.lost;
      if (each.seen[count] > 1) found.doubled += each.seen[count] - 1U;
    }
  }
  return found;
}

TEST(MessageKill, NothingIsLostOrDoubledButWhatADeadConsumerWasAt) {
  std::mt19937 random(test::seed());
  const auto shared =
      domain::of_program({.arena_bytes = std::size_t{256} << 20U, .max_participants = 64, .max_blocks = 4096});
  const test::shared<record> with;
  unsigned killed_while_popping = 0;
  unsigned killed_while_leasing = 0;
  unsigned killed_producers = 0;
  {
    const queue_type queue(16, {.spin = std::chrono::microseconds(5)});
    std::vector<std::unique_ptr<member<queue_type>>> all(producers + consumers);
    const auto start = [&](std::size_t which) {
      all[which].reset();
      all[which] = std::make_unique<member<queue_type>>(queue, [&, which](const queue_type& mine) {
        return which < producers ? produce(mine, *with, which) : consume(mine, *with, which - producers);
      });
    };
    for (std::size_t which = 0; which < all.size(); ++which) start(which);
    const auto until = deadline::after(test::soak_time(std::chrono::seconds(3)));
    while (!until.expired()) {
      test::work_for(std::chrono::microseconds(200 + random() % 3000));
      const auto victim = random() % all.size();
      all[victim]->kill();
      ++(victim < producers ? killed_producers : victim % 2 == 0 ? killed_while_popping : killed_while_leasing);
      start(victim);
    }
    queue.close();
    for (auto& each : all) EXPECT_EQ(each->end().code(), 0);
    EXPECT_FALSE(queue.try_pop());
  }
  const auto found = read(*with);
  std::printf("%u producers and %u consumers killed, %llu messages: %llu lost, %llu doubled, %llu overtaken\n",
              killed_producers, killed_while_popping + killed_while_leasing,
              static_cast<unsigned long long>(found.confirmed), static_cast<unsigned long long>(found.lost),
              static_cast<unsigned long long>(found.doubled), static_cast<unsigned long long>(with->overtaken.load()));
  EXPECT_EQ(with->broken, 0U);
  EXPECT_LE(found.lost, killed_while_popping);
  EXPECT_LE(found.doubled, killed_while_leasing);
  EXPECT_LE(with->overtaken, killed_while_popping + killed_while_leasing);
  EXPECT_GT(found.confirmed, 1000U);
  EXPECT_TRUE(test::is_all_free(*shared));
}

TEST(MessageKill, WhileOnlyProducersDieNothingIsLostAndOrderIsKept) {
  const auto shared =
      domain::of_program({.arena_bytes = std::size_t{256} << 20U, .max_participants = 64, .max_blocks = 4096});
  const test::shared<record> with;
  {
    const queue_type queue(8, {.spin = std::chrono::nanoseconds(0)});
    std::vector<std::unique_ptr<member<queue_type>>> all(producers + consumers);
    const auto start = [&](std::size_t which) {
      all[which] = std::make_unique<member<queue_type>>(queue, [&, which](const queue_type& mine) {
        return which < producers ? produce(mine, *with, which) : consume(mine, *with, which - producers);
      });
    };
    for (std::size_t which = 0; which < all.size(); ++which) start(which);
    for (unsigned round = 0; round < 200; ++round) {
      test::work_for(std::chrono::microseconds(100 + 37 * (round % 29)));
      all[round % producers]->kill();
      start(round % producers);
    }
    queue.close();
    for (auto& each : all) EXPECT_EQ(each->end().code(), 0);
  }
  const auto found = read(*with);
  EXPECT_EQ(with->broken, 0U);
  EXPECT_EQ(found.lost, 0U);
  EXPECT_EQ(found.doubled, 0U);
  EXPECT_EQ(with->overtaken, 0U);
  EXPECT_GT(found.confirmed, 1000U);
  EXPECT_TRUE(test::is_all_free(*shared));
}

}  // namespace
}  // namespace muster::message_kill_test
