// SPDX-License-Identifier: BSL-1.0
// The handshakes of worker and parent under the memory of C++20, in every way in which they may come out; and every
// memory order of theirs weakened in turn. Results: docs/design/weak-memory.md.
#include <algorithm>
#include <cstdio>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weak/expectations.hpp"
#include "weak/scenarios.hpp"

namespace muster::weak {

void PrintTo(const scenario& what, std::ostream* out) { *out << what.name; }

namespace {

class WeakMemory : public testing::TestWithParam<scenario> {};

TEST_P(WeakMemory, AllowsOnlyWhatIsRight) {
  const auto found = explore(GetParam());
  std::printf("%zu states, %zu ends\n", found.states, found.ends);
  EXPECT_EQ(found.failure, "") << found.trace;
  EXPECT_GT(found.ends, 0U);
}

INSTANTIATE_TEST_SUITE_P(Handshakes, WeakMemory, testing::ValuesIn(all_scenarios()),
                         [](const auto& tested) { return tested.param.name; });

// Steps that need no others are taken first; that must lose no end.
TEST(WeakMemoryChecker, FindsTheSameEndsInAnyOrder) {
  for (const auto& what : all_scenarios()) {
    const auto thrifty = explore(what);
    EXPECT_EQ(explore(what, {.in_any_order = true}).ends, thrifty.ends) << what.name;
  }
}

// A scenario with what is known of it once it was gone through.
struct known_scenario {
  const scenario* what = nullptr;
  std::map<spot, std::memory_order> seen;
  last_writes writes{};
  std::size_t states = 0;
};

// The smallest first.
std::vector<known_scenario> go_through_all() {
  std::vector<known_scenario> all;
  for (const auto& what : all_scenarios()) {
    auto& one = all.emplace_back();
    one.what = &what;
    one.states = explore(what, {.seen = &one.seen, .known = &one.writes}).states;
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.states < b.states; });
  return all;
}

std::vector<mutation> all_mutations(const std::vector<known_scenario>& scenarios) {
  std::map<spot, std::memory_order> seen;
  for (const auto& one : scenarios) {
    for (const auto& [where, order] : one.seen) seen[where] = std::max(seen[where], order);
  }
  std::vector<mutation> found;
  for (const auto& [where, order] : seen) {
    for (const auto how : weakenings_of(where.what, order)) found.push_back({.at = where, .how = how});
  }
  return found;
}

// Which scenario notices it; empty: none.
std::string who_notices(std::vector<known_scenario>& scenarios, const mutation& weak) {
  for (auto& one : scenarios) {
    if (!one.seen.contains(weak.at)) continue;
    const auto found = explore(*one.what, {.weak = weak, .known = &one.writes, .most_states = 1'000'000});
    if (!found.failure.empty() && found.failure != "too many states") return one.what->name;
  }
  return {};
}

// Weakening an order either makes a scenario fail, or is in the list of what is not needed. A new operation in the
// templates, or a weaker order, shows here.
template <class IsAmong>
void expect_noticed_or_listed(IsAmong is_among) {
  auto scenarios = go_through_all();
  std::set<std::string> not_noticed;
  std::set<std::string> listed;
  for (const auto& weak : all_mutations(scenarios)) {
    if (!is_among(weak.at.of)) continue;
    const auto who = who_notices(scenarios, weak);
    std::printf("%s: %s\n", name_of(weak).c_str(), who.empty() ? "-" : who.c_str());
    if (who.empty()) not_noticed.insert(name_of(weak));
    if (not_needed().contains(name_of(weak))) listed.insert(name_of(weak));
  }
  EXPECT_EQ(not_noticed, listed);
}

TEST(WeakOrders, OfSlotsAreNoticedOrKnownNotToBeNeeded) {
  expect_noticed_or_listed([](part of) { return of == part::slot; });
}
TEST(WeakOrders, OfLanesAndSetsAndTheBellAreNoticedOrKnownNotToBeNeeded) {
  expect_noticed_or_listed([](part of) { return of != part::slot; });
}

TEST(WeakOrders, AreAllThereThatAreListed) {
  std::set<std::string> all;
  for (const auto& weak : all_mutations(go_through_all())) all.insert(name_of(weak));
  for (const auto& name : not_needed()) EXPECT_TRUE(all.contains(name)) << name;
}

}  // namespace
}  // namespace muster::weak
