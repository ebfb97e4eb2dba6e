// SPDX-License-Identifier: BSL-1.0
// What a rank has sent before it left, when its process has ended since.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/detail/futex.hpp>
#include <muster/collectives/detail/group_memory.hpp>
#include <muster/collectives/detail/outbox.hpp>
#include <muster/memory/detail/wait/wait_protocol.hpp>
#include <muster/memory/domain.hpp>

#include "group_support.hpp"
#include "memory_state.hpp"

namespace muster::message_leave_test {
namespace {

using namespace std::chrono_literals;
using detail::group_memory;
using detail::outbox;
using detail::rank_line;
using test::rank_processes;
using test::text_thrown_by;
using testing::HasSubstr;

constexpr std::size_t count = 10;
constexpr std::size_t shorter = 3;
constexpr std::size_t longer = 1000;

tensor numbers(std::size_t size, std::size_t value) { return tensor::full<float>({size}, static_cast<float>(value)); }

// What happens before the receiver looks.
struct gate {
  std::atomic<std::uint32_t> is_open = 0;

  void open() {
    is_open = 1;
    futex_wake(futex_address(is_open), INT_MAX, futex_scope::shared);
  }
  void await() const {
    while (is_open == 0) futex_wait(futex_address(is_open), 0, futex_scope::shared);
  }
};

// Every other one is long, and nobody keeps its handle.
void send_all(group& from, std::size_t to) {
  for (std::size_t each = 0; each < count; ++each) {
    from.send(numbers(shorter, each), to, 1);
    static_cast<void>(from.isend(numbers(longer, each), to, 2));
  }
}

void expect_all(group& at, std::size_t from) {
  const auto into = numbers(longer, 0);
  for (std::size_t each = 0; each < count; ++each) {
    const auto got = at.recv(from, 1);
    EXPECT_EQ(got.size(), shorter);
    EXPECT_EQ(got.at<float>(shorter - 1), static_cast<float>(each));
    EXPECT_EQ(at.recv(into, any_source, 2), from);
    EXPECT_EQ(into.at<float>(longer - 1), static_cast<float>(each));
  }
  EXPECT_THROW(static_cast<void>(at.recv(from, 1)), peer_lost);
  EXPECT_TRUE(at.is_whole());
}

class MessagesOfWhoHasLeft : public testing::Test {
protected:
  ~MessagesOfWhoHasLeft() override { EXPECT_TRUE(test::is_all_free(*domain_)); }

  // Rank 0 sends, leaves and ends; then `receive` is run in rank 1, which may have the ring already.
  void run(const test::rank_body& send, const test::rank_body& receive, bool has_ring = false) {
    const auto begin = [&, has_ring](group& mine) {
      if (has_ring && mine.rank() == 0) mine.send(numbers(1, 0), 1, 77);
      if (mine.rank() == 0) return send(mine);
      if (has_ring) static_cast<void>(mine.recv(0, 77));
      gate_->await();
      receive(mine);
    };
    rank_processes all(2, begin, options_);
    EXPECT_EQ(all.end(0).code(), 0);
    gate_->open();
    all.expect_all_end_well();
  }

