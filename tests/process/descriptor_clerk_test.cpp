// SPDX-License-Identifier: BSL-1.0
// The host's clerk and a participant's exchange, in one process.
#include "descriptor_clerk.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <muster/base/error.hpp>
#include <muster/base/memfd.hpp>
#include <muster/memory/domain.hpp>

#include "open_files.hpp"
#include "processes.hpp"
#include "refused_calls.hpp"
#include "remote_exchange.hpp"

namespace muster::detail::descriptor_clerk_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr const char* label = "clerk-test";

template <class F>
std::error_code error_of(F what) {
  try {
    what();
  } catch (const error& failure) {
    return failure.code();
  }
  return {};
}

/// One participant: its end, and the clerk on a loop.
class participant {
public:
  participant(domain& host, boost::asio::io_context& loop)
      : host_(host), loop_(loop), connection_(loop, ends_.first.release()) {
    clerk_ = std::make_shared<descriptor_clerk>(host, connection_, id_);
    boost::asio::post(loop, [this] { listen(); });
  }
  participant(const participant&) = delete;
  participant& operator=(const participant&) = delete;
  ~participant() { die(); }

  // Its process is gone, and the supervisor has noticed.
  void die() {
    if (std::exchange(is_dead_, true)) return;
    std::promise<void> done;
    boost::asio::post(loop_, [&] {
      clerk_.reset();
      connection_.close();
      host_.bury(id_);
      done.set_value();
    });
    done.get_future().wait();
  }
  [[nodiscard]] remote_exchange& exchange() { return exchange_; }
  [[nodiscard]] domain& shared() { return joined_; }
  [[nodiscard]] int socket() const { return ends_.second.get(); }
  [[nodiscard]] bool was_turned_away() const { return turned_away_; }

private:
  void listen() {
    connection_.async_wait(descriptor_clerk::stream::wait_read, [this](boost::system::error_code cancelled) {
      if (!cancelled && clerk_) hear();
    });
  }
  void hear() {
    try {
      auto heard = receive_message(connection_.native_handle(), wait_mode::poll);
      if (heard && !clerk_->hear(*heard)) throw error(errc::corrupted, "not the clerk's");
      listen();
    } catch (const error&) {
      turned_away_ = true;
    }
  }
  participant_id enrol() {
    const auto made = host_.participants().enrol();
    host_.participants().publish(made, ::getpid());
    return made;
  }
  static unique_fd copy(const unique_fd& file) { return unique_fd(::dup(file.get())); }

  domain& host_;
  boost::asio::io_context& loop_;
  std::pair<unique_fd, unique_fd> ends_ = make_channel();
  const participant_id id_ = enrol();
  domain joined_{{.control = copy(host_.files().control), .arena = copy(host_.files().arena)}, id_};
  remote_exchange exchange_{joined_, std::make_shared<conversation>(ends_.second.get()), 30s};
  boost::asio::posix::stream_descriptor connection_;
  std::shared_ptr<descriptor_clerk> clerk_;  // loop
  std::atomic<bool> turned_away_ = false;
  bool is_dead_ = false;
};

class DescriptorClerk : public testing::Test {
protected:
  ~DescriptorClerk() override {
    one_.die();
    other_.die();
    work_.reset();
    thread_.join();
    EXPECT_EQ(host_.deposits().read_statistics().waiting, 0U);
    EXPECT_EQ(test::count_open(label), 0U);
  }

  static unique_fd file() { return make_memfd(label, 64); }
  [[nodiscard]] std::size_t waiting() { return host_.deposits().read_statistics().waiting; }
  [[nodiscard]] std::size_t kept() { return host_.deposits().read_statistics().kept; }
  bool come_to_wait(std::size_t count) {
    return test::eventually([&] { return waiting() == count; });
  }

  domain host_{{.arena_bytes = std::size_t{64} << 20U, .max_participants = 8, .max_blocks = 8192}};
  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{loop_.get_executor()};
  std::thread thread_{[this] { loop_.run(); }};
  participant one_{host_, loop_};
  participant other_{host_, loop_};
};

TEST_F(DescriptorClerk, WhatOneDepositsAllCanFetch) {
  const auto name = one_.exchange().make_name();
  one_.exchange().deposit(name, file(), {});
  EXPECT_TRUE(other_.exchange().fetch(name, deadline::never()));
  EXPECT_TRUE(one_.exchange().fetch(name, deadline::never()));
  EXPECT_TRUE(host_.descriptors().fetch(name, deadline::never()));
  EXPECT_EQ(test::count_open(label), 1U) << "what was fetched is closed by those who had it";
  one_.exchange().withdraw(name);
  EXPECT_FALSE(one_.exchange().fetch(name, deadline::never())) << "withdraw is heard before";
}

