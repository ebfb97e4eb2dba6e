// SPDX-License-Identifier: BSL-1.0
#include "tracee.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include <muster/base/system_call.hpp>

namespace muster::test {

namespace {

void request(const char* name, __ptrace_request what, pid_t id) {
  system_call(name, [&] { return ::ptrace(what, id, nullptr, nullptr); });
}

void bind(pid_t id, const cpu_set_t& where) {
  system_call("sched_setaffinity", ::sched_setaffinity, id, sizeof where, &where);
}

// As it was before anything was bound.
const cpu_set_t& processors_of_program() {
  static const cpu_set_t all = [] {
    cpu_set_t found;
    system_call("sched_getaffinity", ::sched_getaffinity, 0, sizeof found, &found);
    return found;
  }();
  return all;
}

}  // namespace

same_processor::same_processor(pid_t id) : id_(id) {
  static_cast<void>(processors_of_program());
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
  bind(0, one);
  bind(id_, one);
}

same_processor::~same_processor() {
  bind(0, processors_of_program());
  static_cast<void>(::sched_setaffinity(id_, sizeof(cpu_set_t), &processors_of_program()));  // it may be gone
}

tracee::tracee(pid_t id) : id_(id), together_(id) { request("ptrace(SEIZE)", PTRACE_SEIZE, id_); }

tracee::outcome tracee::await_stop() {
  int status = 0;
  system_call("waitpid", ::waitpid, id_, &status, __WALL);
  stopped_ = WIFSTOPPED(status);
  return stopped_ ? outcome::stopped : outcome::gone;
}

tracee::outcome tracee::interrupt() {
  request("ptrace(INTERRUPT)", PTRACE_INTERRUPT, id_);
  return await_stop();
}

tracee::outcome tracee::run_to_landing() {
  if (stopped_) request("ptrace(CONT)", PTRACE_CONT, id_);
  return await_stop();
}

#ifdef __x86_64__
namespace {

// Where the program begins, which is mapped lowest.
std::uintptr_t program_of(pid_t id) {
  std::uintptr_t begin = 0;
  std::ifstream("/proc/" + std::to_string(id) + "/maps") >> std::hex >> begin;
  return begin;
}

}  // namespace

tracee::outcome tracee::run_to(std::uintptr_t function) {
  constexpr std::uint64_t trap = 0xcc;
  const auto where = function - program_of(::getpid()) + program_of(id_);
  iovec mine{.iov_base = nullptr, .iov_len = sizeof(user_regs_struct)};
  errno = 0;
  const auto text = static_cast<std::uint64_t>(::ptrace(PTRACE_PEEKTEXT, id_, where, nullptr));
  if (errno != 0) throw std::system_error(errno, std::generic_category(), "ptrace(PEEKTEXT)");
  const auto write = [&](std::uint64_t what) {
    system_call("ptrace(POKETEXT)", [&] { return ::ptrace(PTRACE_POKETEXT, id_, where, what); });
  };
  write((text & ~std::uint64_t{0xff}) | trap);
  const auto found = run_to_landing();
  if (found != outcome::stopped) return found;
  write(text);
  user_regs_struct registers{};
  mine.iov_base = &registers;
  system_call("ptrace(GETREGSET)", [&] { return ::ptrace(PTRACE_GETREGSET, id_, NT_PRSTATUS, &mine); });
  if (registers.rip != where + 1) return found;
  registers.rip = where;
  system_call("ptrace(SETREGSET)", [&] { return ::ptrace(PTRACE_SETREGSET, id_, NT_PRSTATUS, &mine); });
  return found;
}
#else
tracee::outcome tracee::run_to(std::uintptr_t) { return outcome::stopped; }
#endif

tracee::outcome tracee::step(bool may_sleep) {
  request("ptrace(SINGLESTEP)", PTRACE_SINGLESTEP, id_);
  if (!may_sleep) return await_stop();
  for (;;) {
    int status = 0;
    const auto found = system_call("waitpid", ::waitpid, id_, &status, __WALL | WNOHANG);
    if (found == id_) return WIFSTOPPED(status) ? outcome::stopped : outcome::gone;
    if (is_asleep()) return outcome::asleep;
    ::sched_yield();
  }
}

void tracee::release() { request("ptrace(DETACH)", PTRACE_DETACH, id_); }

// The kernel's word for it: state S in /proc. One that is stopped by its tracer has another.
bool tracee::is_asleep() const {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "/proc/%d/stat", id_);
  const unique_fd file(::open(name.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> text{};
  const auto got = ::read(file.get(), text.data(), text.size() - 1);
  const std::string_view line(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const auto end_of_name = line.rfind(')');
  return end_of_name != std::string_view::npos && end_of_name + 2 < line.size() && line[end_of_name + 2] == 'S';
}

// ---- threads

namespace {

struct command {
  pid_t thread = 0;
  unsigned instructions = 0;
};

template <class T>
void send(const unique_fd& to, const T& what) {
  system_call("write", ::write, to.get(), &what, sizeof what);
}

template <class T>
bool receive(const unique_fd& from, T& what) {
  return system_call("read", ::read, from.get(), &what, sizeof what) == sizeof what;
}

void make_pipe(std::array<unique_fd, 2>& ends) {
  std::array<int, 2> numbers{};
  system_call("pipe2", ::pipe2, numbers.data(), O_CLOEXEC);
  ends[0] = unique_fd(numbers[0]);
  ends[1] = unique_fd(numbers[1]);
}

}  // namespace

thread_stepper::thread_stepper() {
  make_pipe(commands_);
  make_pipe(answers_);
  process_.add([this](std::size_t) { return serve(); });
  ::prctl(PR_SET_PTRACER, process_.pid(0));  // where a security module asks for it
}

// Answers once it traces the thread, and again once it has stopped it.
int thread_stepper::serve() {
  for (command what; receive(commands_[0], what);) {
    tracee thread(what.thread);
    send(answers_[1], what);
    thread.run_to_landing();
    command done{.thread = what.thread};
    for (; done.instructions < what.instructions && !*ended_; ++done.instructions) thread.step();
    send(answers_[1], done);
    if (!receive(commands_[0], what)) return 1;
    thread.release();
  }
  return 0;
}

unsigned thread_stepper::run(const std::function<void()>& what, unsigned instructions,
                             const std::function<void()>& meanwhile) {
  std::atomic<pid_t> id = 0;
  std::atomic<bool> traced = false;
  *ended_ = false;
  std::thread thread([&] {
    id = ::gettid();
    id.notify_one();
    traced.wait(false);
    ::raise(SIGTRAP);
    what();
    *ended_ = true;
  });
  id.wait(0);
  const command order{.thread = id, .instructions = instructions};
  command stopped;
  send(commands_[1], order);
  receive(answers_[0], stopped);
  traced = true;
  traced.notify_one();
  receive(answers_[0], stopped);
  meanwhile();
  send(commands_[1], order);
  thread.join();
  return stopped.instructions;
}

}  // namespace muster::test
