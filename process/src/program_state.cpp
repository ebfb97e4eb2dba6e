// SPDX-License-Identifier: BSL-1.0
#include "program_state.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <utility>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/error.hpp>
#include <muster/base/standard_streams.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

constexpr int first_resource = 0;
constexpr int resources = RLIMIT_NLIMITS;

// Those that end a process unless it says otherwise, save those that say that it has failed, and those by which people
// and service managers end it, for which there is an option of their own (ending_signals).
bool may_be_left(int signal) noexcept {
  constexpr std::array others = {SIGPIPE, SIGUSR1, SIGUSR2,   SIGALRM, SIGVTALRM,
                                 SIGPROF, SIGIO,   SIGSTKFLT, SIGPWR,  SIGXCPU};
  return signal >= SIGRTMIN || std::find(others.begin(), others.end(), signal) != others.end();
}

template <class F>
void for_each_left(const F& call) {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (may_be_left(signal)) call(signal);
  }
}

bool has_default_action(int signal) noexcept {
  struct sigaction now{};
  return ::sigaction(signal, nullptr, &now) != 0 || now.sa_handler == SIG_DFL;
}

// umask() would change it for a moment, for other threads too.
std::optional<std::uint32_t> umask_now() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "Umask:") continue;
    std::uint32_t found = 0;
    if (status >> std::oct >> found) return found;
  }
  return std::nullopt;
}

}  // namespace

process_limits process_limits::now() {
  process_limits found{.umask = umask_now()};
  for (int which = first_resource; which < resources; ++which) {
    rlimit each{};
    const bool is_there = ::getrlimit(static_cast<__rlimit_resource_t>(which), &each) == 0;
    found.soft.push_back(is_there ? each.rlim_cur : RLIM_INFINITY);
  }
  return found;
}

void process_limits::apply() const noexcept {
  if (umask) ::umask(*umask);
  for (std::size_t which = 0; which < std::min<std::size_t>(soft.size(), resources); ++which) {
    const auto resource = static_cast<__rlimit_resource_t>(which);
    rlimit each{};
    if (::getrlimit(resource, &each) != 0) continue;
    const auto wanted = std::min<std::uint64_t>(soft[which], each.rlim_max);
    if (wanted == each.rlim_cur) continue;
    each.rlim_cur = wanted;
    static_cast<void>(::setrlimit(resource, &each));
  }
}

void require_may_be_ignored(const std::vector<int>& signals) {
  for (const int each : signals) {
    if (each <= SIGRTMAX && may_be_left(each)) continue;
    throw error(errc::invalid_argument,
                text("pool_options::ignored_signals has signal ", each,
                     ": possible are SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT, "
                     "SIGXCPU and the real-time signals; for SIGTERM, SIGHUP and SIGQUIT see leaves_signals"));
  }
}

program_state::program_state(const std::vector<int>& left) : limits_(process_limits::now()) {
  unique_fd directory(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat found{};
  if (directory.get() >= 0 && ::fstat(directory.get(), &found) == 0) {
    directory_ = above_standard_streams(std::move(directory));
    device_ = found.st_dev;
    inode_ = found.st_ino;
  }
  require_may_be_ignored(left);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &left_);
  left_ = mask_of_children(left_);  // of a thread of the library's: the program's
  for (const int signal : left) ::sigaddset(&left_, signal);
}

int program_state::directory() const noexcept {
  const auto is_it = [this](const struct stat& found) { return found.st_dev == device_ && found.st_ino == inode_; };
  struct stat found{};
  const int none = -1;
  if (directory_.get() < 0 || ::fstat(directory_.get(), &found) != 0 || !is_it(found)) return none;
  if (::stat(".", &found) == 0 && is_it(found)) return none;  // there already
  return ::faccessat(directory_.get(), ".", X_OK, AT_EACCESS) == 0 ? directory_.get() : none;
}

std::vector<int> program_state::left_signals() const {
  std::vector<int> all;
  for_each_left([&](int signal) {
    if (::sigismember(&left_, signal) == 1 || !has_default_action(signal)) all.push_back(signal);
  });
  return all;
}

void do_nothing_at(int signal) noexcept {
  struct sigaction nothing{};
  nothing.sa_handler = [](int) {};
  nothing.sa_flags = SA_RESTART;
  ::sigaction(signal, &nothing, nullptr);
}

void do_nothing_at(const std::vector<int>& signals) noexcept {
  sigset_t left;
  ::sigemptyset(&left);
  for (const int signal : signals) {
    if (has_default_action(signal)) do_nothing_at(signal);
    ::sigaddset(&left, signal);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &left, nullptr);
}

}  // namespace muster::detail
