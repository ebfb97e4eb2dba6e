// SPDX-License-Identifier: BSL-1.0
#include <muster/base/pidfd.hpp>

#include <sys/wait.h>

#include <muster/base/system_call.hpp>

extern "C" {  // glibc 2.36 forgot to say so itself
#include <sys/pidfd.h>
}

namespace muster {

unique_fd open_pidfd(pid_t pid) { return unique_fd(system_call("pidfd_open", ::pidfd_open, pid, 0U)); }

bool send_signal(int process, int signal) {
  if (::pidfd_send_signal(process, signal, nullptr, 0) == 0) return true;
  if (errno == ESRCH) return false;
  detail::throw_system_error_with(errno, "pidfd_send_signal", process, signal);
}

exit_status reap(int process) {
  siginfo_t info{};
  const auto wait = [&info](int fd) { return ::waitid(P_PIDFD, static_cast<id_t>(fd), &info, WEXITED); };
  try {
    system_call("waitid", wait, process);
  } catch (const error& failure) {
    if (failure.code() == std::errc::no_child_process) return exit_status::lost();
    throw;
  }
  return info.si_code == CLD_EXITED ? exit_status::exited(info.si_status) : exit_status::killed(info.si_status);
}

}  // namespace muster
