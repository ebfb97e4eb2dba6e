// SPDX-License-Identifier: BSL-1.0
// What has changed in a group, as members are told.
#include <muster/rpc/detail/change_finder.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/process.hpp>
#include <muster/rpc.hpp>

namespace muster::change_finder_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using kind = rpc_change_kind;

rpc_change of_member(kind what, const std::string& member, std::uint32_t incarnation = 1) {
  return {.kind = what, .member = member, .name = {}, .incarnation = incarnation};
}
rpc_change of_name(kind what, const std::string& member, const std::string& name, std::uint32_t incarnation = 1) {
  return {.kind = what, .member = member, .name = name, .incarnation = incarnation};
}

/// Looks when it is told to.
class ChangeFinder : public testing::Test {
protected:
  rpc_ticket ticket_{"changes", {"a", "b"}, {.timeout = 60s}};
  rpc_group a_{ticket_, "a"};
  detail::group_table table_ = detail::group_table::attach(ticket_.block().bytes());
  detail::name_table names_{table_, *ticket_.where()};
  detail::change_finder finder_{table_, names_, *ticket_.where()};
};

TEST_F(ChangeFinder, TellsNothingWhereNothingHasChanged) {
  EXPECT_THAT(finder_.look(), IsEmpty());
  a_.serve("before", [] {});
  EXPECT_THAT(finder_.look(), ElementsAre(of_name(kind::served, "a", "before")));
  EXPECT_THAT(finder_.look(), IsEmpty());
}

TEST_F(ChangeFinder, TellsMembersAndNamesInTheirOrder) {
  {
    const rpc_group b(ticket_, "b");
    b.serve("sum", [](int x) { return x; });
    static_cast<void>(a_.publish("value", 3));
    b.unserve("sum");
  }
  EXPECT_THAT(finder_.look(), ElementsAre(of_member(kind::joined, "b"), of_name(kind::served, "b", "sum"),
                                          of_name(kind::published, "a", "value"), of_name(kind::unserved, "b", "sum"),
                                          of_member(kind::left, "b")));
}

TEST_F(ChangeFinder, TellsAMemberThatCameAndWentTwice) {
  {
    const rpc_group b(ticket_, "b");
  }
  {
    const rpc_group b(ticket_, "b");
  }
  EXPECT_THAT(finder_.look(), ElementsAre(of_member(kind::joined, "b", 1), of_member(kind::left, "b", 1),
                                          of_member(kind::joined, "b", 2), of_member(kind::left, "b", 2)));
}

TEST_F(ChangeFinder, TellsNamesThatWereMadeAndGivenUpAgain) {
  for (const auto* const each : {"x", "y", "x"}) {
    a_.serve(each, [] {});
    a_.unserve(each);
  }
  EXPECT_THAT(finder_.look(), ElementsAre(of_name(kind::served, "a", "x"), of_name(kind::unserved, "a", "x"),
                                          of_name(kind::served, "a", "y"), of_name(kind::unserved, "a", "y"),
                                          of_name(kind::served, "a", "x"), of_name(kind::unserved, "a", "x")));
}

TEST_F(ChangeFinder, TellsNothingOfANameThatWasRefused) {
  a_.serve("x", [] {});
  const rpc_group b(ticket_, "b");
  static_cast<void>(finder_.look());
  EXPECT_THROW(b.serve("x", [] {}), error);
  EXPECT_THAT(finder_.look(), IsEmpty());
}

TEST_F(ChangeFinder, EveryNameIsToldWhereAllAreLookedAt) {
  for (int each = 0; each < 300; ++each) {
    const auto name = std::to_string(each);
    a_.serve(name, [] {});
    EXPECT_THAT(finder_.look(), ElementsAre(of_name(kind::served, "a", name)));
    a_.unserve(name);
    EXPECT_THAT(finder_.look(), ElementsAre(of_name(kind::unserved, "a", name)));
  }
}

void run_b(const rpc_ticket& ticket) {
  const rpc_group group(ticket, "b");
  group.serve("of b", [] {});
  group.run();
}

TEST_F(ChangeFinder, TellsADeathBeforeWhatItMadePossible) {
  const process first(run_b, ticket_);
  static_cast<void>(a_.service<void()>("of b"));
  EXPECT_THAT(finder_.look(), ElementsAre(of_member(kind::joined, "b"), of_name(kind::served, "b", "of b")));
  first.kill(SIGKILL);
  first.join();
  const process second(run_b, ticket_);
  static_cast<void>(a_.service<void()>("of b"));
  EXPECT_THAT(finder_.look(),
              ElementsAre(of_member(kind::lost, "b", 1), of_member(kind::joined, "b", 2),
                          of_name(kind::unserved, "b", "of b", 1), of_name(kind::served, "b", "of b", 2)));
}

TEST(RpcChanges, AreToldOneAfterTheOtherOnTheCallbackThread) {
  const rpc_ticket ticket("changes", {"a", "b"}, {.timeout = 60s});
  const rpc_group a(ticket, "a");
  std::mutex lock;
  std::vector<rpc_change> seen;
  std::promise<void> is_lost;
  a.on_change([&](const rpc_change& each) {
    const std::scoped_lock held(lock);
    seen.push_back(each);
    if (each.kind == kind::unserved) is_lost.set_value();
    if (each.kind == kind::joined) throw std::runtime_error("goes to the log, and harms nothing");
  });
  const process b(run_b, ticket);
  static_cast<void>(a.service<void()>("of b"));
  b.kill(SIGKILL);
  is_lost.get_future().get();
  const std::scoped_lock held(lock);
  EXPECT_THAT(seen, ElementsAre(of_member(kind::joined, "b"), of_name(kind::served, "b", "of b"),
                                of_member(kind::lost, "b"), of_name(kind::unserved, "b", "of b")));
}

}  // namespace
}  // namespace muster::change_finder_test
