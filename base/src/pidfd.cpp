// SPDX-License-Identifier: BSL-1.0
#include <muster/base/pidfd.hpp>

#include <dirent.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <muster/base/standard_streams.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>

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

// Ours to reap, now or later: nobody else did.
bool is_unreaped(int process) {
  siginfo_t info{};
  return wait_for(process, WNOHANG | WNOWAIT, info) == 0;
}

// The kernel gives no number away that a process or a group has: a reaped leader's is its group's, while there is one.
bool may_be_named(int leader, pid_t pid) { return is_unreaped(leader) || (::kill(pid, 0) == -1 && errno == ESRCH); }

int try_to_signal_group(int process, pid_t pid, int signal) noexcept {
  constexpr unsigned process_group = 1U << 2U;  // PIDFD_SIGNAL_PROCESS_GROUP of newer headers
  const auto send = [](int fd, int which) { return ::pidfd_send_signal(fd, which, nullptr, process_group); };
  if (try_system_call("pidfd_send_signal PROCESS_GROUP", send, process, signal) == 0) return 0;
  if (errno != EINVAL) return -1;
  if (may_be_named(process, pid)) return ::kill(-pid, signal);
  errno = ESRCH;
  return -1;
}

// A group keeps its number while it has anybody, zombies too. Who may not be signalled is there as well.
bool has_members(int process, pid_t pid) noexcept {
  return try_to_signal_group(process, pid, 0) == 0 || errno == EPERM;
}

// False when no child of this process is in the group. `info`: as wait_for.
bool reap_one_of_group(int process, pid_t pid, int options, siginfo_t& info) noexcept {
  info = {};
  const auto wait = [&](pid_t group) { return ::waitid(P_PGID, static_cast<id_t>(group), &info, WEXITED | options); };
  return has_members(process, pid) && try_system_call("waitid P_PGID", wait, pid) == 0;
}

exit_status status_of(const siginfo_t& info) {
  return info.si_code == CLD_EXITED ? exit_status::exited(info.si_status) : exit_status::killed(info.si_status);
}

// The directories of a process's threads in /proc; none where it has ended. Not by std::filesystem, whose iterators end
// the program for want of memory (GCC 12: a noexcept function of theirs allocates).
std::vector<std::filesystem::path> threads_of(pid_t number) {
  const std::filesystem::path tasks(text("/proc/", number, "/task"));
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(tasks.c_str()), &::closedir);
  std::vector<std::filesystem::path> found;
  if (directory == nullptr) return found;
  while (const auto* const entry = ::readdir(directory.get())) {
    if (entry->d_name[0] != '.') found.push_back(tasks / entry->d_name);
  }
  return found;
}

