// SPDX-License-Identifier: BSL-1.0
#include <muster/base/pidfd.hpp>

#include <poll.h>
#include <sys/wait.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include <muster/base/system_call.hpp>

extern "C" {  // glibc 2.36 forgot to say so itself
#include <sys/pidfd.h>
}

namespace muster {

namespace {

// Fills `info` as waitid does: its si_pid stays 0 when there is nothing to reap yet.
int wait_for(int process, int options, siginfo_t& info) {
  const auto wait = [&](int fd) { return ::waitid(P_PIDFD, static_cast<id_t>(fd), &info, WEXITED | options); };
  return try_system_call("waitid", wait, process);
}

exit_status status_of(const siginfo_t& info) {
  return info.si_code == CLD_EXITED ? exit_status::exited(info.si_status) : exit_status::killed(info.si_status);
}

// The status of a zombie is the 50th word behind its name in parentheses, which may hold anything.
exit_status read_status(pid_t pid) {
  std::ifstream file(text("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  std::istringstream rest(line.substr(line.rfind(')') + 1));
  const std::vector<std::string> words{std::istream_iterator<std::string>(rest), {}};
  constexpr std::size_t exit_code = 49;
  if (words.size() <= exit_code || (words.front() != "Z" && words.front() != "X")) return exit_status::lost();
  const int status = std::stoi(words[exit_code]);
  return WIFSIGNALED(status) ? exit_status::killed(WTERMSIG(status)) : exit_status::exited(WEXITSTATUS(status));
}

}  // namespace

unique_fd open_pidfd(pid_t pid) { return unique_fd(system_call("pidfd_open", ::pidfd_open, pid, 0U)); }

bool send_signal(int process, int signal) {
  const auto send = [](int fd, int which) { return ::pidfd_send_signal(fd, which, nullptr, 0); };
  if (try_system_call("pidfd_send_signal", send, process, signal) == 0) return true;
  if (errno == ESRCH) return false;
  detail::throw_system_error_with(errno, "pidfd_send_signal", process, signal);
}

bool has_ended(int process) {
  pollfd asked{.fd = process, .events = POLLIN, .revents = 0};
  const auto look = [&](int) { return ::poll(&asked, 1, 0); };
  system_call("poll", look, process);
  if ((asked.revents & POLLNVAL) != 0) detail::throw_system_error_with(EBADF, "poll", process);
  return asked.revents != 0;
}

exit_status reap(int process) {
  siginfo_t info{};
  if (wait_for(process, 0, info) == 0) return status_of(info);
  if (errno == ECHILD) return exit_status::lost();
  detail::throw_system_error_with(errno, "waitid", process);
}

std::optional<exit_status> try_reap(int process) noexcept {
  siginfo_t info{};
  if (wait_for(process, WNOHANG, info) == 0) {
    if (info.si_pid == 0) return std::nullopt;
    return status_of(info);
  }
  if (errno == EAGAIN) return std::nullopt;
  return exit_status::lost();
}

exit_status status_of_zombie(pid_t pid) noexcept {
  try {
    return read_status(pid);
  } catch (const std::exception&) {
    return exit_status::lost();
  }
}

}  // namespace muster