  const group_options options_ = {.timeout = 20s, .spin = 0ns};
  std::shared_ptr<domain> domain_ = domain::of_program(
      {.arena_bytes = std::size_t{64} << 20U, .max_participants = 16, .max_blocks = 512, .inherited = true});
  test::shared<gate> gate_;
};

#ifndef __SANITIZE_THREAD__

TEST_F(MessagesOfWhoHasLeft, ArriveWhenItsProcessHasEnded) {
  for (int round = 0; round < 3; ++round) {
    run([](group& mine) { send_all(mine, 1); }, [](group& mine) { expect_all(mine, 0); });
    gate_->is_open = 0;
  }
}

TEST_F(MessagesOfWhoHasLeft, ArriveThoughTheirRingWasTakenOverBefore) {
  run([](group& mine) { send_all(mine, 1); }, [](group& mine) { expect_all(mine, 0); }, true);
}

TEST_F(MessagesOfWhoHasLeft, ArriveWhereTheirReceiverJoinsOnlyThen) {
  const auto body = [&](const group_ticket& ticket, std::size_t rank) {
    if (rank == 1) gate_->await();
    group mine(ticket, rank);
    rank == 0 ? send_all(mine, 1) : expect_all(mine, 0);
  };
  rank_processes all(2, test::ticket_body(body), options_);
  EXPECT_EQ(all.end(0).code(), 0);
  gate_->open();
  all.expect_all_end_well();
}

TEST_F(MessagesOfWhoHasLeft, ArriveForWhoOnlyTests) {
  run([](group& mine) { send_all(mine, 1); },
      [](group& mine) {
        const auto into = numbers(longer, 0);
        const auto got = mine.irecv(into, 0, 2);
        EXPECT_TRUE(test::eventually([&] { return got.test(); }));
        EXPECT_EQ(got.exception(), nullptr);
        EXPECT_EQ(into.at<float>(longer - 1), 0);
      });
}

TEST_F(MessagesOfWhoHasLeft, ArriveAlsoWhenTheGroupIsBrokenSince) {
  run([](group& mine) { send_all(mine, 1); },
      [](group& mine) {
        mine.abort("enough");
        EXPECT_EQ(mine.recv(0, 1).size(), shorter);
        EXPECT_EQ(mine.recv(0, 2).size(), longer);
      });
}

// More than there are answers, told of before and after.
TEST_F(MessagesOfWhoHasLeft, ArriveAsFarAsTheRingHasRoomAndTheOthersAreCancelled) {
  constexpr std::size_t many = outbox::capacity + 8;
  const auto send = [](const group_ticket& ticket) {
    std::vector<work> begun;
    {
      group mine(ticket, 0);
      for (std::size_t each = 0; each < many; ++each) {
        begun.push_back(mine.isend(numbers(each % 2 == 0 ? shorter : longer, each), 1));
      }
    }
    for (std::size_t each = 0; each < many; ++each) {
      const bool is_told = each < outbox::capacity;
      EXPECT_EQ(begun[each].exception() == nullptr, is_told) << each;
      if (!is_told) {
        EXPECT_THAT(text_thrown_by<error>([&] { begun[each].wait(); }), HasSubstr("handle is gone"));
      }
    }
  };
  const auto receive = [](const group_ticket& ticket) {
    group mine(ticket, 1);
    for (std::size_t each = 0; each < outbox::capacity; ++each) {
      EXPECT_EQ(mine.recv(0).at<float>(0), static_cast<float>(each));
    }
    EXPECT_THROW(static_cast<void>(mine.recv(0)), peer_lost);
  };
  const auto body = [&](const group_ticket& ticket, std::size_t rank) {
    if (rank == 0) return send(ticket);
    gate_->await();
    receive(ticket);
  };
  rank_processes all(2, test::ticket_body(body), options_);
  EXPECT_EQ(all.end(0).code(), 0);
  gate_->open();
  all.expect_all_end_well();
}

TEST_F(MessagesOfWhoHasLeft, ThatDoNotFitAreRefused) {
  run([](group& mine) { send_all(mine, 1); },
      [](group& mine) {
        for (const std::uint32_t tag : {1U, 2U}) {
          EXPECT_THAT(text_thrown_by<error>([&] { mine.recv(numbers(7, 0), 0, tag); }), HasSubstr("wanted f32 (7,)"));
        }
        EXPECT_EQ(mine.recv(0, 2).at<float>(0), 1);
      });
}

// ---- and nobody receives them

TEST_F(MessagesOfWhoHasLeft, GoWithAReceiverThatLeaves) {
  for (const bool has_ring : {false, true}) {
    run([](group& mine) { send_all(mine, 1); }, [](group&) {}, has_ring);
    gate_->is_open = 0;
    run([](group& mine) { send_all(mine, 1); }, [](group& mine) { static_cast<void>(mine.recv(0, 2)); }, has_ring);
    gate_->is_open = 0;
  }
}

TEST_F(MessagesOfWhoHasLeft, GoWithTheGroupOfAReceiverThatIsKilled) {
  for (const bool has_ring : {false, true}) {
    const auto body = [&, has_ring](group& mine) {
      if (has_ring && mine.rank() == 0) mine.send(numbers(1, 0), 1, 77);
      if (mine.rank() == 0) return send_all(mine, 1);
      if (has_ring) static_cast<void>(mine.recv(0, 77));
      gate_->open();
      for (;;) ::pause();
    };
    rank_processes all(2, body, options_);
    EXPECT_EQ(all.end(0).code(), 0);
    gate_->await();
    all.kill(1);
    all.end(1);
    EXPECT_TRUE(test::is_all_free(*domain_));
    gate_->is_open = 0;
  }
}

TEST_F(MessagesOfWhoHasLeft, GoWithTheGroupWhereTheirReceiverNeverJoins) {
  const auto body = [&](const group_ticket& ticket, std::size_t rank) {
    if (rank == 1) return gate_->await();
    group mine(ticket, rank);
    send_all(mine, 1);
  };
  rank_processes all(2, test::ticket_body(body), options_);
  EXPECT_EQ(all.end(0).code(), 0);
  EXPECT_FALSE(test::is_all_free(*domain_)) << "it may still";
  gate_->open();
  all.expect_all_end_well();
}

#endif

TEST_F(MessagesOfWhoHasLeft, ArriveWholeWhileItIsLeaving) {
  for (int round = 0; round < 100; ++round) {
    const group_ticket ticket(2, options_);
    const auto kept = numbers(longer, 7);
    std::thread sends([&] {
      std::optional<group> mine(std::in_place, ticket, 0);
      send_all(*mine, 1);
      const auto sent = mine->isend(kept, 1, 3);
      mine.reset();
      EXPECT_NO_THROW(sent.wait());
      kept.fill(99.0F);
    });
    group mine(ticket, 1);
    for (const auto each : mine.recv(0, 3).to_vector<float>()) ASSERT_EQ(each, 7);
    expect_all(mine, 0);
    sends.join();
  }
}

// ---- what their sender may do then

TEST_F(MessagesOfWhoHasLeft, AreWhatTheyWereWhenItLeft) {
  const group_ticket ticket(2, options_);
  group receives(ticket, 1);
  const auto kept = numbers(longer, 1);
  const auto view = numbers(3 * longer, 2);
  std::vector<work> sent;
  std::vector<bool> ended(2);
  {
    group mine(ticket, 0);
    sent = {mine.isend(kept, 1), mine.isend(view.slice(longer, 2 * longer), 1), mine.isend(numbers(longer, 3), 1)};
    for (const std::size_t each : {0U, 1U}) {
      sent[each].then([&ended, each](const std::exception_ptr& failure) { ended[each] = failure == nullptr; });
    }
  }
  EXPECT_THAT(ended, testing::Each(true));
  for (const auto& each : sent) EXPECT_NO_THROW(each.wait());
  kept.fill(99.0F);
  view.fill(99.0F);
  for (std::size_t each = 1; each <= 3; ++each) EXPECT_EQ(receives.recv(0).at<float>(longer - 1), each);
}

// Nothing can be handed over.
TEST_F(MessagesOfWhoHasLeft, AreCancelledWhereThereIsNoRoomForThem) {
  const group_ticket ticket(2, options_);
  group receives(ticket, 1);
  std::optional<group> mine(std::in_place, ticket, 0);
  const auto kept = numbers(longer, 1);
  const auto sent = mine->isend(kept, 1);
  std::vector<tensor> taken;
  EXPECT_THAT(text_thrown_by<error>([&] {
                for (;;) taken.push_back(tensor::empty<std::uint8_t>({1}));
              }),
              HasSubstr("max_blocks"));
  mine.reset();
  EXPECT_THAT(text_thrown_by<error>([&] { sent.wait(); }), HasSubstr("handle is gone"));
  taken.clear();
  EXPECT_THAT(text_thrown_by<peer_lost>([&] { static_cast<void>(receives.recv(0)); }), HasSubstr("has left"));
}

// ---- whoever reads while its sender leaves

// The test is rank 1.
class MessagesThatAreReadWhileTheirSenderLeaves : public MessagesOfWhoHasLeft {
protected:
  explicit MessagesThatAreReadWhileTheirSenderLeaves(std::chrono::nanoseconds timeout = 20s)
      : ticket_(2, {.timeout = timeout, .spin = 0ns}) {
    auto& line = memory_.line(1);
    line.member = detail::rank_identity::of(*domain_, domain_->self()).pack();
    line.presence_ = static_cast<std::uint32_t>(rank_line::presence::joined);
    mine_.emplace(ticket_, 0);
    sent_ = mine_->isend(kept_, 1);
    auto& link = memory_.link(0, 1);
    block_ = domain_->blocks().receive(link);
    link = group_memory::link_taken;
    ring_ = outbox::attach(block_.bytes());
    message_detail::place where{};
    std::memcpy(&where, ring_.entry(0).after(1), sizeof where);
    index_ = where.ack;
    answer() = outbox::reading | 1U;
  }

