// SPDX-License-Identifier: BSL-1.0
// kalman: a Kalman filter whose two halves are computed on two ranks. What is computed from what, and what is sent, is
// said in filter.cpp; when to send, to receive and to wait is the library's to find. The ranks are two processes, two
// threads, or one thread (runs.cpp). Or many filters at once, each of them in one worker of a pool (bank.cpp).
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <muster/process/init.hpp>

#include "bank.hpp"
#include "check.hpp"
#include "filter.hpp"
#include "runs.hpp"

namespace kalman {
namespace {

struct settings {
  std::size_t n = 500;
  std::size_t steps = 1000;
  int ranks = 2;
  place where = place::processes;
  std::string trace;
  std::size_t filters = 0;
  unsigned workers = 0;
};

// Each rank's events are an array; so are all together.
void write_trace(const std::string& file, const std::vector<rank_report>& ranks) {
  std::ofstream out(file);
  const char* separator = "[";
  for (const auto& each : ranks) {
    const auto first = each.trace.find('[') + 1;
    out << separator << std::string_view(each.trace).substr(first, each.trace.rfind(']') - first);
    separator = ",";
  }
  out << "]\n";
  out.close();
  if (!out) throw std::runtime_error("cannot write " + file + "; is its directory there, writable and not full?");
}

void run_two_ranks(const settings& how) {
  const problem given(how.n);
  make_filter(how.n).schedule().print(std::cout);
  const auto found = run_filter(given, how.steps, how.ranks == 1 ? place::one_thread : how.where);
  for (const auto& each : found.ranks) std::cout << '\n' << each.times;
  if (!how.trace.empty()) write_trace(how.trace, found.ranks);
  std::cout << '\n'
            << how.steps << " steps of " << how.n << " dimensions in " << found.elapsed.count() << " s" << std::endl;
  const checked_run again(given, how.steps);
  require_same("mu", found.mu, again.mu);
  require_same("Sigma", found.sigma, again.sigma);
  require_covariance(found.sigma);
  std::cout << "largest error: " << again.largest_error << ", and the same bits as in one thread\n";
}

void add_options(CLI::App& app, settings& how) {
  const std::map<std::string, place> places = {{"threads", place::threads}, {"processes", place::processes}};
  app.add_option("-n,--n", how.n, "Dimensions")->check(CLI::Range(1, 20'000))->capture_default_str();
  app.add_option("-s,--steps", how.steps, "Measurements")->check(CLI::PositiveNumber)->capture_default_str();
  auto* const ranks = app.add_option("-r,--ranks", how.ranks, "1: both halves in one thread, in turns; 2: see --in")
                          ->check(CLI::Range(1, 2))
                          ->capture_default_str();
  auto* const where = app.add_option("-i,--in", how.where, "What the two ranks are: threads, or processes (default)")
                          ->transform(CLI::CheckedTransformer(places));
  auto* const trace = app.add_option("-t,--trace", how.trace, "A file for the last step's times, which Perfetto opens");
  auto* const filters = app.add_option("-f,--filters", how.filters, "So many filters instead, each in one worker")
                            ->check(CLI::PositiveNumber)
                            ->excludes(ranks)
                            ->excludes(where)
                            ->excludes(trace);
  app.add_option("-w,--workers", how.workers, "For --filters; by default as many as there are processors")
      ->check(CLI::Range(1, 256))
      ->needs(filters);
}

}  // namespace
}  // namespace kalman

int main(int argc, char** argv) {
  muster::init(argc, argv);
  kalman::settings how;
  CLI::App app("A Kalman filter on two ranks, which send each other what they need while they compute.");
  kalman::add_options(app, how);
  CLI11_PARSE(app, argc, argv);
  try {
    how.filters > 0 ? kalman::run_bank(how.filters, how.workers, how.n, how.steps) : kalman::run_two_ranks(how);
    return EXIT_SUCCESS;
  } catch (const std::exception& problem) {
    std::cerr << "kalman: " << problem.what() << '\n';
    return EXIT_FAILURE;
  }
}
