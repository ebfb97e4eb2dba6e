// SPDX-License-Identifier: BSL-1.0
// Members do what chance says: call, name services and values and give these up, make values elsewhere, pass references
// on and let go of them; members are killed and come back. After each step what there is must be what a list of it
// says.
#include <chrono>
#include <csignal>
#include <cstddef>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <muster/memory/domain.hpp>
#include <muster/pool/process.hpp>
#include <muster/rpc.hpp>

#include "seed.hpp"
#include "soak_time.hpp"

namespace muster::rpc_random_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t members = 3;
constexpr int most_names = 5;
constexpr std::size_t most_references = 20;

int add(int a, int b) { return a + b; }

struct counter {
  int value = 0;
  int add(int by) { return value += by; }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(value);
  }
};

void run_member(const rpc_ticket& ticket, const std::string& name) { rpc_group(ticket, name).run(); }

std::string name_of(std::size_t member) { return "member " + std::to_string(member); }

/// What is there, by the list: of a service what it adds; of a value, and of what a reference refers to, its number.
struct thing {
  std::size_t owner = 0;
  int number = 0;
};

struct reference {
  remote_ref<counter> ref;
  thing what;
};

class random_group {
public:
  explicit random_group(unsigned seed) : random_(seed) {
    for (std::size_t each = 0; each < members; ++each) start(each);
  }
  random_group(const random_group&) = delete;
  random_group& operator=(const random_group&) = delete;
  ~random_group() {
    references_.clear();
    for (std::size_t each = 0; each < members; ++each) {
      group_.call(name_of(each), [] { this_call::group().leave(); });
      processes_[each]->join();
    }
  }

  void step() {
    switch (pick(12)) {
      case 0: return serve();
      case 1: return unserve();
      case 2: return publish();
      case 3: return withdraw();
      case 4: return make();
      case 5: return drop();
      case 6: return use();
      case 7: return pass_on();
      case 8: return call_service();
      case 9: return look_at_names();
      default: return call();
    }
  }
  void kill() {
    const auto who = pick_member();
    processes_[who]->kill(SIGKILL);
    processes_[who]->join();
    const auto is_gone = [who](const auto& each) { return each.second.owner == who; };
    std::erase_if(services_, is_gone);
    std::erase_if(values_, is_gone);
    for (const auto& each : references_) {
      if (each.what.owner != who) continue;
      EXPECT_THROW(each.ref.call(&counter::add, 1), member_lost);
    }
    std::erase_if(references_, [who](const auto& each) { return each.what.owner == who; });
    EXPECT_THROW(group_.call(name_of(who), add, 1, 1), member_lost);
    start(who);
    EXPECT_EQ(group_.with({.awaits_rejoin = true}).call(name_of(who), add, 1, 1), 2);
  }

private:
  std::size_t pick(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }
  std::size_t pick_member() { return pick(members); }
  std::string pick_name() { return "name " + std::to_string(pick(most_names)); }

  void start(std::size_t who) {
    processes_.resize(members);
    processes_[who].emplace(run_member, ticket_, name_of(who));
  }

