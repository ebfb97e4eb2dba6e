// SPDX-License-Identifier: BSL-1.0
#pragma once

// Two processes that meet at a Unix socket, without muster.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace bench {

/// Forks a process that serves, before there is any thread; it dies with this one.
class two_processes {
public:
  /// `serve(path, is_ready)` makes the socket, calls `is_ready`, and never returns.
  template <class Serve>
  explicit two_processes(Serve serve) {
    std::string name = "/tmp/muster-peer-XXXXXX";
    int ends[2] = {-1, -1};
    if (::mkdtemp(name.data()) == nullptr || ::pipe(ends) != 0) throw std::runtime_error("mkdtemp or pipe failed");
    folder_ = name;
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      serve(socket(), [&] { static_cast<void>(::write(ends[1], "1", 1) == 1); });
      ::_exit(0);
    }
    char ready = 0;
    ::close(ends[1]);
    if (::read(ends[0], &ready, 1) != 1) throw std::runtime_error("the process that serves has ended");
    ::close(ends[0]);
  }
  two_processes(const two_processes&) = delete;
  two_processes& operator=(const two_processes&) = delete;
  ~two_processes() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }

  /// Where they meet.
  [[nodiscard]] std::string socket() const { return folder_ + "/socket"; }

private:
  std::string folder_;
  pid_t child_ = 0;
};

}  // namespace bench
