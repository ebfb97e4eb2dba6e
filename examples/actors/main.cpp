// SPDX-License-Identifier: BSL-1.0
// A learner and four samplers, each in a process of its own, learn to keep a pole upright on a cart.
//
// The samplers call the learner's services: they ask for a policy, try it, and say how long the pole stood. The learner
// calls methods of objects that live in the samplers: each has handed it a reference to its record. One sampler is
// killed on the way: who waits for it is told, and all others go on.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <muster/pool/process.hpp>
#include <muster/process/init.hpp>
#include <muster/rpc.hpp>

#include "cart_pole.hpp"
#include "search.hpp"

namespace {

using actors::candidate;
using actors::cart_pole;

constexpr int samplers = 4;

std::string sampler_name(int number) { return "sampler " + std::to_string(number); }

void say(const std::string& line) { std::fputs((line + "\n").c_str(), stdout), std::fflush(stdout); }

/// What a sampler has done. It stays in the sampler; the learner asks for it.
struct record {
  int episodes = 0;
  int longest = 0;

  void note(int steps) {
    ++episodes;
    longest = std::max(longest, steps);
  }
  [[nodiscard]] std::string text() const {
    return std::to_string(episodes) + " episodes, the longest of " + std::to_string(longest) + " steps";
  }
};

void sample(const muster::rpc_ticket& ticket, int number) {
  const muster::rpc_group group(ticket, sampler_name(number));
  const auto own = group.keep(record());
  group.service<void(std::string, muster::remote_ref<record>)>("enrol")(sampler_name(number), own);

  // Each knows how its neighbour fares, as long as that lives.
  group.serve("longest of " + sampler_name(number), [own] { return own.local().longest; }, {.serial = true});
  const auto neighbour = sampler_name(number % samplers + 1);
  std::optional<muster::service<int()>> longest = group.service<int()>("longest of " + neighbour);

  const auto next = group.service<std::optional<candidate>()>("next");
  const auto bring = group.service<void(candidate, int)>("bring");
  while (const auto tried = next()) {
    cart_pole world(tried->seed());
    const int steps = world.balance(tried->how);
    own.call(&record::note, steps);
    bring(*tried, steps);
    try {
      if (longest) static_cast<void>((*longest)());
    } catch (const muster::member_lost& lost) {
      say("  " + sampler_name(number) + " is told: " + lost.what() + "; it goes on");
      longest.reset();
    }
  }
  group.run();  // the learner asks for the record, and says when to leave
}

void learn(const muster::rpc_ticket& ticket) {
  const muster::rpc_group group(ticket, "learner");
  actors::search search;
  std::map<std::string, muster::remote_ref<record>> records;
  const auto tell = group.service<void(int, double)>("generation");

  // In one line no two run at once, so that they need no lock.
  const muster::service_options in_line{.line = "search"};
  std::stop_source done;
  const auto enrol = [&](const std::string& name, const muster::remote_ref<record>& which) { records[name] = which; };
  group.serve("enrol", enrol, in_line);
  group.serve("next", [&] { return search.next(); }, in_line);
  group.serve(
      "bring",
      [&](const candidate& which, int steps) {
        const int generation = search.generation();
        if (!search.bring(which, steps)) return;
        tell(generation, search.mean_of_best());
        if (search.is_done()) done.request_stop();
      },
      in_line);
  group.run(done.get_token());

  for (const auto& [name, which] : records) {
    try {
      say(name + ": " + which.call(&record::text));
      group.call(name, [] { muster::this_call::group().leave(); });
    } catch (const muster::member_lost& lost) {
      say(name + " is gone: " + lost.what());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  std::vector<std::string> names{"program", "learner"};
  for (int number = 1; number <= samplers; ++number) names.push_back(sampler_name(number));
  const muster::rpc_ticket ticket("cart pole", names);
  muster::rpc_group group(ticket, "program");

  const muster::process learner(learn, ticket);
  std::vector<muster::process> all;
  for (int number = 1; number <= samplers; ++number) all.emplace_back(sample, ticket, number);

  double best = 0;
  group.serve("generation", [&](int number, double mean) {
    best = mean;
    say("generation " + std::to_string(number) + ": the best quarter stands for " +
        std::to_string(static_cast<int>(mean)) + " of " + std::to_string(cart_pole::most_steps) + " steps");
    if (number == 2) {
      say("  sampler 2 is killed");
      all[1].kill(SIGKILL);
      all[1].join();
    }
  });
  learner.join();
  learner.watch();
  const bool stands = best >= cart_pole::most_steps;
  say(stands ? "the pole stands" : "the pole falls");
  return stands ? 0 : 1;
}
