// SPDX-License-Identifier: BSL-1.0
// A member is killed at many instructions of what members do: join, name a service or value and give that up, call,
// make a value elsewhere and let go of it, answer, leave. Afterwards its names are free, its callers are told, its own
// name can be joined again, and nothing is left of it.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>
#include <muster/memory/domain.hpp>
#include <muster/pool/process.hpp>
#include <muster/queue/event.hpp>
#include <muster/rpc.hpp>

#include "tracee.hpp"

namespace muster::rpc_step_test {
namespace {

using namespace std::chrono_literals;

enum class act : std::uint8_t { join, serve, unserve, publish, call, remote, leave };

struct scenario {
  const char* name;
  act what;
};

constexpr scenario scenarios[] = {{.name = "Join", .what = act::join},       {.name = "Serve", .what = act::serve},
                                  {.name = "Unserve", .what = act::unserve}, {.name = "Publish", .what = act::publish},
                                  {.name = "Call", .what = act::call},       {.name = "Remote", .what = act::remote},
                                  {.name = "Leave", .what = act::leave}};

int add(int a, int b) { return a + b; }

struct counter {
  int value = 0;
  int add(int by) { return value += by; }
};

/// The victim: it does the thing twice, the second time under the eyes of the tracer.
class victim {
public:
  victim(const rpc_ticket& ticket, act what) : ticket_(ticket), what_(what) {}

