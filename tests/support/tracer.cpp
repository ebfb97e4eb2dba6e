// SPDX-License-Identifier: BSL-1.0
#include "tracer.hpp"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

namespace muster::test {

namespace {

bool seize_all_threads(pid_t traced) {
  const std::filesystem::directory_iterator threads("/proc/" + std::to_string(traced) + "/task");
  return std::all_of(begin(threads), end(threads), [](const auto& each) {
    return ::ptrace(PTRACE_SEIZE, std::stoi(each.path().filename()), nullptr, nullptr) == 0;
  });
}

[[noreturn]] void look_away() {
  for (;;) ::pause();
}

// The end of the traced process stays as it is. Its other threads are reaped: before that it has not ended, and a
// sanitizer's runtime may have threads in the simplest of processes.
int pass_on_signals(pid_t traced) {
  for (;;) {
    siginfo_t seen{};
    if (::waitid(P_ALL, 0, &seen, WSTOPPED | WEXITED | WNOWAIT | __WALL) != 0) return 1;
    const bool stopped = seen.si_code == CLD_TRAPPED || seen.si_code == CLD_STOPPED;
    if (!stopped && seen.si_pid == traced) break;
    int status = 0;
    ::waitpid(seen.si_pid, &status, __WALL);
    if (stopped) ::ptrace(PTRACE_CONT, seen.si_pid, nullptr, WSTOPSIG(status));
  }
  look_away();
}

}  // namespace

tracer::tracer(pid_t traced, notice takes)
    : process_(spawn(1, [this, traced, takes](std::size_t) {
        const bool done = seize_all_threads(traced);
        *traces_ = done ? 1 : -1;
        if (!done) return 0;
        if (takes == notice::of_none) look_away();
        return pass_on_signals(traced);
      })) {
  static_cast<void>(eventually([this] { return *traces_ != 0; }));
}

void tracer::let_go() { process_.reset(); }

bool is_zombie(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return false;
  const auto end_of_name = line.rfind(')');
  return end_of_name != std::string::npos && line.compare(end_of_name + 2, 1, "Z") == 0;
}

}  // namespace muster::test