// What a stat file of /proc says behind the name in parentheses, which may hold anything: state, parent, …
std::vector<std::string> read_stat(const std::filesystem::path& where) {
  std::ifstream file(where / "stat");
  std::string line;
  std::getline(file, line);
  detail::text_reader rest(line.substr(line.rfind(')') + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

// The number under which /proc knows the process, which may be of another PID namespace than this process. 0: none.
pid_t number_in_proc(int process) {
  std::ifstream file(text("/proc/self/fdinfo/", process));
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view name = "Pid:";
    if (line.starts_with(name)) return static_cast<pid_t>(std::max(0, std::stoi(line.substr(name.size()))));
  }
  return 0;
}

// Likewise of this process.
pid_t own_number_in_proc() {
  return static_cast<pid_t>(std::stoi(std::filesystem::read_symlink("/proc/self").string()));
}

bool is_dead(const std::vector<std::string>& stat) {
  return !stat.empty() && (stat.front() == "Z" || stat.front() == "X");
}

// The kernel tells everybody 0 who may not look at the process.
bool may_look_at(const char* process) {
  struct stat owner{};
  return ::geteuid() == 0 || (::stat(process, &owner) == 0 && owner.st_uid == ::geteuid());
}

bool has_memory_of_its_own(const std::filesystem::path& thread) {
  constexpr std::size_t virtual_bytes = 20;
  const auto words = read_stat(thread);
  return words.size() > virtual_bytes && words[virtual_bytes] != "0";
}

exit_status status_of_code(int code) {
  return WIFSIGNALED(code) ? exit_status::killed(WTERMSIG(code)) : exit_status::exited(WEXITSTATUS(code));
}

exit_status read_status(int process) {
  const auto where = text("/proc/", number_in_proc(process));
  constexpr std::size_t parent = 1;
  constexpr std::size_t exit_code = 49;
  const auto words = read_stat(where);
  if (words.size() <= exit_code || !is_dead(words) || std::stoi(words[parent]) != own_number_in_proc() ||
      !may_look_at(where.c_str())) {
    return exit_status::lost();
  }
  return status_of_code(std::stoi(words[exit_code]));
}

// What the kernel says of a process by its descriptor (struct pidfd_info of newer headers), as far as Linux 6.15 does.
struct kept_process {
  std::uint64_t mask;
  std::uint64_t control_group;
  std::uint32_t numbers[3];
  std::uint32_t rights[8];
  std::int32_t exit_code;
};
static_assert(sizeof(kept_process) == 64);

// Of one that another part of the program has reaped; lost before Linux 6.15.
exit_status kept_status(int process) noexcept {
  constexpr std::uint64_t exit = 1U << 3U;  // PIDFD_INFO_EXIT
  kept_process found{};
  found.mask = exit;
  const auto ask = [&](int fd) { return ::ioctl(fd, _IOWR(0xFF, 11, kept_process), &found); };  // PIDFD_GET_INFO
  if (try_system_call("ioctl PIDFD_GET_INFO", ask, process) != 0 || (found.mask & exit) == 0) {
    return exit_status::lost();
  }
  return status_of_code(found.exit_code);
}

}  // namespace

unique_fd open_pidfd(pid_t pid) {
  return above_standard_streams(unique_fd(system_call("pidfd_open", ::pidfd_open, pid, 0U)));
}

bool send_signal(int process, int signal) {
  const auto send = [](int fd, int which) { return ::pidfd_send_signal(fd, which, nullptr, 0); };
  if (try_system_call("pidfd_send_signal", send, process, signal) == 0) return true;
  if (errno == ESRCH) return false;
  detail::throw_system_error_with(errno, "pidfd_send_signal", process, signal);
}

bool send_signal_to_group(int process, pid_t pid, int signal) noexcept {
  return try_to_signal_group(process, pid, signal) == 0;
}

bool reap_group(int process, pid_t pid) noexcept {
  siginfo_t info{};
  while (reap_one_of_group(process, pid, WNOHANG, info)) {
    if (info.si_pid == 0) return true;
  }
  return false;
}

void wait_for_group(int process, pid_t pid) noexcept {
  siginfo_t info{};
  while (reap_one_of_group(process, pid, 0, info)) continue;
}

bool has_ended(int process) {
  pollfd asked{.fd = process, .events = POLLIN, .revents = 0};
  const auto look = [&](int) { return ::poll(&asked, 1, 0); };
  system_call("poll", look, process);
  if ((asked.revents & POLLNVAL) != 0) detail::throw_system_error_with(EBADF, "poll", process);
  return asked.revents != 0;
}

bool all_threads_have_ended(int process) noexcept {
  const auto all_are_dead = [&] {
    const auto threads = threads_of(number_in_proc(process));
    if (threads.empty()) return false;
    return std::all_of(threads.begin(), threads.end(), [](const auto& each) { return is_dead(read_stat(each)); });
  };
  try {
    if (!all_are_dead()) return false;
    return all_are_dead();  // while the first were looked at, one of them may have made another
  } catch (const std::exception&) {
    return false;
  }
}

std::optional<bool> has_memory(int process) noexcept {
  try {
    const auto number = number_in_proc(process);
    if (number == 0) return std::nullopt;
    const auto threads = threads_of(number);
    if (threads.empty()) return std::nullopt;
    return std::any_of(threads.begin(), threads.end(), has_memory_of_its_own);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

exit_status reap(int process) {
  siginfo_t info{};
  if (wait_for(process, 0, info) == 0) return status_of(info);
  if (errno == ECHILD) return kept_status(process);
  detail::throw_system_error_with(errno, "waitid", process);
}

std::optional<exit_status> try_reap(int process) noexcept {
  siginfo_t info{};
  if (wait_for(process, WNOHANG, info) == 0) {
    if (info.si_pid == 0) return std::nullopt;
    return status_of(info);
  }
  if (errno == EAGAIN) return std::nullopt;
  return kept_status(process);
}

exit_status status_of_zombie(int process) noexcept {
  try {
    return read_status(process);
  } catch (const std::exception&) {
    return exit_status::lost();
  }
}

}  // namespace muster