  [[nodiscard]] std::atomic<std::uint64_t>& answer() const { return ring_->acks[index_]; }
  std::thread leave() {
    return std::thread([this] { mine_.reset(); });
  }
  void await_its_sleep() {
    EXPECT_TRUE(test::eventually([&] { return wait_protocol::is_awaited(memory_.line(0).bell); }));
    EXPECT_EQ(memory_.line(0).presence_, static_cast<std::uint32_t>(rank_line::presence::joined));
  }
  void wake() {
    auto& bell = memory_.line(0).bell;
    static_cast<void>(wait_protocol::raise(bell));
    futex_wake(futex_address(bell), INT_MAX, futex_scope::shared);
  }

  using message_detail = detail::message_entry;
  const group_ticket ticket_;
  const group_memory memory_ = group_memory::attach(ticket_.block().bytes());
  const tensor kept_ = numbers(longer, 5);
  std::optional<group> mine_;
  work sent_;
  shared_block block_;
  outbox ring_;
  std::size_t index_ = 0;
};

TEST_F(MessagesThatAreReadWhileTheirSenderLeaves, AreWaitedForUntilTheyAreAnswered) {
  auto leaves = leave();
  await_its_sleep();
  EXPECT_NE(ring_->handovers[index_].hold, 0U);
  answer() = 1;
  wake();
  leaves.join();
  EXPECT_NO_THROW(sent_.wait());
}

TEST_F(MessagesThatAreReadWhileTheirSenderLeaves, AreWaitedForUntilTheyAreNotRead) {
  auto leaves = leave();
  await_its_sleep();
  answer() = 0;
  wake();
  leaves.join();
  EXPECT_NO_THROW(sent_.wait()) << "the receiver finds what was handed over";
}

TEST_F(MessagesThatAreReadWhileTheirSenderLeaves, EndAsTheyAreAnswered) {
  auto leaves = leave();
  await_its_sleep();
  answer() = outbox::refused | 1U;
  wake();
  leaves.join();
  EXPECT_THAT(text_thrown_by<error>([&] { sent_.wait(); }), HasSubstr("refused there"));
}

TEST_F(MessagesThatAreReadWhileTheirSenderLeaves, AreCancelledWhenTheirReceiverLeaves) {
  auto leaves = leave();
  await_its_sleep();
  memory_.line(1).presence_ = static_cast<std::uint32_t>(rank_line::presence::left);
  wake();
  leaves.join();
  EXPECT_THAT(text_thrown_by<error>([&] { sent_.wait(); }), HasSubstr("handle is gone"));
}

class MessagesThatAreReadByOneThatIsStopped : public MessagesThatAreReadWhileTheirSenderLeaves {
protected:
  MessagesThatAreReadByOneThatIsStopped() : MessagesThatAreReadWhileTheirSenderLeaves(1ms) {}
};

TEST_F(MessagesThatAreReadByOneThatIsStopped, AreCancelledAtTheTimeout) {
  mine_.reset();
  EXPECT_THAT(text_thrown_by<error>([&] { sent_.wait(); }), HasSubstr("handle is gone"));
}

// What nobody else can change needs no wait.
TEST_F(MessagesThatAreReadByOneThatIsStopped, AreHandedOverAtOnceWhereNobodyElseHasThem) {
  const auto other = mine_->isend(numbers(longer, 1), 1);
  sent_ = work();
  answer() = 1;
  message_detail::place where{};
  std::memcpy(&where, ring_.entry(1).after(1), sizeof where);
  ring_->acks[where.ack] = outbox::reading | 2U;
  mine_.reset();
  EXPECT_NO_THROW(other.wait());
}

}  // namespace
}  // namespace muster::message_leave_test
