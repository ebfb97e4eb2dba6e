// SPDX-License-Identifier: BSL-1.0
// Deaths, departures and aborts at moments that are rarely met: what another rank does is written into the group's
// memory by the test.
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/detail/futex.hpp>
#include <muster/collectives/detail/group_memory.hpp>
#include <muster/collectives/detail/outbox.hpp>
#include <muster/collectives/detail/rank_end.hpp>
#include <muster/collectives/group_objects.hpp>
#include <muster/memory/detail/wait/wait_protocol.hpp>
#include <muster/memory/domain.hpp>

#include "broken_word.hpp"
#include "group_support.hpp"
#include "memory_state.hpp"
#include "refused_calls.hpp"
#include "succession.hpp"

namespace muster::group_fault_test {
namespace {

using namespace std::chrono_literals;
using detail::rank_end;
using detail::rank_line;
using test::text_thrown_by;
using testing::HasSubstr;

tensor numbers(std::size_t count) { return tensor::ones<float>({count}); }

class GroupFault : public testing::Test {
protected:
  ~GroupFault() override { EXPECT_TRUE(test::is_all_free(*domain_)); }

  // A process that takes part, or seems to.
  participant_id make_participant() {
    const auto id = domain_->participants().enrol();
    domain_->participants().publish(id, 1);
    return id;
  }
  std::uint64_t identity_of(participant_id id) const { return detail::rank_identity::of(*domain_, id).pack(); }
  // As that participant would by itself.
  void join(rank_line& line, participant_id who) const {
    line.member = identity_of(who);
    line.presence_ = static_cast<std::uint32_t>(rank_line::presence::joined);
  }
  // All that there are, until they are let go: one each.
  std::vector<shared_block> take_all_descriptors() {
    auto& blocks = domain_->blocks();
    std::vector<shared_block> taken = {blocks.allocate_shared(1)};
    const auto name = blocks.name_of(taken.front());
    const auto take = [&] {
      for (;;) {
        auto one = blocks.borrow(name);
        blocks.keep(one);
        taken.push_back(std::move(one));
      }
    };
    EXPECT_THAT(text_thrown_by<error>(take), HasSubstr("max_blocks"));
    return taken;
  }
  static void wake(rank_line& line) {
    static_cast<void>(wait_protocol::raise(line.bell));
    futex_wake(futex_address(line.bell), INT_MAX, futex_scope::shared);
  }

