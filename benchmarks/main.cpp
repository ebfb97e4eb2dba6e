// SPDX-License-Identifier: BSL-1.0
// The figures of muster beside those of its peers. Workloads:
//
//   core_rtt_spin      an empty task through the core alone ÷ two processes that spin on a shared page
//   apply_rtt          pool.apply of a captureless lambda with two ints ÷ the same
//   submit_throughput  apply_async and get over a window of 256, one worker ÷ asio::thread_pool(1) with futures
//   map_tiny           map of x + 1 over a million ints, per element ÷ tbb::parallel_for writing an array
//
//   death_to_error, exit_to_error, after_all_idle_died, close_join_empty, close_join_lost, terminate_full,
//   map_async_returns  how long these take ÷ the longest that they may take
//
// Each of the first is a median over rounds in which both sides have a turn; both sides are bound to processors alike.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <CLI/CLI.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <muster/base/effective_cpus.hpp>
#include <muster/pool/pool.hpp>

#include "bounds.hpp"
#include "comparison.hpp"
#include "core_pair.hpp"
#include "ping_pong.hpp"

namespace bench {
namespace {

// Ours on the first processor, the other side of it on the second.
constexpr std::size_t caller = 0;
constexpr std::size_t callee = 1;

side spinning_peer(ping_pong& peer) {
  return {.name = "two-process spin ping-pong",
          .run = [&](std::size_t count) { peer.run(count); },
          .begin = [&] { peer.begin(); },
          .end = [&] { peer.end(); }};
}

row core_rtt_spin(const effort& how) {
  ping_pong peer(callee);
  core_pair core(callee);
  pin(0, caller);
  return compare("core_rtt_spin", how, {.name = "core", .run = [&](std::size_t count) { core.run(count); }},
                 spinning_peer(peer));
}

// A pool of one worker, bound.
class bound_pool {
public:
  bound_pool() : pool_({.workers = 1}) {
    pin(pool_.workers().front().pid, callee);
    pin(0, caller);
  }
  [[nodiscard]] const muster::pool& operator*() const { return pool_; }

private:
  muster::pool pool_;
};

row apply_rtt(const effort& how) {
  ping_pong peer(callee);
  const bound_pool pool;
  const auto run = [&](std::size_t count) {
    for (std::size_t index = 0; index < count; ++index) (*pool).apply([](int a, int b) { return a + b; }, 2, 3);
  };
  return compare("apply_rtt", how, {.name = "pool.apply", .run = run}, spinning_peer(peer));
}

// Keeps `window` futures under way.
template <class Submit>
void run_window(std::size_t count, Submit submit) {
  constexpr std::size_t window = 256;
  std::vector<decltype(submit())> under_way(window);
  for (std::size_t index = 0; index < count; ++index) {
    auto& slot = under_way[index % window];
    if (slot.valid()) slot.get();
    slot = submit();
  }
  for (auto& each : under_way) {
    if (each.valid()) each.get();
  }
}

row submit_throughput(const effort& how) {
  namespace asio = boost::asio;
  asio::thread_pool threads(1);
  asio::post(threads, asio::use_future([] { pin(0, callee); })).get();
  const bound_pool pool;
  const side ours{.name = "apply_async", .run = [&](std::size_t count) {
                    run_window(count, [&] { return (*pool).apply_async([](int a, int b) { return a + b; }, 2, 3); });
                  }};
  const side peer{.name = "asio::thread_pool(1)", .run = [&](std::size_t count) {
                    run_window(count,
                               [&] { return asio::post(threads, asio::use_future([a = 2, b = 3] { return a + b; })); });
                  }};
  return compare("submit_throughput", how, ours, peer);
}

row map_tiny(const effort& how) {
  constexpr std::size_t elements = 1'000'000;
  std::vector<int> input(elements);
  std::iota(input.begin(), input.end(), 0);
  const muster::pool pool;
  const side ours{.name = "map", .run = [&](std::size_t count) {
                    for (std::size_t index = 0; index < count; ++index) {
                      if (pool.map([](int x) { return x + 1; }, input).back() != static_cast<int>(elements))
                        std::abort();
                    }
                  }};
  const side peer{.name = "tbb::parallel_for", .run = [&](std::size_t count) {
                    for (std::size_t index = 0; index < count; ++index) {
                      std::vector<int> output(elements);
                      tbb::parallel_for(tbb::blocked_range<std::size_t>(0, elements), [&](const auto& range) {
                        for (auto at = range.begin(); at != range.end(); ++at) output[at] = input[at] + 1;
                      });
                      if (output.back() != static_cast<int>(elements)) std::abort();
                    }
                  }};
  return compare("map_tiny", how, ours, peer, elements);
}

struct workload {
  std::string name;
  std::function<row(const effort&)> run;
  bool needs_two_processors = true;  // to spin on
};

const std::vector<workload>& workloads() {
  static const std::vector<workload> all{{.name = "core_rtt_spin", .run = core_rtt_spin},
                                         {.name = "apply_rtt", .run = apply_rtt},
                                         {.name = "submit_throughput", .run = submit_throughput},
                                         {.name = "map_tiny", .run = map_tiny, .needs_two_processors = false}};
  return all;
}

void print(const row& found) {
  std::printf("%-20s %10.1f %-3s %10.1f %-3s  %6.3g  %5.0f %%  %s\n", found.name.c_str(), found.value,
              found.unit.c_str(), found.peer_value, found.unit.c_str(), found.ratio, found.spread * 100,
              found.peer.c_str());
  std::fflush(stdout);
}

std::vector<row> run(const std::vector<std::string>& chosen, const effort& how) {
  std::printf("%s\n%-20s %14s %14s  %6s  %7s  %s\n", describe_machine().c_str(), "what", "muster", "peer", "ratio",
              "spread", "peer");
  std::vector<row> rows;
  for (const auto& each : workloads()) {
    if (!chosen.empty() && std::ranges::find(chosen, each.name) == chosen.end()) continue;
    unpin();  // a pool looks at the processors that it may use
    if (each.needs_two_processors && muster::effective_cpus() < 2) {
      std::printf("%-20s left out: it needs two processors\n", each.name.c_str());
      continue;
    }
    rows.push_back(each.run(how));
    print(rows.back());
  }
  unpin();
  for (const auto& each : bounded_workloads()) {
    if (!chosen.empty() && std::ranges::find(chosen, each.name) == chosen.end()) continue;
    rows.push_back(each.run(how));
    print(rows.back());
  }
  return rows;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  muster::init(argc, argv);
  CLI::App app("Measures muster beside its peers, in turns.");
  std::vector<std::string> chosen;
  std::string json;
  bool quick = false;
  bench::effort how;
  app.add_option("NAME", chosen, "Workloads; all, when none is named");
  app.add_option("--json", json, "Write the rows to this file");
  app.add_option("--rounds", how.rounds, "Rounds of one turn a side")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--quick", quick, "Three rounds: to see that it works");
  CLI11_PARSE(app, argc, argv);
  if (quick) how.rounds = 3;

  const auto rows = bench::run(chosen, how);
  if (json.empty()) return EXIT_SUCCESS;
  std::ofstream out(json);
  out << bench::to_json(rows);
  out.close();
  if (!out) std::cerr << "cannot write " << json << '\n';
  return out ? EXIT_SUCCESS : EXIT_FAILURE;
}
