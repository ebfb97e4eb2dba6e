// SPDX-License-Identifier: BSL-1.0
// corpus: measures all files of directory trees in worker processes, and shows what a kill of a worker does: nothing.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <muster/base/effective_cpus.hpp>
#include <muster/pool/pool.hpp>

#include "chaos.hpp"
#include "examine.hpp"
#include "progress/progress_bar.hpp"
#include "summary.hpp"
#include "walk.hpp"

namespace corpus {
namespace {

struct settings {
  std::vector<std::string> roots{"/usr/include", "/usr/share/common-licenses"};
  unsigned workers = muster::effective_cpus();
  std::size_t top = 10;
  std::string json;
  bool with_chaos = false;
};

void examine_here(const tree& found, summary& all) {
  progress::progress_bar bar("examining", found.files.size());
  for (const auto& path : found.files) {
    all.add(path, examine(path));
    bar.advance();
  }
}

void examine_in(const muster::pool& pool, const tree& found, summary& all) {
  constexpr unsigned retries = 100;  // reading a file twice does no harm
  progress::progress_bar bar("examining", found.files.size());
  auto path = found.files.begin();
  for (auto& facts : pool.with({.retries = retries, .label = "examine"}).imap(examine, found.files).as_results()) {
    if (facts) {
      all.add(*path, std::move(*facts));
    } else {
      all.add_failure(*path, facts.error().message());
    }
    ++path;
    bar.advance();
  }
}

void print_pool(const muster::pool& pool) {
  const auto stats = pool.stats();
  std::cout << "pool: " << pool.size() << " workers, " << stats.tasks.ended << " tasks, " << stats.workers.started
            << " processes started, " << stats.workers.killed << " killed, " << stats.tasks.retried << " retries, "
            << stats.tasks.lost << " lost\n";
}

void examine_in_workers(const settings& chosen, const tree& found, summary& all) {
  // A file that kills two workers is left out; but not when it is chaos that kills them.
  const unsigned quarantine_after = chosen.with_chaos ? 0 : 2;
  const muster::pool pool({.workers = chosen.workers, .name = "corpus", .quarantine_after = quarantine_after});
  std::optional<chaos> killer;
  if (chosen.with_chaos) killer.emplace(pool);
  examine_in(pool, found, all);
  if (killer) std::cout << "chaos: killed " << killer->kills() << " workers\n";
  killer.reset();
  print_pool(pool);
}

void write_file(const std::string& name, const std::string& content) {
  std::ofstream out(name, std::ios::binary);
  out << content;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + name + "; is its directory there, writable and not full?");
}

void run(const settings& chosen) {
  const auto found = walk(chosen.roots);
  summary all(chosen.top);
  all.add(found.directories);
  const auto start = std::chrono::steady_clock::now();
  if (chosen.workers == 0) {
    examine_here(found, all);
  } else {
    examine_in_workers(chosen, found, all);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::cout << all.table() << all.files() << " files in " << taken.count()
            << " s: " << static_cast<std::size_t>(static_cast<double>(all.files()) / taken.count()) << " files/s with "
            << (chosen.workers == 0 ? "no workers" : std::to_string(chosen.workers) + " workers") << '\n';
  if (!chosen.json.empty()) write_file(chosen.json, all.json());
}

}  // namespace
}  // namespace corpus

int main(int argc, char** argv) {
  muster::init(argc, argv);
  corpus::settings chosen;
  CLI::App app("Measures the files of directory trees in worker processes: sizes, lines, words, duplicates.");
  app.add_option("DIR", chosen.roots, "Directories or files")->capture_default_str();
  app.add_option("--workers", chosen.workers, "Worker processes; 0: none, examine in this process")
      ->capture_default_str();
  app.add_option("--top", chosen.top, "How many of the most frequent words to keep")->capture_default_str();
  app.add_option("--json", chosen.json, "Write everything to this file");
  auto* chaos = app.add_flag("--chaos", chosen.with_chaos, "Kill a random worker every 200 ms");
  CLI11_PARSE(app, argc, argv);
  if (*chaos && chosen.workers == 0) {
    std::cerr << "corpus: --chaos kills workers, and there are none with --workers 0\n";
    return EXIT_FAILURE;
  }
  try {
    corpus::run(chosen);
  } catch (const std::exception& failure) {
    std::cerr << "corpus: " << failure.what() << '\n';
    return EXIT_FAILURE;
  }
}
