// SPDX-License-Identifier: BSL-1.0
#include <muster/base/exit_status.hpp>

#include <cstring>

#include <muster/base/text.hpp>

namespace muster {

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? text("SIG", name) : text("signal ", signal);
}

std::string to_string(const exit_status& status) {
  switch (status.how()) {
    case exit_status::kind::exited: return text("exited with code ", status.code());
    case exit_status::kind::killed:
      return text("was killed by ", signal_name(status.signal()), " (", status.signal(), ')');
    case exit_status::kind::lost: break;
  }
  return "ended, and its exit status is lost: this program ignores SIGCHLD (SIG_IGN, SA_NOCLDWAIT), or another part of "
         "it has waited for any child (wait, waitpid(-1)): let it wait for its own by their numbers";
}

}  // namespace muster
