// SPDX-License-Identifier: BSL-1.0
// Started by the dynamic loader, which is what /proc/self/exe is then, with options that hold for workers too; and by
// valgrind.
#include <link.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>

#include <muster/base/sanitizer.hpp>
#include <muster/pool/pool.hpp>

#include "check.hpp"

namespace {

int add(int a, int b) { return a + b; }

void crash_in_this_function() { ::raise(SIGSEGV); }

// In a worker: it is a program that makes pools, as any other.
int add_in_a_worker_of_its_own(int a, int b) {
  const muster::pool pool({.workers = 1});
  return pool.apply(add, a, b);
}

std::string executed_file() { return std::filesystem::read_symlink("/proc/self/exe").filename(); }

// Of this program's file; empty where it is linked statically.
std::string find_loader() {
  std::string found;
  const auto look = [](dl_phdr_info* info, std::size_t, void* to) {
    for (int index = 0; index < info->dlpi_phnum; ++index) {
      const auto& each = info->dlpi_phdr[index];
      const auto address = info->dlpi_addr + each.p_vaddr;
      if (each.p_type == PT_INTERP) *static_cast<std::string*>(to) = reinterpret_cast<const char*>(address);  // NOLINT
    }
    return 1;  // the first is the program
  };
  ::dl_iterate_phdr(look, &found);
  return found;
}

int run_by_loader(const char* program) {
  constexpr int skipped = 77;
  if (muster::is_sanitized) {
    std::cout << "skipped: a sanitizer may execute the program anew by itself, from /proc/self/exe\n";
    return skipped;
  }
  const auto loader = find_loader();
  check(!loader.empty(), "the program has a loader");
  const auto folder = std::filesystem::path(program).parent_path();
  const auto file = "./" + std::filesystem::path(program).filename().string();
  check(::chdir(folder.c_str()) == 0, "the program's folder is there");
  ::execl(loader.c_str(), loader.c_str(), "--inhibit-cache", "--library-path", ".:/lib:/usr/lib", "--argv0", "renamed",
          file.c_str(), "by_loader", nullptr);
  return EXIT_FAILURE;
}

// Valgrind is what /proc/self/exe is then, and it cannot be started so.
int expect_that_it_runs_alone() {
  expect_error(muster::errc::start_failed, {"/proc/self/exe", "valgrind", "start this program by itself"}, [] {
    muster::pool pool({.workers = 1, .log = [](muster::log_level, std::string_view) {}});
    pool.apply(add, 20, 22);
  });
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  if (argc == 1) return run_by_loader(argv[0]);
  if (std::strcmp(argv[1], "valgrind") == 0) return expect_that_it_runs_alone();
  check(executed_file().starts_with("ld"), "this program is started by the loader");
  check(::chdir("/") == 0, "there is a root");
  muster::pool pool({.workers = 2, .log = [](muster::log_level, std::string_view) {}});
  check(pool.apply(add, 20, 22) == 42, "workers run tasks");
  check(pool.apply(executed_file) == executed_file(), "workers are started by the loader");
  check(pool.apply(add_in_a_worker_of_its_own, 20, 22) == 42, "workers make pools");
  expect_error(muster::errc::worker_died, {"SIGSEGV", "crash_in_this_function"},
               [&] { pool.apply(crash_in_this_function); });
  return EXIT_SUCCESS;
}
