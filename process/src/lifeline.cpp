// SPDX-License-Identifier: BSL-1.0
#include "lifeline.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>

#include <muster/base/standard_streams.hpp>
#include <muster/base/system_call.hpp>

namespace muster::detail {

std::pair<unique_fd, unique_fd> make_lifeline() {
  std::array<int, 2> ends{};
  system_call("pipe2", ::pipe2, ends.data(), O_CLOEXEC | O_NONBLOCK);
  std::pair<unique_fd, unique_fd> made{unique_fd(ends[0]), unique_fd(ends[1])};
  for (auto* each : {&made.first, &made.second}) *each = above_standard_streams(std::move(*each));
  // Workers open it anew, also those that are started when the program has given up the user that it was made by. Who
  // may not look into a process's descriptors does not find it.
  system_call("fchmod", ::fchmod, made.first.get(), mode_t{0444});
  return made;
}

unique_fd hold_lifeline(const unique_fd& read_end) {
  // Owner and signal belong to the open file description, which all workers were sent; each needs one of its own.
  const auto path = "/proc/self/fd/" + std::to_string(read_end.get());
  const auto reopen = [](const char* which) { return ::open(which, O_RDONLY | O_NONBLOCK | O_CLOEXEC); };
  auto own = above_standard_streams(unique_fd(system_call("open", reopen, path.c_str())));
  const auto group = ::getpgrp();  // of its own, with whatever it may start
  const auto owner = group == ::getpid() ? -group : ::getpid();
  const auto control = [](int fd, int command, int argument) { return ::fcntl(fd, command, argument); };
  system_call("fcntl F_SETSIG", control, own.get(), F_SETSIG, SIGKILL);
  system_call("fcntl F_SETOWN", control, own.get(), F_SETOWN, static_cast<int>(owner));
  system_call("fcntl F_SETFL", control, own.get(), F_SETFL, O_ASYNC | O_NONBLOCK);
  char nothing = 0;
  if (::read(own.get(), &nothing, 1) == 0) ::_exit(EXIT_FAILURE);  // closed before the signal was armed
  return own;
}

void die_with(pid_t parent) {
  const auto set = [](int signal) { return ::prctl(PR_SET_PDEATHSIG, signal); };
  system_call("prctl PR_SET_PDEATHSIG", set, SIGKILL);
  if (::getppid() != parent) ::_exit(EXIT_FAILURE);  // it had ended before the signal was set
}

}  // namespace muster::detail