  void serve() {
    const auto owner = pick_member();
    const auto name = pick_name();
    const auto number = static_cast<int>(pick(100));
    const auto there = [](const std::string& which, int by) {
      this_call::group().serve(which, [by](int x) { return x + by; });
    };
    if (services_.contains(name)) {
      EXPECT_ANY_THROW(group_.call(name_of(owner), there, name, number));
    } else {
      group_.call(name_of(owner), there, name, number);
      services_[name] = {.owner = owner, .number = number};
    }
  }
  void unserve() {
    const auto owner = pick_member();
    const auto name = pick_name();
    const auto there = [](const std::string& which) { this_call::group().unserve(which); };
    const auto found = services_.find(name);
    if (found != services_.end() && found->second.owner == owner) {
      group_.call(name_of(owner), there, name);
      services_.erase(found);
    } else {
      EXPECT_ANY_THROW(group_.call(name_of(owner), there, name));
    }
  }
  void publish() {
    const auto owner = pick_member();
    const auto name = pick_name();
    const auto number = static_cast<int>(pick(100));
    const auto there = [](const std::string& which, int value) {
      static_cast<void>(this_call::group().publish(which, counter{value}));
    };
    if (values_.contains(name)) {
      EXPECT_ANY_THROW(group_.call(name_of(owner), there, name, number));
    } else {
      group_.call(name_of(owner), there, name, number);
      values_[name] = {.owner = owner, .number = number};
    }
  }
  void withdraw() {
    const auto owner = pick_member();
    const auto name = pick_name();
    const auto there = [](const std::string& which) { this_call::group().withdraw(which); };
    const auto found = values_.find(name);
    if (found != values_.end() && found->second.owner == owner) {
      group_.call(name_of(owner), there, name);
      values_.erase(found);
    } else {
      EXPECT_ANY_THROW(group_.call(name_of(owner), there, name));
    }
  }
  void make() {
    if (references_.size() == most_references) return;
    const auto owner = pick_member();
    const auto number = static_cast<int>(pick(100));
    auto made = group_.remote(name_of(owner), [](int from) { return counter{from}; }, number);
    references_.push_back({.ref = std::move(made), .what = {.owner = owner, .number = number}});
  }
  void drop() {
    if (references_.empty()) return;
    references_.erase(references_.begin() + static_cast<std::ptrdiff_t>(pick(references_.size())));
  }
  void use() {
    if (references_.empty()) return;
    auto& one = references_[pick(references_.size())];
    EXPECT_EQ(one.ref.call(&counter::add, 1), ++one.what.number);
    EXPECT_EQ(one.ref.to_here().value, one.what.number);
  }
  void pass_on() {
    if (references_.empty()) return;
    auto& one = references_[pick(references_.size())];
    const auto there = [](const remote_ref<counter>& which, int by) {
      const auto kept = which;
      return kept.with({.concurrent = kept.is_local()}).call(&counter::add, by);
    };
    one.what.number += 2;
    EXPECT_EQ(group_.call(name_of(pick_member()), there, one.ref, 2), one.what.number);
  }
  void call_service() {
    const auto name = pick_name();
    const auto found = services_.find(name);
    if (found == services_.end()) {
      EXPECT_THROW(group_.call_service<int>(name, 1), error);
    } else {
      EXPECT_EQ(group_.call_service<int>(name, 1), 1 + found->second.number);
    }
  }
  void look_at_names() {
    std::vector<name_status> expected;
    for (const auto& [name, what] : values_) expected.push_back({.name = name, .owner = name_of(what.owner)});
    EXPECT_EQ(group_.values(), expected);
    for (const auto& [name, what] : values_) {
      EXPECT_EQ(group_.find<counter>(name).to_here().value, what.number);
    }
  }
  void call() {
    const auto who = pick_member();
    const auto by_way_of = [](const std::string& next) { return this_call::group().call(next, add, 1, 2); };
    EXPECT_EQ(group_.call(name_of(who), by_way_of, name_of(pick_member())), 3);
  }

  std::mt19937 random_;
  const rpc_ticket ticket_{"random",
                           {"program", name_of(0), name_of(1), name_of(2)},
                           {.timeout = 60s, .inbox = 8, .calls = 8, .most_names = 16, .most_actors = 2}};
  rpc_group group_{ticket_, "program"};
  std::vector<std::optional<process>> processes_;
  std::map<std::string, thing> services_;
  std::map<std::string, thing> values_;
  std::vector<reference> references_;
};

TEST(RpcRandom, IsWhatTheListSays) {
  const auto seed = test::seed(1);
  SCOPED_TRACE(seed);
  const auto until = std::chrono::steady_clock::now() + test::soak_time(1s);
  random_group all(seed);
  std::size_t steps = 0;
  while (std::chrono::steady_clock::now() < until && !testing::Test::HasFailure()) {
    all.step();
    if (++steps % 500 == 0) all.kill();
  }
  RecordProperty("steps", static_cast<int>(steps));
}

}  // namespace
}  // namespace muster::rpc_random_test