  std::shared_ptr<domain> domain_ = domain::of_program(
      {.arena_bytes = std::size_t{64} << 20U, .max_participants = 16, .max_blocks = 512, .inherited = true});
};

// The news comes after any of the looks before a sleep, and then its sender leaves.
TEST_F(GroupFault, WhatCameBeforeItsSenderLeftIsSeen) {
  const auto look_until = [&](int last, deadline until) {
    const group_ticket ticket(2, {.spin = 0ns});
    rank_end mine(domain_, ticket.block(), 0);
    rank_end other(domain_, ticket.block(), 1);
    bool came = false;
    int looks = 0;
    const auto look = [&] {
      if (came || ++looks != last) return came;
      came = true;
      other.depart();
      return false;
    };
    EXPECT_EQ(mine.wait_until({.operation = "test", .whom = 1}, until, look), last != 0);
    return looks;
  };
  const auto looks = look_until(0, deadline::after(0ns)) - 1;  // the last one is after the sleep
  EXPECT_GE(looks, 2);
  for (int last = 1; last <= looks; ++last) EXPECT_NO_THROW(look_until(last, deadline::never())) << last;
}

TEST_F(GroupFault, SeveralWaitsOfOneExchangeHaveOneTime) {
  const group_ticket ticket(2, {.spin = 0ns});
  rank_end mine(domain_, ticket.block(), 0);
  rank_end other(domain_, ticket.block(), 1);
  detail::waiting_for what{.operation = "test", .timeout = 1ms, .whom = 1};
  mine.wait(what, [&] { return what.until.has_value(); });
  what.timeout = 1h;
  EXPECT_THROW(mine.wait(what, [] { return false; }), group_error);
}

// ---- the first message to a rank

// It comes at any of the looks before a sleep, of a rank that waits for another one.
TEST_F(GroupFault, TheFirstMessageToWhoIsAboutToSleepIsSeen) {
  const auto look_until = [&](int last) {
    const group_ticket ticket(3, {.spin = 0ns});
    rank_end mine(domain_, ticket.block(), 0);
    int attended = 0;
    mine.set_meanwhile([&] { ++attended; });
    int looks = 0;
    const auto look = [&] {
      if (++looks == last) mine.memory().link(1, 0) = 77;
      return false;
    };
    EXPECT_FALSE(mine.wait_until({.operation = "test", .whom = 2}, deadline::after(0ns), look));
    EXPECT_EQ(attended > 0, last != 0) << "look " << last;
    EXPECT_EQ(mine.memory().line(0).waits_for, last != 0 ? rank_line::anybody : 2U) << "look " << last;
    return looks;
  };
  const auto looks = look_until(0) - 1;  // the last one is after the sleep
  EXPECT_GE(looks, 2);
  for (int last = 1; last <= looks; ++last) look_until(last);
}

TEST_F(GroupFault, TheFirstMessageToWhoSleepsUntilAnotherRankComesWakesIt) {
  constexpr int count = 100;  // the ring has room for fewer
  const group_ticket ticket(3, {.timeout = 20s, .spin = 0ns});
  group sleeps(ticket, 0);
  group late(ticket, 1);
  group sends(ticket, 2);
  std::thread receiver([&] {
    EXPECT_NO_THROW(sleeps.barrier());
    for (int each = 0; each < count; ++each) EXPECT_NO_THROW(sleeps.recv(numbers(1), 2));
  });
  const auto memory = detail::group_memory::attach(ticket.block().bytes());
  const auto& line = memory.line(0);
  EXPECT_TRUE(test::eventually([&] { return wait_protocol::is_awaited(line.bell) && line.waits_for == 1; }));
  for (int each = 0; each < count; ++each) EXPECT_NO_THROW(sends.send(numbers(1), 0));
  const auto begun = sends.barrier_async();
  EXPECT_NO_THROW(late.barrier());
  EXPECT_NO_THROW(begun.wait());
  receiver.join();
}

// By another of its threads.
TEST_F(GroupFault, WhoSleepsWhenItsRankBeginsToUseMessagesIsWoken) {
  const group_ticket ticket(2, {.timeout = 20s, .spin = 0ns});
  rank_end mine(domain_, ticket.block(), 0);
  rank_end other(domain_, ticket.block(), 1);
  std::atomic<bool> attends = false;
  std::atomic<bool> is_over = false;
  mine.set_meanwhile([&] { attends = true; });
  std::thread sleeps(
      [&] { EXPECT_NO_THROW(mine.wait({.operation = "test", .whom = 1}, [&] { return is_over.load(); })); });
  const auto& line = mine.memory().line(0);
  EXPECT_TRUE(test::eventually([&] { return wait_protocol::is_awaited(line.bell) && line.waits_for == 1; }));
  mine.use_meanwhile();
  EXPECT_TRUE(test::eventually([&] { return attends && line.waits_for == rank_line::anybody; }));
  is_over = true;
  other.notify(0);
  sleeps.join();
}

// ---- messages without room

// Whoever has no room for a message says so to the one who waits for it to be taken.
TEST_F(GroupFault, AMessageThatItsReceiverHasNoMemoryForIsRefusedAtBothEnds) {
  const group_ticket ticket(2, {.timeout = 20s});
  group mine(ticket, 0);
  group other(ticket, 1);
  const auto sent = other.isend(numbers(std::size_t{2} << 20U), 0);
  std::vector<tensor> taken;
  const auto fill = [&](std::size_t bytes) {
    try {
      for (;;) taken.push_back(tensor::empty<std::uint8_t>({bytes}));
    } catch (const error& full) {
      EXPECT_EQ(full.code(), errc::out_of_memory) << full.what();
    }
  };
  fill(std::size_t{4} << 20U);
  const auto text = text_thrown_by<error>([&] { static_cast<void>(mine.recv(1)); });
  EXPECT_THAT(text, testing::Not(HasSubstr("dead")));
  taken.clear();
  EXPECT_THAT(text_thrown_by<error>([&] { sent.wait(); }), HasSubstr("refused there"));
  std::thread next([&] { other.send(numbers(2000), 0); });
  EXPECT_EQ(mine.recv(1).size(), 2000U);
  next.join();
}

// Its sender is alive, whatever it is that this rank lacks.
TEST_F(GroupFault, AMessageThatItsReceiverCannotHoldIsRefusedAtBothEnds) {
  const group_ticket ticket(2, {.timeout = 20s});
  group mine(ticket, 0);
  group other(ticket, 1);
  const auto into = numbers(2000);
  const auto sent = other.isend(numbers(2000), 0);
  std::vector<tensor> taken;
  const auto take_all_descriptors = [&] {
    for (;;) taken.push_back(tensor::empty<std::uint8_t>({1}));
  };
  EXPECT_THAT(text_thrown_by<error>(take_all_descriptors), HasSubstr("max_blocks"));
  EXPECT_THAT(text_thrown_by<error>([&] { mine.recv(into, 1); }), HasSubstr("max_blocks"));
  taken.clear();
  EXPECT_THAT(text_thrown_by<error>([&] { sent.wait(); }), HasSubstr("refused there"));
  EXPECT_TRUE(mine.is_whole());
}

// There is room for one reason at a time; what has none is told without, and none is told of another one.
TEST_F(GroupFault, ARefusedMessageIsToldWithItsOwnReasonAndOnce) {
  const group_ticket ticket(2, {.timeout = 20s});
  group mine(ticket, 0);
  group other(ticket, 1);
  const auto refuse = [&](std::uint32_t tag) { EXPECT_THROW(other.recv(numbers(7), 0, tag), error); };
  const auto told_by = [](const work& what) { return text_thrown_by<error>([&] { what.wait(); }); };
  const auto told_by_next = [&] { return text_thrown_by<error>([&] { mine.send(numbers(1), 1, 9); }); };
  const auto without_reason = testing::AllOf(HasSubstr("refused there"), testing::Not(HasSubstr("with tag")));

  for (int round = 0; round < 2; ++round) {
    const auto first = mine.isend(numbers(2000), 1, 1);
    const auto second = mine.isend(numbers(2000), 1, 2);
    refuse(1);
    refuse(2);
    EXPECT_THAT(told_by(second), without_reason);
    EXPECT_THAT(told_by(first), HasSubstr("with tag 1"));
  }

  mine.send(numbers(1), 1, 3);
  mine.send(numbers(1), 1, 4);
  const auto answered = mine.isend(numbers(2000), 1, 5);
  for (const std::uint32_t tag : {3U, 4U, 5U}) refuse(tag);
  EXPECT_THAT(told_by(answered), without_reason);
  EXPECT_THAT(told_by_next(), HasSubstr("with tag 3"));
  EXPECT_THAT(told_by_next(), without_reason);
  EXPECT_EQ(told_by_next(), "nothing was thrown");
}

// What a rank has encoded it must have room for, too.
TEST_F(GroupFault, AnObjectThatThereIsNoRoomForIsRefusedByAll) {
  const group_ticket ticket(2, {.timeout = 20s});
  const auto run_rank = [&](std::size_t rank) {
    group mine(ticket, rank);
    const std::string own((rank == 0 ? std::size_t{65} << 20U : 1), 'x');
    const auto calls = {std::function([&] { static_cast<void>(mine.all_gather_object(own)); }),
                        std::function([&] { static_cast<void>(mine.gather_object(own, 1)); }),
                        std::function([&] { static_cast<void>(mine.scatter_object(std::vector(2, own), 0)); })};
    for (const auto& call : calls) {
      EXPECT_THAT(text_thrown_by<error>(call), HasSubstr("shared block"));
      EXPECT_TRUE(mine.is_whole());
    }
  };
  std::thread other([&] { run_rank(1); });
  run_rank(0);
  other.join();
}

// Whichever of its ranks that is: one has memory to make, the other has it to keep.
TEST_F(GroupFault, ASplitThatOneRankHasNoRoomForIsRefusedByAll) {
  constexpr std::size_t enough = 8;
  const group_ticket ticket(2, {.timeout = 20s});
  group mine(ticket, 0);
  group other(ticket, 1);
  const auto has_room = [](group& in) {
    try {
      return in.split(0).has_value();
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::out_of_memory) << refused.what();
      return false;
    }
  };
  for (std::size_t spare = 0; spare <= enough; ++spare) {
    auto taken = take_all_descriptors();
    taken.resize(taken.size() - spare);
    bool other_has_room = false;
    std::thread second([&] { other_has_room = has_room(other); });
    const bool own_has_room = has_room(mine);
    second.join();
    EXPECT_EQ(own_has_room, other_has_room) << spare;
    if (spare == 0 || spare == enough) {
      EXPECT_EQ(own_has_room, spare == enough);
    }
    EXPECT_TRUE(mine.is_whole());
  }
  const auto begun = other.barrier_async();
  mine.barrier();
  begun.wait();
}

// Another gives up first, and leaves, at any of the looks.
TEST_F(GroupFault, WhoLeftSinceTheTimeWasOverIsNotTheReason) {
  const auto wait_with_leaving_at = [&](int last) {
    const group_ticket ticket(2, {.spin = 0ns});
    rank_end mine(domain_, ticket.block(), 0);
    rank_end other(domain_, ticket.block(), 1);
    int looks = 0;
    const auto look = [&] {
      if (++looks != last) return false;
      EXPECT_THROW(other.wait({.operation = "test", .timeout = 0ns, .whom = 0}, [] { return false; }), group_error);
      other.depart();
      return false;
    };
    try {
      mine.wait({.operation = "test", .timeout = 0ns, .whom = 1}, look);
    } catch (const group_error& found) {
      EXPECT_EQ(found.code(), errc::timed_out) << found.what() << ", look " << last;
    }
    return looks;
  };
  const auto looks = wait_with_leaving_at(0);
  EXPECT_GE(looks, 3);
  for (int last = 1; last <= looks; ++last) wait_with_leaving_at(last);
}

TEST_F(GroupFault, AnAbortDoesNotOverwriteWhatFailedInACall) {
  const group_ticket ticket(2);
  rank_end mine(domain_, ticket.block(), 0);
  rank_end other(domain_, ticket.block(), 1);
  std::thread fails([&] {
    other.begin_call();
    const std::string what = "no such sum";
    EXPECT_THROW(other.confirm("test", {}, &what), group_error);
  });
  EXPECT_TRUE(test::eventually([&] { return mine.memory().line(1).done != 0; }));
  other.break_off("the disk is full");
  other.break_off("a second reason");
  fails.join();
  EXPECT_EQ(mine.report_of(1), "no such sum");
  EXPECT_THAT(text_thrown_by<group_error>([&] { mine.require_whole({.operation = "test"}); }),
              HasSubstr("the disk is full"));
}

// It has done its part, so nobody waits for it; and its tensors are gone before it is known to be dead.
TEST_F(GroupFault, AMemberThatDiesBehindItsPartOfALongCallIsLost) {
  const group_ticket ticket(2, {.timeout = 20s, .inline_bytes = 64});
  group mine(ticket, 0);
  const auto memory = detail::group_memory::attach(ticket.block().bytes());
  const auto dead = make_participant();
  std::thread other([&] {
    join(memory.line(1), dead);
    const auto& call = memory.call(0, 1);
    EXPECT_TRUE(test::eventually([&] { return call.sequence == 1; }));
    auto& own = memory.call(1, 1);
    own.what = call.what.load();
    own.count = call.count.load();
    own.fingerprint = call.fingerprint.load();
    memory.line(1).done = std::uint64_t{1} << 8U;
    own.sequence = 1;  // and no tensor that there is
    wake(memory.line(0));
    test::work_for(10ms);
    domain_->bury(dead);
  });
  EXPECT_THROW(mine.all_reduce(numbers(1000)), peer_lost);
  EXPECT_FALSE(mine.is_whole());
  other.join();
}

// Its memory is gone before it is known to be dead.
TEST_F(GroupFault, WhoseMessageIsGoneIsLostAndCanBeLeftOut) {
  const group_ticket ticket(2, {.timeout = 20s});
  group mine(ticket, 0);
  const auto memory = detail::group_memory::attach(ticket.block().bytes());
  const auto dead = make_participant();
  join(memory.line(1), dead);
  const auto block = domain_->blocks().allocate_shared(sizeof(detail::outbox::memory));
  auto ring = detail::outbox::make(block.bytes());
  auto& entry = ring.entry(0);
  entry.tag = 5;
  entry.form = static_cast<std::uint64_t>(dtype::f32) | 1U << 8U | 1U << 16U;
  entry.set_size(0, 1000);
  const detail::message_entry::place nowhere{.name = std::uint64_t{77} << 32U | 5U, .offset = 0, .ack = 0};
  std::memcpy(entry.after(1), &nowhere, sizeof nowhere);
  entry.stamp = 1;
  memory.link(1, 0) = domain_->blocks().send(block);
  std::thread buries([&] {
    test::work_for(10ms);
    domain_->bury(dead);
  });
  EXPECT_THROW(mine.recv(numbers(1000), 1, 5), peer_lost);
  EXPECT_EQ(mine.shrink().size(), 1U);
  buries.join();
}

// As a member of a group that comes of another one may.
TEST_F(GroupFault, WhoIsKnownAndDiesBeforeItJoinsIsLost) {
  const group_ticket ticket(2, {.timeout = 20s});
  group mine(ticket, 0);
  const auto memory = detail::group_memory::attach(ticket.block().bytes());
  const auto dead = make_participant();
  memory.line(1).member = identity_of(dead);
  EXPECT_THAT(text_thrown_by<error>([&] { const group wrong(ticket, 1); }), HasSubstr("is that rank already"));
  domain_->bury(dead);
  EXPECT_THROW(mine.barrier(), peer_lost);
}

// ---- rings

TEST_F(GroupFault, RingsThatNobodyHasLookedIntoGoWithTheGroup) {
  for (const bool receiver_leaves_first : {false, true}) {
    const group_ticket ticket(2);
    std::optional<group> sends(std::in_place, ticket, 0);
    std::optional<group> receives(std::in_place, ticket, 1);
    if (receiver_leaves_first) receives.reset();
    sends->send(numbers(3), 1);
    sends.reset();
    receives.reset();
    EXPECT_LE(domain_->blocks().read_statistics().holds, 1U) << "but the ticket's";
  }
}

TEST_F(GroupFault, RingsToTheDeadGoWithTheGroup) {
  for (const bool was_taken : {false, true}) {
    const auto dead = make_participant();
    const group_ticket ticket(2);
    {
      group mine(ticket, 0);
      const auto memory = detail::group_memory::attach(ticket.block().bytes());
      join(memory.line(1), dead);
      mine.send(numbers(3), 1);
      if (was_taken) memory.link(0, 1) = detail::group_memory::link_taken;  // and then it died
      domain_->bury(dead);
      EXPECT_THROW(mine.barrier(), peer_lost);
    }
    EXPECT_LE(domain_->blocks().read_statistics().holds, 1U) << "but the ticket's";
  }
}

// ---- any of several

TEST_F(GroupFault, OfSeveralTheOneEndsWhoseRankHasLeftWhateverTheirOrder) {
  for (const std::size_t place : {0U, 1U}) {
    const group_ticket ticket(3, {.timeout = 20s});
    group mine(ticket, 0);
    std::optional<group> leaves(std::in_place, ticket, 1);
    group sends(ticket, 2);
    const auto lost = mine.irecv(1);
    const auto comes = mine.irecv(2);
    leaves.reset();
    EXPECT_EQ(wait_any(place == 0 ? std::vector{lost, comes} : std::vector{comes, lost}), place);
    EXPECT_THROW(lost.wait(), peer_lost);
    sends.send(numbers(1), 0);
    EXPECT_EQ(wait_any(std::vector{comes}), 0U);
    EXPECT_NO_THROW(comes.wait());
  }
}

// The call ends by that, too.
TEST_F(GroupFault, OfSeveralWithACollectiveThoseEndWhoseRankHasLeftWhateverTheirOrder) {
  for (const bool collective_is_first : {true, false}) {
    const group_ticket ticket(3, {.timeout = 20s});
    group mine(ticket, 0);
    std::optional<group> leaves(std::in_place, ticket, 1);
    group sends(ticket, 2);
    std::vector works = {mine.irecv(1), mine.irecv(2)};
    works.insert(collective_is_first ? works.begin() : works.end(), mine.barrier_async());
    leaves.reset();
    for (int each = 0; each < 2; ++each) {
      const auto which = wait_any(works);
      ASSERT_TRUE(which.has_value());
      EXPECT_THROW(works[*which].wait(), peer_lost);
      works.erase(works.begin() + static_cast<std::ptrdiff_t>(*which));
    }
    sends.send(numbers(1), 0);
    EXPECT_EQ(wait_any(works), 0U);
    EXPECT_EQ(works.front().source(), 2U);
  }
}

TEST_F(GroupFault, OfSeveralTheOneEndsWhoseRankLeavesWhileAnyIsWaitedFor) {
  const group_ticket ticket(3, {.timeout = 20s, .spin = 0ns});
  group mine(ticket, 0);
  const group stays(ticket, 1);
  std::optional<group> goes(std::in_place, ticket, 2);
  const auto works = std::vector{mine.irecv(1), mine.irecv(2)};
  const auto memory = detail::group_memory::attach(ticket.block().bytes());
  std::thread leaves([&] {
    EXPECT_TRUE(test::eventually([&] { return wait_protocol::is_awaited(memory.line(0).bell); }));
    goes.reset();
  });
  EXPECT_EQ(wait_any(works), 1U);
  leaves.join();
  EXPECT_THROW(works[1].wait(), peer_lost);
  EXPECT_TRUE(works[0].cancel());
}

TEST_F(GroupFault, OfSeveralTheFirstEndsWhenTheGroupIsAbortedWhileAnyIsWaitedFor) {
  const group_ticket ticket(2, {.timeout = 20s, .spin = 0ns});
  group mine(ticket, 0);
  group other(ticket, 1);
  const auto works = std::vector{mine.irecv(1, 1), mine.irecv(1, 2)};
  const auto memory = detail::group_memory::attach(ticket.block().bytes());
  std::thread aborts([&] {
    EXPECT_TRUE(test::eventually([&] { return wait_protocol::is_awaited(memory.line(0).bell); }));
    other.abort("enough");
  });
  EXPECT_EQ(wait_any(works), 0U);
  aborts.join();
  EXPECT_THAT(text_thrown_by<group_error>([&] { works[0].wait(); }), HasSubstr("enough"));
}

// ---- messages of who only polls

TEST_F(GroupFault, AMessageWithOneWhoHasLeftEndsForWhoPolls) {
  const group_ticket ticket(2, {.timeout = 20s});
  group mine(ticket, 0);
  std::optional<group> other(std::in_place, ticket, 1);
  const auto came = mine.irecv(numbers(1), 1, 1);
  const auto got = mine.irecv(numbers(1), 1);
  const auto from_any = mine.irecv(numbers(1), any_source);
  const auto sent = mine.isend(numbers(2000), 1);
  EXPECT_FALSE(got.test());
  EXPECT_FALSE(sent.test());
  int calls = 0;
  got.then([&](const std::exception_ptr& failure) { calls += failure == nullptr ? 100 : 1; });
  other->send(numbers(1), 0, 1);
  other.reset();
  EXPECT_TRUE(came.test());
  EXPECT_NO_THROW(came.wait());
  for (const auto& each : {got, from_any, sent}) {
    EXPECT_TRUE(each.test());
    EXPECT_NE(each.exception(), nullptr);
    EXPECT_FALSE(each.cancel());
    EXPECT_THROW(each.wait(), peer_lost);
  }
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(mine.is_whole());
}

TEST_F(GroupFault, AMessageOfOneWhoIsDeadEndsForWhoPolls) {
  const group_ticket ticket(2, {.timeout = 20s});
  group mine(ticket, 0);
  const auto memory = detail::group_memory::attach(ticket.block().bytes());
  const auto dead = make_participant();
  join(memory.line(1), dead);
  const auto got = mine.irecv(numbers(1), 1);
  EXPECT_FALSE(got.test());
  domain_->bury(dead);
  EXPECT_TRUE(got.test());
  EXPECT_THROW(got.wait(), peer_lost);
  EXPECT_FALSE(mine.is_whole());
}

TEST_F(GroupFault, AMessageThatWasSentBeforeAnAbortIsStillThereForWhoPolls) {
  const group_ticket ticket(2, {.timeout = 20s});
  group mine(ticket, 0);
  group other(ticket, 1);
  const auto got = mine.irecv(numbers(1), 1);
  const auto never_sent = mine.irecv(numbers(1), 1, 7);
  const auto sent = mine.isend(numbers(2000), 1, 3);
  other.send(numbers(1), 0);
  other.abort("enough");
  EXPECT_TRUE(got.test());
  EXPECT_EQ(got.exception(), nullptr);
  EXPECT_TRUE(never_sent.test());
  EXPECT_THAT(text_thrown_by<group_error>([&] { never_sent.wait(); }), HasSubstr("enough"));
  EXPECT_TRUE(sent.test());
  EXPECT_EQ(other.irecv(0, 3).result().size(), 2000U) << "it was told of, and is kept until it is answered";
  EXPECT_THROW(sent.wait(), group_error);
}

// ---- who did it

TEST_F(GroupFault, AnAbortNamesTheRankThatDidItToTheOthersAlone) {
  const group_ticket ticket(2, {.timeout = 20s});
  group mine(ticket, 0);
  group other(ticket, 1);
  other.abort("enough");
  const auto broken_by = [](group& which) {
    try {
      which.barrier();
    } catch (const group_error& failure) {
      return failure.broken_by();
    }
    return std::vector<group_member>(99);
  };
  EXPECT_THAT(broken_by(mine), testing::ElementsAre(group_member{.rank = 1, .pid = ::getpid()}));
  EXPECT_THAT(broken_by(other), testing::IsEmpty());
}

// What a call threw in a rank, beside the ranks that it names.
struct call_end {
  std::string type;
  std::vector<group_member> failed;
};
template <class Call>
call_end end_of_call(const Call& call) {
  try {
    call();
  } catch (const member_failed& failure) {
    return {.type = "member_failed", .failed = failure.failed()};
  } catch (const std::range_error&) {
    return {.type = "range_error", .failed = {}};
  }
  return {};
}

TEST_F(GroupFault, AReductionThatThrowsInOneRankNamesItInTheOthersAndTheGroupGoesOn) {
  const group_ticket ticket(2, {.timeout = 20s});
  const auto reduce = [&ticket](std::size_t rank) {
    group mine(ticket, rank);
    const auto add = [rank](float a, float b) {
      if (rank == 1) throw std::range_error("too much");
      return a + b;
    };
    auto found = end_of_call([&] { mine.all_reduce(tensor::ones<float>({4}), reduction::custom<float>("add", add)); });
    mine.barrier();
    return found;
  };
  call_end second;
  std::thread other([&] { second = reduce(1); });
  const auto first = reduce(0);
  other.join();
  EXPECT_EQ(first.type, "member_failed");
  EXPECT_THAT(first.failed, testing::ElementsAre(group_member{.rank = 1, .pid = ::getpid()}));
  EXPECT_EQ(second.type, "range_error");
}

// ---- callbacks

using GroupFaultDeathTest = GroupFault;

// Nothing of this runs in the parent: a callback that is never called there is called when its group goes.
TEST_F(GroupFaultDeathTest, WhatACallbackThrowsEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fails = [](const std::exception_ptr&) { throw std::runtime_error("of a callback"); };
  const auto bring_forward = [&] {
    const group_ticket ticket(2);
    group mine(ticket, 0);
    group other(ticket, 1);
    const auto got = mine.irecv(numbers(1), 1);
    got.then(fails);
    other.send(numbers(1), 0);
    static_cast<void>(got.test());
  };
  EXPECT_DEATH(bring_forward(), "of a callback");
  const auto ask_too_late = [&](bool is_message) {
    const group_ticket ticket(1);
    group mine(ticket, 0);
    const auto done = is_message ? mine.isend(numbers(1), 0) : mine.barrier_async();
    done.wait();
    done.then(fails);
  };
  EXPECT_DEATH(ask_too_late(true), "of a callback");
  EXPECT_DEATH(ask_too_late(false), "of a callback");
}

// ---- asynchronous calls after a shrink

TEST_F(GroupFault, AShrinkThatIsRefusedLeavesAsynchronousCallsAsTheyWere) {
  const group_ticket ticket(1);
  group mine(ticket, 0);
  for (int each = 0; each < 3; ++each) {
    mine.barrier_async().wait();
    EXPECT_THROW(static_cast<void>(mine.shrink()), error);
  }
  mine.barrier_async().wait();
}

TEST_F(GroupFault, AnAsynchronousCallWithoutAThreadIsRefusedAndNotCounted) {
  const group_ticket ticket(1);
  group mine(ticket, 0);
  {
    const test::refused_calls scope("pthread_create", EAGAIN);
    EXPECT_THROW(static_cast<void>(mine.barrier_async()), error);
    mine.barrier();  // needs none
  }
  const auto served = mine.barrier_async();
  served.wait();
  EXPECT_EQ(served.sequence(), 2U);
}

TEST_F(GroupFault, AsynchronousCallsOfABrokenGroupEndAlsoAfterItsShrink) {
  const group_ticket ticket(2, {.timeout = 20s});
  group mine(ticket, 0);
  std::optional<group> other(std::in_place, ticket, 1);
  other.reset();
  auto rest = mine.shrink();
  EXPECT_EQ(rest.size(), 1U);
  for (int each = 0; each < 3; ++each) EXPECT_THROW(mine.barrier_async().wait(), peer_lost);
  rest.barrier_async().wait();
}

// What follows is for ThreadSanitizer.
TEST_F(GroupFault, TrafficMayBeAskedDuringAsynchronousCalls) {
  const group_ticket ticket(2, {.timeout = 20s});
  group mine(ticket, 0);
  group other(ticket, 1);
  const auto begun = mine.barrier_async();
  EXPECT_LE(mine.traffic().calls, 1U);
  other.barrier();
  begun.wait();
  EXPECT_EQ(mine.traffic().calls, 1U);
}

TEST_F(GroupFault, AnAbortMayComeDuringAsynchronousCalls) {
  constexpr int count = 200;
  const group_ticket ticket(1);
  group mine(ticket, 0);
  std::vector<work> begun;
  for (int each = 0; each < count; ++each) begun.push_back(mine.barrier_async());
  std::thread aborts([&] { mine.abort("enough"); });
  for (int each = 0; each < count; ++each) begun.push_back(mine.barrier_async());
  aborts.join();
  for (const auto& each : begun) {
    try {
      each.wait();
    } catch (const group_error& failure) {
      EXPECT_THAT(failure.what(), HasSubstr("enough"));
    }
  }
  EXPECT_THROW(mine.barrier(), group_error);
}

TEST_F(GroupFault, CallsBehindASplitThatWasQueuedHaveTheGroupsNumbers) {
  const group_ticket ticket(2, {.timeout = 20s});
  group mine(ticket, 0);
  group other(ticket, 1);
  const auto begun = mine.barrier_async();
  std::thread second([&] {
    other.barrier();
    EXPECT_TRUE(other.split(0));
    other.barrier();
  });
  EXPECT_TRUE(mine.split(0));
  const auto last = mine.barrier_async();
  EXPECT_EQ(last.sequence(), 5U);
  last.wait();
  second.join();
}

// ---- the group of the survivors

// A leader that has offered memory, or only claimed, and is dead now with what it had made.
TEST_F(GroupFault, ALeaderThatDiedBeforeAllHadItsMemoryIsFollowed) {
  for (const auto phase : {std::uint64_t{1}, std::uint64_t{2}}) {
    const auto dead = make_participant();
    const group_ticket ticket(3, {.timeout = 20s});
    group first(ticket, 1);
    group second(ticket, 2);
    const auto memory = detail::group_memory::attach(ticket.block().bytes());
    join(memory.line(0), dead);
    memory.line(0).survives = 1U << 28U;
    memory.successor() = std::uint64_t{77} << 32U | 5U;
    memory.succession() = phase << 56U | std::uint64_t{1} << 32U;
    memory.broken() = std::uint64_t{3} << 56U;
    std::thread other([&] {
      auto rest = second.shrink();
      EXPECT_EQ(rest.rank(), 1U);
      rest.barrier();
    });
    std::thread buries([&] {
      test::work_for(10ms);
      domain_->bury(dead);
    });
    auto rest = first.shrink();
    EXPECT_EQ(rest.size(), 2U);
    EXPECT_EQ(rest.rank(), 0U);
    rest.barrier();
    other.join();
    buries.join();
  }
}

// Also when one comes meanwhile who would have led.
TEST_F(GroupFault, ALeaderThatHadNoMemoryMayShrinkAgain) {
  const group_ticket ticket(3, {.timeout = 20s});
  group first(ticket, 0);
  group second(ticket, 1);
  std::optional<group> left(std::in_place, ticket, 2);
  left.reset();
  auto taken = take_all_descriptors();
  EXPECT_THAT(text_thrown_by<error>([&] { static_cast<void>(second.shrink({.timeout = 1ms})); }),
              HasSubstr("max_blocks"));
  taken.clear();
  std::thread comes([&] { EXPECT_EQ(first.shrink().size(), 2U); });
  EXPECT_EQ(second.shrink().size(), 2U);
  comes.join();
}

// Somebody has overwritten these words.
TEST_F(GroupFault, AGroupThatWasBrokenByNoRankSaysSoAndCanBeShrunk) {
  using cause = detail::broken_word::cause;
  for (const auto why : {cause::timeout, cause::aborted, cause::lost, static_cast<cause>(77)}) {
    const group_ticket ticket(1);
    group mine(ticket, 0);
    const auto memory = detail::group_memory::attach(ticket.block().bytes());
    memory.broken() = detail::broken_word{why, 60000, 1}.pack();
    EXPECT_THAT(text_thrown_by<group_error>([&] { mine.barrier(); }), HasSubstr("a member"));
    EXPECT_EQ(mine.shrink().size(), 1U);
  }
}

TEST_F(GroupFault, ALeaderThatIsNoRankIsFollowedAsIfItWereDead) {
  using phase = detail::succession_word::phase;
  for (const auto now : {phase::claimed, phase::offered, static_cast<phase>(77)}) {
    const group_ticket ticket(2, {.timeout = 20s});
    group mine(ticket, 0);
    std::optional<group> left(std::in_place, ticket, 1);
    left.reset();
    const auto memory = detail::group_memory::attach(ticket.block().bytes());
    memory.succession() = detail::succession_word{now, 1, std::size_t{1} << 20U}.pack();
    EXPECT_EQ(mine.shrink().size(), 1U);
  }
}

// Rank 0 would lead, and does not.
TEST_F(GroupFault, WhoWasChosenByALeaderThatIsNoRankWaitsInVain) {
  using detail::succession_word;
  using detail::survival_word;
  const group_ticket ticket(2, {.timeout = 20s});
  const rank_end leads(domain_, ticket.block(), 0);
  group mine(ticket, 1);
  const auto memory = detail::group_memory::attach(ticket.block().bytes());
  memory.line(0).survives = survival_word{.now = survival_word::state::waits}.pack();
  memory.line(1).survives = survival_word{.now = survival_word::state::chosen, .round = 1, .place = 1}.pack();
  memory.successor() = domain_->blocks().name_of(ticket.block());
  memory.succession() = succession_word{succession_word::phase::offered, 1, std::size_t{1} << 20U}.pack();
  memory.broken() = detail::broken_word{detail::broken_word::cause::lost, 0, 1}.pack();
  EXPECT_THAT(text_thrown_by<group_error>([&] { static_cast<void>(mine.shrink({.timeout = 1ms})); }),
              HasSubstr("waited in vain"));
}

// For longer than the clock can say: rank 0 has claimed, and settles only when rank 1 waits for it.
TEST_F(GroupFault, AShrinkMayWaitForEver) {
  const group_ticket ticket(2, {.timeout = 20s});
  rank_end leads(domain_, ticket.block(), 0);
  group follows(ticket, 1);
  const auto memory = detail::group_memory::attach(ticket.block().bytes());
  memory.succession() = std::uint64_t{1} << 56U | std::uint64_t{1} << 32U;
  memory.broken() = std::uint64_t{3} << 56U;
  std::thread settles([&] {
    EXPECT_TRUE(test::eventually([&] { return wait_protocol::is_awaited(memory.line(1).bell); }));
    memory.succession() = std::uint64_t{3} << 56U | std::uint64_t{1} << 32U;
    leads.raise_all();
  });
  EXPECT_THAT(text_thrown_by<group_error>(
                  [&] { static_cast<void>(follows.shrink({.timeout = std::chrono::hours(24 * 366 * 100)})); }),
              HasSubstr("came too late"));
  settles.join();
}

}  // namespace
}  // namespace muster::group_fault_test