  void prepare() {
    if (what_ == act::join) return;
    group_.emplace(ticket_, "victim");
    if (what_ == act::unserve) group_->serve("name", add);
  }
  void perform() {
    switch (what_) {
      case act::join: group_.emplace(ticket_, "victim"); return;
      case act::serve: group_->serve("name", add); return;
      case act::unserve: group_->unserve("name"); return;
      case act::publish: static_cast<void>(group_->publish("name", 3)); return;
      case act::call: group_->call("program", add, 1, 2); return;
      case act::remote: group_->remote("program", [] { return counter(); }).call(&counter::add, 1); return;
      case act::leave: group_.reset(); return;
    }
  }
  void undo() {
    switch (what_) {
      case act::serve: return group_->unserve("name");
      case act::publish: return group_->withdraw("name");
      default: return group_.reset();
    }
  }

private:
  const rpc_ticket& ticket_;
  const act what_;
  std::optional<rpc_group> group_;
};

void run_victim(const rpc_ticket& ticket, act what, const event& is_traced, const tensor& has_ended) {
  {
    victim warm(ticket, what);
    warm.prepare();
    warm.perform();
    warm.undo();
  }
  victim self(ticket, what);
  self.prepare();
  is_traced.wait();
  ::raise(SIGTRAP);
  try {
    self.perform();
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): another was faster while it was stopped
  }
  has_ended.at<std::uint32_t>(0) = 1;
  for (;;) ::pause();
}

/// How much is in use.
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

// It goes on when those that it waits for have done their part.
bool step(test::tracee& traced) {
  const auto found = traced.step(true);
  return (found == test::tracee::outcome::asleep ? traced.await_stop() : found) == test::tracee::outcome::stopped;
}

bool is_expected(const rpc_group& group, const std::string& member) {
  for (const auto& each : group.states()) {
    if (each.name == member) return each.state == member_state::expected;
  }
  return true;
}

void expect_all_is_well(const rpc_ticket& ticket, const rpc_group& group) {
  EXPECT_TRUE(test::eventually([&] { return !is_expected(group, "victim"); })) << "no member is to wait for it";
  group.serve("name", add);
  group.unserve("name");
  EXPECT_FALSE(group.is_published("name"));
  const rpc_group again(ticket, "victim");
  EXPECT_EQ(group.call("victim", add, 1, 2), 3);
  EXPECT_EQ(again.call("program", add, 1, 2), 3);
}

class RpcStep : public testing::TestWithParam<scenario> {
protected:
  // Kills the victim after so many instructions, or at the end. Returns how many it has executed.
  static unsigned kill_after(unsigned instructions) {
    const rpc_ticket ticket("steps", {"program", "victim"}, {.timeout = 60s, .inbox = 16, .calls = 16});
    const rpc_group group(ticket, "program");
    const event is_traced;
    const auto has_ended = tensor::zeros<std::uint32_t>({1});
    const process other(run_victim, ticket, GetParam().what, is_traced, has_ended);
    test::tracee traced(other.pid());
    is_traced.set();
    traced.run_to_landing();
    unsigned done = 0;
    while (done < instructions && has_ended.at<std::uint32_t>(0) == 0 && step(traced)) ++done;
    other.kill(SIGKILL);
    other.join();
    expect_all_is_well(ticket, group);
    return done;
  }
};

TEST_P(RpcStep, LeavesNothing) {
  constexpr unsigned kills = 40;
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

INSTANTIATE_TEST_SUITE_P(All, RpcStep, testing::ValuesIn(scenarios),
                         [](const auto& each) { return std::string(each.param.name); });

// ---- stopped for a while in the middle of making a name

// Whether the program may have the name too, in time or at all, depends on where the other one stands.
unsigned stop_after(act what, unsigned instructions) {
  const rpc_ticket ticket("steps", {"program", "victim"}, {.timeout = 20ms, .inbox = 16, .calls = 16});
  const rpc_group group(ticket, "program");
  const event is_traced;
  const auto has_ended = tensor::zeros<std::uint32_t>({1});
  const process other(run_victim, ticket, what, is_traced, has_ended);
  test::tracee traced(other.pid());
  is_traced.set();
  traced.run_to_landing();
  unsigned done = 0;
  while (done < instructions && has_ended.at<std::uint32_t>(0) == 0 && step(traced)) ++done;
  const auto make = [&](const std::string& name) {
    what == act::serve ? group.serve(name, add) : static_cast<void>(group.publish(name, 4));
  };
  make("another name");
  bool is_ours = true;
  try {
    make("name");
  } catch (const error&) {
    is_ours = false;
  }
  traced.release();
  EXPECT_TRUE(test::eventually([&] { return has_ended.at<std::uint32_t>(0) == 1; }));
  const auto owner = is_ours ? "program" : "victim";
  EXPECT_THAT(what == act::serve ? group.services() : group.values(),
              testing::ElementsAre(name_status{.name = "another name", .owner = "program"},
                                   name_status{.name = "name", .owner = owner}));
  return done;
}

class RpcStoppedStep : public testing::TestWithParam<act> {};

TEST_P(RpcStoppedStep, OthersMakeTheirNamesAndEachHasOneOwner) {
  constexpr unsigned stops = 30;
  const unsigned all = stop_after(GetParam(), ~0U);
  for (unsigned each = 0; each < stops && !HasFailure(); ++each) {
    const unsigned after = static_cast<unsigned>(std::uint64_t{all} * each / stops) + each % 7;
    stop_after(GetParam(), after);
    EXPECT_FALSE(HasFailure()) << "stopped after " << after << " of " << all << " instructions";
  }
}

INSTANTIATE_TEST_SUITE_P(All, RpcStoppedStep, testing::Values(act::serve, act::publish),
                         [](const auto& each) { return std::string(each.param == act::serve ? "Serve" : "Publish"); });

// ---- the thread that serves

// The main thread, since the library's own take no signals.
void run_server(const rpc_ticket& ticket, const event& is_traced) {
  const rpc_group group(ticket, "victim", {.threads = 0, .runs = true});
  group.serve("answer", [&](int number) {
    if (number == 0) return number;
    is_traced.wait();
    ::raise(SIGTRAP);
    return number;
  });
  group.run();
}

// After the service has returned: its reply, and the next request. Whoever waits is told.
unsigned kill_server_after(unsigned instructions) {
  const rpc_ticket ticket("steps", {"program", "victim"}, {.timeout = 60s, .inbox = 16, .calls = 16});
  const rpc_group group(ticket, "program");
  const event is_traced;
  const process other(run_server, ticket, is_traced);
  const auto answer = group.service<int(int)>("answer");
  answer(0);
  auto first = answer.call_async(5);
  auto second = answer.call_async(0);
  test::tracee traced(other.pid());
  is_traced.set();
  traced.run_to_landing();
  unsigned done = 0;
  // Where it sleeps it is done: it waits for a third one.
  while (done < instructions && !second.ready() && traced.step(true) == test::tracee::outcome::stopped) ++done;
  other.kill(SIGKILL);
  const auto one = first.get_result();
  EXPECT_TRUE(one.has_value() ? *one == 5 : one.error().code() == errc::peer_lost);
  const auto two = second.get_result();
  EXPECT_TRUE(two.has_value() ? *two == 0 : two.error().code() == errc::peer_lost);
  other.join();
  expect_all_is_well(ticket, group);
  return done;
}

TEST(RpcServerStep, ThoseWhoWaitAreTold) {
  constexpr unsigned kills = 40;
  const auto stays = domain::of_program();
  const unsigned all = kill_server_after(~0U);
  kill_server_after(0);
  const auto before = in_use::now();
  for (unsigned each = 0; each < kills && !testing::Test::HasFailure(); ++each) {
    const unsigned after = static_cast<unsigned>(std::uint64_t{all} * each / kills) + each % 7;
    kill_server_after(after);
    EXPECT_EQ(in_use::now(), before) << "killed after " << after << " of " << all << " instructions";
  }
}

}  // namespace
}  // namespace muster::rpc_step_test
