// SPDX-License-Identifier: BSL-1.0
#include "bench_program.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>

#include <muster/base/effective_cpus.hpp>

#include "mpi_ranks.hpp"
#include "python_peer.hpp"

namespace bench {

namespace {

void print(const row& found) {
  std::printf("%-24s %11.4g %11.4g %-11s  %7.3g  %5.0f %%  %s\n", found.name.c_str(), found.value, found.peer_value,
              found.unit.c_str(), found.ratio, found.spread * 100, found.peer.c_str());
  std::fflush(stdout);
}

// Why it cannot be measured here; nothing when it can.
std::string hindrance(const workload& which) {
  if (which.hindrance) return which.hindrance();
  if (which.needs_two_processors && muster::effective_cpus() < 2) return "not measured: it needs two processors";
  if (!which.needs_module.empty() && !python_peer::has(which.needs_module)) {
    return "peer missing: " + python_peer::interpreter() + " has no " + which.needs_module +
           ": scripts/bench installs it";
  }
  if (which.needs_mpi && mpi_installation::all().empty()) {
    return "peer missing: there is no MPI, or mpi_peer was not built with it: scripts/bench does both";
  }
  return {};
}

void check_names(const std::vector<std::string>& chosen, const std::vector<workload>& all) {
  for (const auto& name : chosen) {
    if (std::ranges::find(all, name, &workload::name) != all.end()) continue;
    throw CLI::ValidationError("there is no workload '" + name + "'; --list shows all");
  }
}

std::vector<row> run(const std::vector<workload>& all, const std::vector<std::string>& chosen, const effort& how) {
  std::printf("%s\n%-24s %11s %11s %-11s  %7s  %7s  %s\n", describe_machine().c_str(), "what", "muster", "peer", "unit",
              "ratio", "spread", "peer");
  std::vector<row> rows;
  for (const auto& each : all) {
    if (!chosen.empty() && std::ranges::find(chosen, each.name) == chosen.end()) continue;
    unpin();  // a pool looks at the processors that it may use
    if (const auto why = hindrance(each); !why.empty()) {
      std::printf("%-24s %s\n", each.name.c_str(), why.c_str());
      rows.push_back({.name = each.name, .missing = why});
      continue;
    }
    rows.push_back(each.run(how));
    print(rows.back());
  }
  return rows;
}

// Nothing to be written is written.
bool write(const std::string& path, const std::string& text) {
  if (path.empty()) return true;
  std::ofstream out(path);
  out << text;
  out.close();
  if (!out) std::cerr << "cannot write " << path << '\n';
  return static_cast<bool>(out);
}

}  // namespace

int run_program(int argc, char** argv, const std::string& about, const std::vector<workload>& all) {
  CLI::App app(about);
  std::vector<std::string> chosen;
  std::string json;
  std::string markdown;
  bool quick = false;
  bool lists = false;
  effort how;
  app.add_option("NAME", chosen, "Workloads; all, when none is named");
  app.add_option("--json", json, "Write the rows to this file");
  app.add_option("--markdown", markdown, "Write them to this file as a table for people");
  app.add_option("--rounds", how.rounds, "Rounds of one turn a side")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--quick", quick, "Three rounds: to see that it works");
  app.add_flag("--list", lists, "Print the names of all workloads");
  app.final_callback([&] { check_names(chosen, all); });
  CLI11_PARSE(app, argc, argv);
  if (lists) {
    for (const auto& each : all) std::cout << each.name << '\n';
    return EXIT_SUCCESS;
  }
  if (quick) how.rounds = 3;

  const auto rows = run(all, chosen, how);
  const bool written = write(json, to_json(rows)) && write(markdown, to_markdown(rows));
  return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace bench