TEST_F(DescriptorClerk, WhatTheHostDepositsOthersCanFetch) {
  const auto name = host_.descriptors().make_name();
  std::promise<bool> found;
  std::thread waits([&] { found.set_value(other_.exchange().fetch(name, deadline::never()).has_value()); });
  EXPECT_TRUE(come_to_wait(1));
  host_.descriptors().deposit(name, file(), {});
  EXPECT_TRUE(found.get_future().get());
  waits.join();
  host_.descriptors().withdraw(name);
}

TEST_F(DescriptorClerk, WhatStandsAgainstADepositIsTheDepositorsError) {
  auto& exchange = one_.exchange();
  const auto name = exchange.make_name();
  const auto deposit = [&](descriptor_name as, unique_fd what) {
    return error_of([&] { exchange.deposit(as, std::move(what), {}); });
  };
  EXPECT_EQ(deposit(name, {}), errc::invalid_argument);
  EXPECT_EQ(deposit(other_.exchange().make_name(), file()), errc::invalid_argument);
  EXPECT_FALSE(deposit(name, file()));
  EXPECT_EQ(deposit(name, file()), errc::invalid_argument) << "it is taken";
  EXPECT_FALSE(deposit(exchange.make_name(), file())) << "the next works";
}

TEST_F(DescriptorClerk, TheHostHoldsTheAnchorAndLetsGoOfIt) {
  auto& exchange = one_.exchange();
  const auto name = exchange.make_name();
  auto anchor = one_.shared().blocks().allocate_shared(100);
  exchange.deposit(name, file(), anchor);
  EXPECT_EQ(host_.blocks().read_statistics().holds, 1U);
  exchange.withdraw(name);
  EXPECT_FALSE(exchange.fetch(name, deadline::never()));
  EXPECT_EQ(host_.blocks().read_statistics().holds, 0U);
  EXPECT_TRUE(one_.shared().blocks().is_sole(anchor));
}

TEST_F(DescriptorClerk, WhoHoldsTheAnchorOfTheDeadFetchesUntilHeSaysThatHeLetsGo) {
  const auto name = one_.exchange().make_name();
  const auto anchor = one_.shared().blocks().allocate_shared(100);
  auto held = other_.shared().blocks().borrow(one_.shared().blocks().name_of(anchor));
  other_.shared().blocks().keep(held);
  one_.exchange().deposit(name, file(), anchor);
  one_.die();
  EXPECT_TRUE(other_.exchange().fetch(name, deadline::never()));
  held.reset();
  other_.exchange().let_go(name);
  EXPECT_FALSE(other_.exchange().fetch(name, deadline::never()));
  EXPECT_EQ(test::count_open(label), 0U);
}

TEST_F(DescriptorClerk, AFetchWaitsForADepositAWithdrawalOrADeath) {
  std::array names = {one_.exchange().make_name(), one_.exchange().make_name(), one_.exchange().make_name()};
  std::array<std::atomic<int>, names.size()> found{-1, -1, -1};
  std::vector<std::thread> threads;
  for (std::size_t index = 0; index < names.size(); ++index) {
    threads.emplace_back(
        [&, index] { found[index] = other_.exchange().fetch(names[index], deadline::never()).has_value() ? 1 : 0; });
  }
  EXPECT_TRUE(come_to_wait(3));
  one_.exchange().deposit(names[0], file(), {});
  threads[0].join();
  EXPECT_EQ(found[0], 1);
  one_.exchange().withdraw(names[1]);
  threads[1].join();
  EXPECT_EQ(found[1], 0);
  EXPECT_EQ(found[2], -1);
  one_.die();
  threads[2].join();
  EXPECT_EQ(found[2], 0);
}

TEST_F(DescriptorClerk, AThreadThatWaitsForLongHoldsUpNoOther) {
  const auto late = one_.exchange().make_name();
  std::thread waits([&] { EXPECT_TRUE(other_.exchange().fetch(late, deadline::never())); });
  EXPECT_TRUE(come_to_wait(1));
  for (int times = 0; times < 20; ++times) {
    const auto name = other_.exchange().make_name();
    other_.exchange().deposit(name, file(), {});
    EXPECT_TRUE(other_.exchange().fetch(name, deadline::never()));
    other_.exchange().withdraw(name);
  }
  one_.exchange().deposit(late, file(), {});
  waits.join();
}

TEST_F(DescriptorClerk, AfterItsDeadlineNothingIsLeftOfAFetch) {
  const auto name = one_.exchange().make_name();
  const auto fetch = [&] { static_cast<void>(other_.exchange().fetch(name, deadline::after(10ms))); };
  EXPECT_EQ(error_of(fetch), errc::timed_out);
  EXPECT_TRUE(come_to_wait(0));
  one_.exchange().deposit(name, file(), {});
  EXPECT_TRUE(other_.exchange().fetch(name, deadline::never()));
}

