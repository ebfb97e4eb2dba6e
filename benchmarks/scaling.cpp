// SPDX-License-Identifier: BSL-1.0
// How the dispatch would scale to more workers than this machine has processors. Parts:
//
//   dispatch     as built and other ways, 1 to 256 workers, tasks of 0 to 100 us, one submitting thread
//   submitters   1, 2 and 4 submitting threads
//   completion   how the parent notices ends
//   check        two figures that scripts/bench measures, as simulated; and threads of this machine beside the
//                simulation: do both do the same things to shared words?
//
// All but those threads are simulated: what is printed are times of an imagined machine (scaling_machine.hpp), the same
// in each run. What was learnt from it: docs/design/scaling.md.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "scaling_report.hpp"
#include "scaling_run.hpp"

namespace scaling {
namespace {

struct way {
  std::string name;
  std::function<void(plan&)> apply;
};

void make_calm(plan& what) {
  what.losers = patience::careful;
  what.spinners = 4;
  what.relay = true;
  what.enough = 2;
}

const std::vector<way>& ways() {
  static const std::vector<way> all{
      {.name = "as built", .apply = [](plan&) {}},
      {.name = "careful", .apply = [](plan& what) { what.losers = patience::careful; }},
      {.name = "batch",
       .apply =
           [](plan& what) {
             what.how = dispatch::batch;
             what.losers = patience::back_off;
           }},
      {.name = "sharded", .apply = [](plan& what) { what.how = dispatch::sharded; }},
      {.name = "pushed", .apply = [](plan& what) { what.how = dispatch::pushed; }},
      {.name = "calm", .apply = make_calm},
      {.name = "calm, sharded",
       .apply =
           [](plan& what) {
             make_calm(what);
             what.how = dispatch::sharded;
           }},
  };
  return all;
}

const way& way_named(const std::string& name) {
  return *std::ranges::find_if(ways(), [&](const way& each) { return each.name == name; });
}

struct settings {
  machine_costs costs;
  std::vector<std::size_t> workers{1, 2, 4, 16, 64, 256};
  std::vector<std::size_t> lengths_us{0, 1, 10, 100};
  std::vector<std::string> parts{"dispatch", "submitters", "completion", "check"};
  std::size_t tasks_each = 20;  // for each worker
  std::size_t fewest_tasks = 2400;
};

plan plan_for(const settings& how, std::size_t workers, std::size_t length_us) {
  plan made;
  made.workers = workers;
  made.length = std::chrono::microseconds(length_us);
  made.window = std::max<std::size_t>(256, 4 * workers);
  made.tasks = std::max(how.fewest_tasks, how.tasks_each * workers);
  return made;
}

row simulate_row(const std::string& part, const std::string& name, const plan& what, const settings& how,
                 bool with_delays) {
  row made{.part = part, .name = name, .what = what, .found = simulate(what, how.costs), .halved = {}};
  if (!with_delays) return made;
  plan half = what;
  half.window = std::max<std::size_t>(what.workers / 2, 1);
  made.halved = simulate(half, how.costs);
  return made;
}

void dispatch_part(const settings& how, std::vector<row>& rows) {
  print_heading("dispatch: one submitting thread");
  for (const auto length : how.lengths_us) {
    for (const auto workers : how.workers) {
      for (const auto& each : ways()) {
        auto what = plan_for(how, workers, length);
        each.apply(what);
        rows.push_back(simulate_row("dispatch", each.name, what, how, true));
        print(rows.back());
      }
    }
  }
}

void submitters_part(const settings& how, std::vector<row>& rows) {
  print_heading("submitters: several submitting threads");
  for (const auto workers : how.workers) {
    if (workers < 4) continue;
    for (const std::size_t submitters : {1U, 2U, 4U}) {
      for (const auto* name : {"careful", "calm, sharded"}) {
        auto what = plan_for(how, workers, 1);
        way_named(name).apply(what);
        what.submitters = submitters;
        rows.push_back(simulate_row("submitters", name, what, how, false));
        print(rows.back());
      }
    }
  }
}

// With the calmest dispatch, lest that be what counts.
void completion_part(const settings& how, std::vector<row>& rows) {
  print_heading("completion: how the parent notices ends");
  for (const auto workers : how.workers) {
    for (const auto ends : {completion::slots, completion::ahead, completion::rings, completion::sweep}) {
      auto what = plan_for(how, workers, 10);
      way_named("calm, sharded").apply(what);
      what.ends = ends;
      rows.push_back(simulate_row("completion", name_of(ends), what, how, false));
      print(rows.back());
    }
  }
}

// The processors of a virtual machine are two cores of one cluster.
void check_times(const settings& how) {
  auto one = plan_for(how, 1, 0);
  const auto many = simulate(one, how.costs);
  one.window = 1;
  const auto single = simulate(one, how.costs);
  std::printf(
      "\ncheck: simulated with one worker: ping-pong %lld ns, round trip of a task %.0f ns, a task of 256 %.0f ns\n",
      static_cast<long long>(simulate_ping_pong(how.costs).count()), 1e9 / single.tasks_per_second,
      1e9 / many.tasks_per_second);
}

void check_part(const settings& how, std::vector<row>& rows) {
  check_times(how);
  std::printf("what threads of this machine do, and what the simulation does\n");
  for (const std::size_t workers : {1U, 2U, 4U}) {
    for (const std::size_t length : {0U, 10U}) {
      const auto what = plan_for(how, workers, length);
      rows.push_back({.part = "check", .name = "threads", .what = what, .found = run_threads(what), .halved = {}});
      rows.push_back(simulate_row("check", "simulated", what, how, false));
      print_counts(rows[rows.size() - 2], rows.back());
    }
  }
}

std::vector<row> run(const settings& how) {
  std::vector<row> rows;
  const auto wanted = [&](const char* part) { return std::ranges::find(how.parts, part) != how.parts.end(); };
  if (wanted("dispatch")) dispatch_part(how, rows);
  if (wanted("submitters")) submitters_part(how, rows);
  if (wanted("completion")) completion_part(how, rows);
  if (wanted("check")) check_part(how, rows);
  return rows;
}

bool write(const std::string& path, const std::string& what) {
  if (path.empty()) return true;
  std::ofstream out(path);
  out << what;
  out.close();
  if (!out) std::cerr << "cannot write " << path << '\n';
  return static_cast<bool>(out);
}

// An option of so many nanoseconds.
void add_cost(CLI::App& app, const std::string& name, nanoseconds& of, const std::string& help) {
  app.add_option_function<std::int64_t>(
         name, [&of](std::int64_t value) { of = nanoseconds(value); }, help + ", ns")
      ->default_str(std::to_string(of.count()))
      ->check(CLI::PositiveNumber);
}

void add_costs(CLI::App& app, machine_costs& costs) {
  add_cost(app, "--same-cluster", costs.same_cluster, "Transfer of a line between cores of one cluster");
  add_cost(app, "--same-socket", costs.same_socket, "... of two clusters");
  add_cost(app, "--other-socket", costs.other_socket, "... of two sockets");
  add_cost(app, "--shared-read", costs.shared_read, "How long reading a shared line occupies it");
  add_cost(app, "--wake-call", costs.wake_call, "System call to wake a worker");
  add_cost(app, "--wake-up", costs.wake_up, "Until a woken worker runs");
  app.add_option("--cluster-cores", costs.cluster_cores, "Cores of a cluster")->check(CLI::PositiveNumber);
  app.add_option("--socket-cores", costs.socket_cores, "Cores of a socket")->check(CLI::PositiveNumber);
}

int run(int argc, char** argv) {
  CLI::App app("Simulates how the dispatch scales with workers.");
  settings how;
  std::string json;
  std::string svg;
  bool quick = false;
  app.add_option("PART", how.parts, "dispatch, submitters, completion, check; all, when none is named");
  app.add_option("--workers", how.workers, "Numbers of workers")->check(CLI::Range(1, 256));
  app.add_option("--lengths", how.lengths_us, "Lengths of tasks, us");
  app.add_option("--json", json, "Write the rows to this file");
  app.add_option("--svg", svg, "Write the chart to this file");
  app.add_flag("--quick", quick, "Few workers and tasks: to see that it works");
  add_costs(app, how.costs);
  CLI11_PARSE(app, argc, argv);
  if (quick) {
    how.workers = {1, 4, 16};
    how.lengths_us = {0, 10};
    how.fewest_tasks = 600;
  }
  const auto rows = run(how);
  const bool written = write(json, to_json(rows)) && write(svg, to_svg(rows, "as built", "calm, sharded"));
  return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace scaling

int main(int argc, char** argv) { return scaling::run(argc, argv); }
