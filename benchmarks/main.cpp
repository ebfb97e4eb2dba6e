// SPDX-License-Identifier: BSL-1.0
// The figures of muster beside those of its peers. Workloads:
//
//   core_rtt_spin             an empty task through the core alone ÷ two processes that spin on a shared page
//   apply_rtt                 pool.apply of a captureless lambda with two ints ÷ the same
//   apply_rtt_vs_thread_pool  the same ÷ asio::thread_pool with a std::future, both as they come
//   apply_rtt_asleep          the same, everybody asleep first ÷ a futex round trip of two processes
//   apply_vs_python           the same ÷ multiprocessing.Pool.apply
//   imap_vs_python            imap with chunks of one ÷ multiprocessing.Pool.imap with the same
//
//   submit_throughput         apply_async and get over a window of 256, one worker ÷ asio::thread_pool(1), futures
//   submit_vs_tbb             256 tiny tasks fired, then collected ÷ tbb::task_group
//   map_tiny                  map of x + 1 over a million ints, per element ÷ tbb::parallel_for writing an array
//   task_1us, task_10us       busy tasks on 2 workers ÷ the best of a queue under a mutex, asio and TBB, 2 threads each
//   copy_64MiB                a vector argument of 64 MiB to a worker that keeps its heap, bytes per second ÷ memcpy's
//   two_submitters            two threads that submit to one worker, per task ÷ one thread
//
//   start_2                   pool of 2 made and its first result ÷ posix_spawn of /bin/true and wait
//   death_to_error            SIGKILL of a worker to worker_died in the future ÷ SIGKILL to a readable pidfd
//   respawn                   SIGKILL to the next result from the replacement, pool of 1 ÷ posix_spawn and wait
//
//   idle_cpu                  processors that an idle pool of 8 uses, over 5 s
//   worker_rss                private memory of an idle worker
//   pending_bytes             memory of the parent per pending task, a million pending
//   allocs_per_task           operator new in parent and worker, per warm task
//
//   death_to_result, exit_to_result, after_all_idle_died, close_join_empty, close_join_lost, terminate_full,
//   map_async_returns         how long these take ÷ the longest that they may take
//
// Those with a peer are medians over rounds in which each side has a turn; all sides are bound to processors alike.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>

#include <muster/base/effective_cpus.hpp>

#include "bounds.hpp"
#include "python_peer.hpp"
#include "workloads.hpp"

namespace bench {
namespace {

std::vector<workload> all_workloads() {
  std::vector<workload> all;
  for (const auto& some : {round_trips(), throughputs(), lifetimes(), costs()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  for (const auto& each : bounded_workloads()) {
    all.push_back({.name = each.name, .run = each.run, .needs_two_processors = false});
  }
  return all;
}

void print(const row& found) {
  std::printf("%-24s %11.4g %11.4g %-11s  %7.3g  %5.0f %%  %s\n", found.name.c_str(), found.value, found.peer_value,
              found.unit.c_str(), found.ratio, found.spread * 100, found.peer.c_str());
  std::fflush(stdout);
}

// Why it cannot be measured here; nothing when it can.
const char* hindrance(const workload& which) {
  if (which.needs_two_processors && muster::effective_cpus() < 2) return "it needs two processors";
  if (which.needs_python && !python_peer::is_there()) return "there is no /usr/bin/python3";
  return nullptr;
}

void check_names(const std::vector<std::string>& chosen, const std::vector<workload>& all) {
  for (const auto& name : chosen) {
    if (std::ranges::find(all, name, &workload::name) != all.end()) continue;
    throw CLI::ValidationError("there is no workload '" + name + "'; the list is on top of benchmarks/main.cpp");
  }
}

std::vector<row> run(const std::vector<workload>& all, const std::vector<std::string>& chosen, const effort& how) {
  std::printf("%s\n%-24s %11s %11s %-11s  %7s  %7s  %s\n", describe_machine().c_str(), "what", "muster", "peer", "unit",
              "ratio", "spread", "peer");
  std::vector<row> rows;
  for (const auto& each : all) {
    if (!chosen.empty() && std::ranges::find(chosen, each.name) == chosen.end()) continue;
    unpin();  // a pool looks at the processors that it may use
    if (const auto* why = hindrance(each)) {
      std::printf("%-24s left out: %s\n", each.name.c_str(), why);
      continue;
    }
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
  const auto all = bench::all_workloads();
  app.final_callback([&] { bench::check_names(chosen, all); });
  CLI11_PARSE(app, argc, argv);
  if (quick) how.rounds = 3;

  const auto rows = bench::run(all, chosen, how);
  if (json.empty()) return EXIT_SUCCESS;
  std::ofstream out(json);
  out << bench::to_json(rows);
  out.close();
  if (!out) std::cerr << "cannot write " << json << '\n';
  return out ? EXIT_SUCCESS : EXIT_FAILURE;
}
