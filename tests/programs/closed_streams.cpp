// SPDX-License-Identifier: BSL-1.0
// Without standard streams: what is printed goes nowhere, and above all not into shared memory or a socket of ours.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include <muster/pool/pool.hpp>

#include "check.hpp"

namespace {

constexpr std::array streams = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};

void print_much() {
  const std::string much(100'000, 'x');
  std::fputs(much.c_str(), stdout);
  std::fputs(much.c_str(), stderr);
  std::fflush(stdout);
  for (const int each : streams) static_cast<void>(!::write(each, much.data(), much.size()));
}

double print_and_add(const std::vector<double>& numbers) {
  print_much();
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

void close_streams() {
  for (const int each : streams) ::close(each);
}

int count_open() {
  int open = 0;
  for (const int each : streams) open += ::fcntl(each, F_GETFD) >= 0 ? 1 : 0;
  return open;
}

void use_pool(const muster::pool_options& options, int open_in_workers) {
  const muster::pool pool(options);
  check(pool.apply(count_open) == open_in_workers, "the workers' streams");
  const std::vector<double> numbers(100'000, 1);
  for (int round = 0; round < 3; ++round) {
    print_much();
    check(pool.apply(print_and_add, numbers) == 100'000, "the sum");
  }
  check(count_open() == 0, "the program's streams are left closed");
}

// Nothing but events, though much was printed meanwhile.
void trace_pool() {
  std::string name = (std::filesystem::temp_directory_path() / "muster-trace-XXXXXX").string();
  check(::mkdtemp(name.data()) != nullptr, "a folder for the trace");
  const auto file = std::filesystem::path(name) / "trace.json";
  {
    muster::pool pool({.workers = 1});
    pool.trace_to(file);
    check(count_open() == 0, "the trace is no standard stream");
    print_much();
    check(pool.apply(print_and_add, std::vector<double>(10, 1)) == 10, "the traced sum");
    pool.end_trace();
  }
  std::ifstream in(file);
  const std::string found(std::istreambuf_iterator<char>(in), {});
  check(found.find("xxx") == found.npos && found.ends_with("]\n"), "the trace has what was printed");
  std::filesystem::remove_all(name);
}

}  // namespace

// First the program alone closes them, then its workers do so too, before muster has anything. Nobody can read what
// check() says; the exit code tells.
int main(int argc, char** argv) {
  const bool closes_first = ::getenv("CLOSES_FIRST") != nullptr;
  if (closes_first) close_streams();
  muster::init(argc, argv);
  if (!closes_first) close_streams();
  use_pool({.workers = 2}, closes_first ? 0 : 3);
  use_pool({.workers = 2, .output = muster::output_choice::discard()}, closes_first ? 0 : 3);
  trace_pool();
  if (closes_first) return 0;
  ::setenv("CLOSES_FIRST", "1", 1);
  return ::execl("/proc/self/exe", argv[0], nullptr);
}