TEST_F(DescriptorClerk, AFetchWhoseDeadlineHasPassedIsALook) {
  const auto name = one_.exchange().make_name();
  const auto look = [&] { return other_.exchange().fetch(name, deadline::after(0s)).has_value(); };
  EXPECT_EQ(error_of([&] { static_cast<void>(look()); }), errc::timed_out) << "it may still come";
  EXPECT_EQ(waiting(), 0U);
  one_.exchange().deposit(name, file(), {});
  EXPECT_TRUE(look());
  one_.exchange().withdraw(name);
  EXPECT_FALSE(one_.exchange().fetch(name, deadline::never())) << "withdraw is heard before";
  EXPECT_FALSE(look());
}

// More than fit into the socket and into what the host keeps for who reads late.
TEST_F(DescriptorClerk, ThousandsOfLooksAreAllAnsweredToWhoHasAsked) {
  const auto name = one_.exchange().make_name();
  one_.exchange().deposit(name, file(), {});
  for (int times = 0; times < 3000; ++times) ASSERT_TRUE(other_.exchange().fetch(name, deadline::after(0s)));
  EXPECT_EQ(test::count_open(label), 1U) << "none is on its way";
  EXPECT_FALSE(receive_message(other_.socket(), wait_mode::poll));
  EXPECT_FALSE(other_.was_turned_away());
}

