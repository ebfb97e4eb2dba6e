// SPDX-License-Identifier: BSL-1.0
#include "spawn.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/pidfd.hpp>
#include <muster/base/system_call.hpp>

namespace muster::detail {

namespace {

// posix_spawn and its helpers return the error instead of setting errno.
void check_spawn(int cause, const char* name, const std::string& program) {
  if (cause != 0) throw_system_error_with(cause, name, program);
}

class file_actions {
public:
  file_actions() { check_spawn(::posix_spawn_file_actions_init(&actions_), "posix_spawn_file_actions_init", ""); }
  file_actions(const file_actions&) = delete;
  file_actions& operator=(const file_actions&) = delete;
  ~file_actions() { ::posix_spawn_file_actions_destroy(&actions_); }

  /// Standard input is empty, the control socket is where it is looked for, and nothing else is left.
  void arrange(const spawn_request& request) {
    if (const int directory = request.state.directory(); directory >= 0) {
      check_spawn(::posix_spawn_file_actions_addfchdir_np(&actions_, directory), "addfchdir", "");
    }
    open_null(STDIN_FILENO, O_RDONLY);
    arrange_output(request.out, STDOUT_FILENO);
    arrange_output(request.err, STDERR_FILENO);
    redirect(request.control, control_descriptor);
    check_spawn(::posix_spawn_file_actions_addclosefrom_np(&actions_, control_descriptor + 1), "addclosefrom", "");
  }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

private:
  // A stream that is closed here would be the place of the next descriptor that is made there.
  void arrange_output(int from, int to) {
    if (from >= 0) return redirect(from, to);
    if (::fcntl(to, F_GETFD) < 0) open_null(to, O_WRONLY);
  }
  void open_null(int at, int mode) {
    check_spawn(::posix_spawn_file_actions_addopen(&actions_, at, "/dev/null", mode, 0), "addopen", "");
  }
  void redirect(int from, int to) {
    check_spawn(::posix_spawn_file_actions_adddup2(&actions_, from, to), "adddup2", "");
  }

  posix_spawn_file_actions_t actions_{};
};

class spawn_attributes {
public:
  explicit spawn_attributes(const spawn_request& request) {
    check_spawn(::posix_spawnattr_init(&attributes_), "posix_spawnattr_init", "");
    sigset_t all;
    sigset_t blocked;
    ::sigfillset(&all);
    ::sigemptyset(&blocked);
    for (const int signal : request.state.left_signals()) ::sigaddset(&blocked, signal);
    for (const int signal : ending_signals) ::sigaddset(&blocked, signal);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setsigmask(&attributes_, &blocked);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    const int group = request.own_group ? POSIX_SPAWN_SETPGROUP : 0;
    ::posix_spawnattr_setflags(&attributes_,
                               static_cast<short>(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | group));
  }
  spawn_attributes(const spawn_attributes&) = delete;
  spawn_attributes& operator=(const spawn_attributes&) = delete;
  ~spawn_attributes() { ::posix_spawnattr_destroy(&attributes_); }

  [[nodiscard]] const posix_spawnattr_t* get() const noexcept { return &attributes_; }

private:
  posix_spawnattr_t attributes_{};
};

/// The parent's environment as it was, with what is this worker's own, its mark, and the thread counts that are not
/// set.
class child_environment {
public:
  explicit child_environment(const spawn_request& request)
      : entries_(request.environment.with(request.own_environment)) {
    entries_.push_back(std::string(worker_variable) + '=' + request.worker_mark);
    constexpr std::array thread_variables = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"};
    for (const char* name : thread_variables) {
      if (request.environment.has(name)) continue;
      entries_.push_back(std::string(name) + '=' + std::to_string(request.threads_each));
    }
    for (auto& entry : entries_) pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
  }
  [[nodiscard]] char* const* get() const noexcept { return pointers_.data(); }

private:
  std::vector<std::string> entries_;
  std::vector<char*> pointers_;
};

// There is no descriptor to wait on, and a debugger that has it may keep it for ever: it is left a zombie then.
void reap_killed(pid_t pid) {
  const auto until = deadline::after(std::chrono::seconds(1));
  while (::waitpid(pid, nullptr, WNOHANG) == 0 && !until.expired()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

child spawn_worker(const spawn_request& request) {
  file_actions actions;
  actions.arrange(request);
  const spawn_attributes attributes(request);
  const child_environment environment(request);
  std::string name = program_invocation_name;
  std::string label = request.label;
  std::vector<std::string> words(request.arguments.begin(), request.arguments.end());
  std::vector<char*> arguments = {name.data()};
  for (auto& each : words) arguments.push_back(each.data());
  arguments.insert(arguments.end(), {label.data(), nullptr});
  child started;
  const auto start = [&] {
    return ::posix_spawn(&started.pid, request.program.c_str(), actions.get(), attributes.get(), arguments.data(),
                         environment.get());
  };
  check_spawn(is_refused("posix_spawn") ? errno : start(), "posix_spawn", request.program);
  try {
    started.process = open_pidfd(started.pid);
  } catch (const error&) {  // nobody could supervise it; it is unreaped, so the number is still its own
    ::kill(started.pid, SIGKILL);
    reap_killed(started.pid);
    throw;
  }
  return started;
}

}  // namespace muster::detail
