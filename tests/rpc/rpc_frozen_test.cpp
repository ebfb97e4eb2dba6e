// SPDX-License-Identifier: BSL-1.0
// Members that are stopped (SIGSTOP) for a while: those that call them are told at their deadlines, no other member
// waits, and they go on as if nothing had happened.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/process.hpp>
#include <muster/queue/event.hpp>
#include <muster/rpc.hpp>

#include "processes.hpp"

namespace muster::rpc_frozen_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto short_time = rpc_call_options{.deadline = 50ms};

int square(int number) { return number * number; }

std::string text_of(const auto& call) {
  try {
    call();
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

bool is_stopped(const std::filesystem::path& thread) {
  std::ifstream in(thread / "stat");
  std::string line;
  std::getline(in, line);
  const auto end_of_name = line.rfind(')');
  return end_of_name != std::string::npos && line[end_of_name + 2] == 'T';
}

// The signal is sent at once, but takes effect in each of its threads.
void freeze(const process& which) {
  which.kill(SIGSTOP);
  const auto threads = std::filesystem::path("/proc") / std::to_string(which.pid()) / "task";
  EXPECT_TRUE(test::eventually([&] {
    const std::filesystem::directory_iterator all(threads);
    return std::all_of(begin(all), end(all), [](const auto& each) { return is_stopped(each.path()); });
  }));
}

void run_member(const rpc_ticket& ticket, const std::string& name) {
  const rpc_group group(ticket, name);
  int calls = 0;
  group.serve("count at " + name, [&] { return ++calls; }, {.serial = true});
  group.run();
}

/// The program's member, and two others in processes.
struct program {
  rpc_ticket ticket{"frozen", {"program", "x", "y"}, {.timeout = 60s, .inbox = 4}};
  rpc_group group{ticket, "program"};
  process x{run_member, ticket, std::string("x")};

  program() { EXPECT_EQ(group.call("x", square, 2), 4); }
};

TEST(RpcFrozen, ACallOfItEndsAtItsDeadlineAndNeverBegins) {
  program here;
  const auto count = here.group.service<int()>("count at x");
  EXPECT_EQ(count(), 1);
  freeze(here.x);
  EXPECT_THAT(text_of([&] { count.with(short_time)(); }), HasSubstr("it has not begun, and never will"));
  here.x.kill(SIGCONT);
  EXPECT_EQ(count(), 2);
}

TEST(RpcFrozen, InTheMiddleOfACallItGoesOnLater) {
  program here;
  const event has_begun;
  const event goes_on;
  auto far = here.group.call_async(
      "x",
      [](const event& begun, const event& on) {
        begun.set();
        on.wait();
        return 1;
      },
      has_begun, goes_on);
  has_begun.wait();
  freeze(here.x);
  EXPECT_FALSE(far.wait_for(10ms));
  static_cast<void>(far.cancel(cancellation::kill));
  EXPECT_THAT(text_of([&] { far.get(); }), HasSubstr("cancelled"));
  goes_on.set();
  here.x.kill(SIGCONT);
  EXPECT_EQ(here.group.call("x", square, 3), 9);
}

TEST(RpcFrozen, AFullInboxOfItIsSaid) {
  program here;
  freeze(here.x);
  std::string why;
  for (int each = 0; each < 64 && why.empty(); ++each) {
    auto sent = here.group.with(short_time).call_async("x", square, each);
    if (sent.ready()) why = text_of([&] { sent.get(); });
  }
  EXPECT_THAT(why, HasSubstr("rpc_ticket_options::inbox"));
  here.x.kill(SIGCONT);
  EXPECT_EQ(here.group.call("x", square, 4), 16);
}

TEST(RpcFrozen, ItsRemoteValuesAndTheirHoldersWaitForIt) {
  program here;
  const process y(run_member, here.ticket, "y");
  const auto far = here.group.remote("x", square, 5);
  EXPECT_EQ(far.to_here(), 25);
  freeze(here.x);
  EXPECT_THAT(text_of([&] { static_cast<void>(far.with(short_time).to_here()); }), HasSubstr("in time"));
  const auto use = [](const remote_ref<int>& of) { return of.call([](int& value) { return ++value; }); };
  auto later = here.group.call_async("y", use, far);
  EXPECT_EQ(here.group.call("y", square, 6), 36) << "the thread of y that waits for x does not count";
  here.x.kill(SIGCONT);
  EXPECT_EQ(later.get(), 26);
}

struct counted {
  static inline int alive = 0;
  int value = 0;
  explicit counted(int given) : value(given) { ++alive; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  ~counted() { --alive; }
};

// Until its process ends.
void keep(const remote_ref<std::shared_ptr<counted>>& of) {
  static std::vector<remote_ref<std::shared_ptr<counted>>> kept;
  kept.push_back(of);
}

TEST(RpcFrozen, AHolderOfAReferenceKeepsItsValueAndHoldsUpNoOther) {
  program here;
  process y(run_member, here.ticket, "y");
  const auto live = [&] { return here.group.call("x", [] { return counted::alive; }); };
  {
    const auto far = here.group.remote("x", [] { return std::make_shared<counted>(3); });
    here.group.call("y", keep, far);
    freeze(y);
    EXPECT_EQ(far.call([](std::shared_ptr<counted>& of) { return ++of->value; }), 4);
  }
  EXPECT_EQ(live(), 1) << "the one that is stopped has it still";
  y.kill(SIGKILL);
  EXPECT_TRUE(test::eventually([&] { return live() == 0; }));
}

TEST(RpcFrozen, ACallerIsAnsweredWhenItGoesOn) {
  program here;
  const event has_begun;
  const event goes_on;
  here.group.serve("slow", [&] {
    has_begun.set();
    goes_on.wait();
    return 7;
  });
  auto relayed = here.group.call_async("x", [] { return this_call::group().service<int()>("slow")(); });
  has_begun.wait();
  freeze(here.x);
  goes_on.set();
  const process y(run_member, here.ticket, "y");
  EXPECT_EQ(here.group.call("y", square, 7), 49);
  EXPECT_FALSE(relayed.ready());
  here.x.kill(SIGCONT);
  EXPECT_EQ(relayed.get(), 7);
}

TEST(RpcFrozen, OneThatIsKilledThenIsLost) {
  program here;
  freeze(here.x);
  auto asked = here.group.call_async("x", square, 8);
  here.x.kill(SIGKILL);
  EXPECT_THROW(asked.get(), member_lost);
  EXPECT_EQ(here.group.states()[1].state, member_state::lost);
}

}  // namespace
}  // namespace muster::rpc_frozen_test
