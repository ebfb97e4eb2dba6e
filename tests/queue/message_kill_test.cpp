// SPDX-License-Identifier: BSL-1.0
// Producers and consumers in processes of their own, which are killed at random and replaced: four of each at a shared
// queue, one of each between two.
#include <sys/prctl.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <muster/memory/domain.hpp>
#include <muster/queue/p2p_queue.hpp>
#include <muster/queue/shared_queue.hpp>

#include "message_support.hpp"
#include "seed.hpp"
#include "soak_time.hpp"

namespace muster::message_kill_test {
namespace {

using test::member;
using test::parcel;

constexpr std::size_t producers = 4;
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

template <class Queue>
int produce(const Queue& queue, record& with, std::size_t self) {
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

enum class manner { produces, pops, leases };

template <class Queue>
int consume(const Queue& queue, record& with, manner how) {
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
  if (how == manner::pops) {
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

// Members that are killed, and replaced at once.
template <class Queue>
class crowd {
public:
  explicit crowd(const Queue& queue) : queue_(queue) {}

  void add(manner how) {
    members_.push_back({.how = how, .process = nullptr});
    start(members_.size() - 1);
  }
  void kill(std::size_t which) {
    members_[which].process->kill();
    ++killed_[static_cast<std::size_t>(members_[which].how)];
  }
  void start(std::size_t which) {
    const auto how = members_[which].how;
    members_[which].process = std::make_unique<member<Queue>>(queue_, [this, which, how](const Queue& mine) {
      return how == manner::produces ? produce(mine, *with_, which) : consume(mine, *with_, how);
    });
  }
  void replace_by(std::size_t which, manner how) {
    members_[which].how = how;
    start(which);
  }
  // Where work is slow, few messages come through while members are killed: the rest is left in peace.
  void finish() {
    EXPECT_TRUE(test::eventually([&] { return read(*with_).confirmed > 1000; }));
    queue_.close();
    for (auto& each : members_) EXPECT_EQ(each.process->end().code(), 0);
    EXPECT_FALSE(queue_.try_pop());
    members_.clear();
  }
  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] unsigned killed(manner how) const { return killed_[static_cast<std::size_t>(how)]; }

  void expect_only_what_was_promised() const {
    const auto found = read(*with_);
    const auto ull = [](std::uint64_t number) { return static_cast<unsigned long long>(number); };
    const auto pops = killed(manner::pops);
    const auto leases = killed(manner::leases);
    std::printf("%u producers and %u consumers killed, %llu messages: %llu lost, %llu doubled, %llu overtaken\n",
                killed(manner::produces), pops + leases, ull(found.confirmed), ull(found.lost), ull(found.doubled),
                ull(with_->overtaken));
    EXPECT_EQ(with_->broken, 0U);
    EXPECT_LE(found.lost, pops);
    EXPECT_LE(found.doubled, leases);
    EXPECT_LE(with_->overtaken, pops + leases);
  }

private:
  struct person {
    manner how;
    std::unique_ptr<member<Queue>> process;
  };

  const Queue& queue_;
  const test::shared<record> with_;
  std::vector<person> members_;
  std::array<unsigned, 3> killed_{};
};

class MessageKill : public testing::Test {
protected:
  void TearDown() override { EXPECT_TRUE(test::is_all_free(*domain_)); }

  const std::shared_ptr<domain> domain_ = domain::of_program(
      {.arena_bytes = std::size_t{256} << 20U, .max_participants = 64, .max_blocks = 4096, .inherited = true});
};

// Any of them, one after the other, for about so long.
template <class Crowd>
void kill_at_random(Crowd& all, std::chrono::seconds time) {
  std::mt19937 random(test::seed());
  const auto until = deadline::after(test::soak_time(time));
  while (!until.expired()) {
    test::work_for(std::chrono::microseconds(200 + random() % 3000));
    const auto victim = random() % all.size();
    all.kill(victim);
    all.start(victim);
  }
  all.finish();
}

TEST_F(MessageKill, NothingIsLostOrDoubledButWhatADeadConsumerWasAt) {
  const shared_queue<parcel> queue(16, {.spin = std::chrono::microseconds(5)});
  crowd all(queue);
  for (std::size_t each = 0; each < producers; ++each) all.add(manner::produces);
  for (const auto how : {manner::pops, manner::leases, manner::pops, manner::leases}) all.add(how);
  kill_at_random(all, std::chrono::seconds(3));
  all.expect_only_what_was_promised();
}

TEST_F(MessageKill, WhileNobodyLeasesNothingIsEverDoubled) {
  const shared_queue<parcel> queue(16, {.spin = std::chrono::microseconds(5)});
  crowd all(queue);
  for (std::size_t each = 0; each < producers; ++each) all.add(manner::produces);
  for (std::size_t each = 0; each < 4; ++each) all.add(manner::pops);
  kill_at_random(all, std::chrono::seconds(2));
  all.expect_only_what_was_promised();  // of which no message is twice: at most once
}

TEST_F(MessageKill, WhileOnlyProducersDieNothingIsLostAndOrderIsKept) {
  const shared_queue<parcel> queue(8, {.spin = std::chrono::nanoseconds(0)});
  crowd all(queue);
  for (std::size_t each = 0; each < producers; ++each) all.add(manner::produces);
  for (const auto how : {manner::pops, manner::leases, manner::pops, manner::leases}) all.add(how);
  for (unsigned round = 0; round < 200; ++round) {
    test::work_for(std::chrono::microseconds(100 + 37 * (round % 29)));
    all.kill(round % producers);
    all.start(round % producers);
  }
  all.finish();
  all.expect_only_what_was_promised();  // of which nothing is, without a dead consumer
}

// One of each at a time: whoever follows begins when the one before is dead and buried.
TEST_F(MessageKill, BetweenTwoNothingIsLostOrDoubledButWhatADeadConsumerWasAt) {
  std::mt19937 random(test::seed());
  const p2p_queue<parcel> queue(16, {.spin = std::chrono::microseconds(5)});
  crowd both(queue);
  both.add(manner::produces);
  both.add(manner::pops);
  const auto until = deadline::after(test::soak_time(std::chrono::seconds(3)));
  while (!until.expired()) {
    test::work_for(std::chrono::microseconds(200 + random() % 3000));
    const auto victims = 1 + random() % 3;  // either, or both at once
    if ((victims & 1U) != 0) both.kill(0);
    if ((victims & 2U) != 0) both.kill(1);
    if ((victims & 1U) != 0) both.start(0);
    if ((victims & 2U) != 0) both.replace_by(1, random() % 2 == 0 ? manner::pops : manner::leases);
  }
  both.finish();
  both.expect_only_what_was_promised();
}

}  // namespace
}  // namespace muster::message_kill_test