TEST_F(DescriptorClerk, ManyThreadsOfSeveralProcessesAskAtOnce) {
  constexpr int rounds = 50;
  std::vector<std::thread> threads;
  std::array<std::vector<descriptor_name>, 2> names;
  std::array both = {&one_, &other_};
  for (std::size_t side = 0; side < 2; ++side) {
    for (int round = 0; round < rounds; ++round) names[side].push_back(both[side]->exchange().make_name());
  }
  std::atomic<int> found = 0;
  for (std::size_t side = 0; side < 2; ++side) {
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&, side] {
        for (const auto each : names[1 - side]) found += both[side]->exchange().fetch(each, deadline::never()) ? 1 : 0;
      });
    }
    threads.emplace_back([&, side] {
      for (const auto each : names[side]) both[side]->exchange().deposit(each, file(), {});
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_EQ(found, 2 * 3 * rounds);
  EXPECT_EQ(kept(), 2U * rounds);
}

// ---- want

TEST_F(DescriptorClerk, WhereTheHostMayKeepNoMoreTheDepositorIsTold) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{.rlim_cur = 200, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  auto& exchange = one_.exchange();
  std::error_code failed;
  std::size_t made = 0;
  for (; !failed && made < 1000; ++made) {
    failed = error_of([&] { exchange.deposit(exchange.make_name(), file(), {}); });
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(failed, errc::out_of_memory);
  EXPECT_EQ(made, 101U);
  EXPECT_FALSE(one_.was_turned_away());
}

TEST_F(DescriptorClerk, WhatCannotBeSentAtTheMomentIsTheFetchersError) {
  const auto name = one_.exchange().make_name();
  one_.exchange().deposit(name, file(), {});
  {
    // The fetch itself is sent; the answer fails, and is then sent without the descriptor.
    const test::refused_calls full("sendmsg", ETOOMANYREFS, 1, 1);
    const auto fetch = [&] { static_cast<void>(other_.exchange().fetch(name, deadline::never())); };
    EXPECT_EQ(error_of(fetch), errc::out_of_memory);
  }
  EXPECT_TRUE(other_.exchange().fetch(name, deadline::never()));
}

TEST_F(DescriptorClerk, AnAnswerForWhichThereIsNoMemoryIsSentLater) {
  const auto name = one_.exchange().make_name();
  one_.exchange().withdraw(name);
  EXPECT_FALSE(one_.exchange().fetch(name, deadline::never())) << "withdraw is heard before";
  const test::refused_calls full("sendmsg", ENOBUFS, 1, 1);  // the fetch itself is sent
  EXPECT_FALSE(other_.exchange().fetch(name, deadline::never()));
  EXPECT_EQ(test::refused_calls::left(), -1);
}

TEST_F(DescriptorClerk, ADepositThatCannotBeSentIsAnError) {
  const auto name = one_.exchange().make_name();
  {
    const test::refused_calls full("sendmsg", ETOOMANYREFS, 1);
    EXPECT_EQ(error_of([&] { one_.exchange().deposit(name, file(), {}); }).value(), ETOOMANYREFS);
  }
  EXPECT_FALSE(error_of([&] { one_.exchange().deposit(name, file(), {}); })) << "the name is good for another try";
}

// ---- those who do not keep to the rules

TEST_F(DescriptorClerk, WhoAsksForMoreThanFitsAndReadsItLateGetsAllOfIt) {
  constexpr request_number many = 900;
  const auto name = one_.exchange().make_name();
  for (request_number number = 1; number <= many; ++number) {
    send_message(other_.socket(), message_kind::fetch,
                 body_of(descriptor_request{.number = number, .name = name.bits()}));
  }
  ASSERT_TRUE(come_to_wait(many));
  one_.exchange().deposit(name, file(), {});
  EXPECT_TRUE(come_to_wait(0)) << "the answers wait for room in the socket";
  for (request_number number = 1; number <= many; ++number) {
    const auto heard = receive_message(other_.socket(), wait_mode::block);
    ASSERT_EQ(heard->descriptors.size(), 1U);
  }
  EXPECT_FALSE(other_.was_turned_away());
}

TEST_F(DescriptorClerk, AThousandWaitAndOneMoreIsRefused) {
  constexpr request_number most = 1024;
  const auto name = one_.exchange().make_name();
  for (request_number number = 1; number <= most + 1; ++number) {
    send_message(other_.socket(), message_kind::fetch,
                 body_of(descriptor_request{.number = number, .name = name.bits()}));
  }
  const auto answer = receive_message(other_.socket(), wait_mode::block)->read<descriptor_answer>();
  EXPECT_EQ(answer.number, most + 1);
  EXPECT_EQ(answer.failure, static_cast<std::uint32_t>(errc::out_of_memory));
  EXPECT_EQ(waiting(), most);
}

TEST_F(DescriptorClerk, WhoNeverReadsIsTurnedAway) {
  const auto nothing = body_of(descriptor_request{.number = 1});  // is answered at once
  std::thread asks([&] {
    try {
      while (!other_.was_turned_away())
        static_cast<void>(try_send_message(other_.socket(), message_kind::fetch, nothing));
    } catch (const error&) {  // NOLINT(bugprone-empty-catch): hung up
    }
  });
  EXPECT_TRUE(test::eventually([&] { return other_.was_turned_away(); }));
  asks.join();
}

TEST_F(DescriptorClerk, NonsenseIsTurnedAwayAndHarmsNobody) {
  const auto mine = one_.exchange().make_name();
  one_.exchange().deposit(mine, file(), {});
  const auto say = [&](message_kind what, const descriptor_request& content) {
    participant stranger(host_, loop_);
    const auto stray = file();
    send_message(stranger.socket(), what, body_of(content), std::array{stray.get()});
    return test::eventually([&] { return stranger.was_turned_away(); });
  };
  EXPECT_TRUE(say(message_kind::withdraw, {.name = mine.bits()}));
  EXPECT_TRUE(say(message_kind::deposit, {.number = 1, .name = mine.bits()}));
  EXPECT_TRUE(say(message_kind::answer, {}));
  {
    participant stranger(host_, loop_);
    send_message(stranger.socket(), message_kind::deposit, std::vector<std::byte>(5));
    EXPECT_TRUE(test::eventually([&] { return stranger.was_turned_away(); }));
  }
  EXPECT_TRUE(other_.exchange().fetch(mine, deadline::never()));
}

TEST_F(DescriptorClerk, AnAnchorThatIsNoneIsTheDepositorsError) {
  const auto name = one_.exchange().make_name();
  const auto what = file();
  send_message(one_.socket(), message_kind::deposit,
               body_of(descriptor_request{.number = 5, .name = name.bits(), .anchor = 0x1234'0000'0007}),
               std::array{what.get()});
  const auto answer = receive_message(one_.socket(), wait_mode::block)->read<descriptor_answer>();
  EXPECT_EQ(answer.number, 5U);
  EXPECT_EQ(answer.failure, static_cast<std::uint32_t>(errc::corrupted));
  EXPECT_EQ(kept(), 0U);
}

TEST_F(DescriptorClerk, ADepositWithoutADescriptorSaysWhatMayHaveBecomeOfIt) {
  const auto name = one_.exchange().make_name();
  send_message(one_.socket(), message_kind::deposit, body_of(descriptor_request{.number = 5, .name = name.bits()}));
  const auto answer = receive_message(one_.socket(), wait_mode::block)->read<descriptor_answer>();
  EXPECT_EQ(answer.failure, static_cast<std::uint32_t>(errc::out_of_memory));
  EXPECT_THAT(answer.why, HasSubstr("RLIMIT_NOFILE"));
}

}  // namespace
}  // namespace muster::detail::descriptor_clerk_test
