// SPDX-License-Identifier: BSL-1.0
#include "crash_handler.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include <muster/base/detail/known_descriptor.hpp>
#include <muster/base/sanitizer.hpp>

#include "channel.hpp"

namespace muster::detail {

namespace {

constexpr std::array crash_signals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// All that the handler needs is there before: it may neither allocate nor lock.
struct crash_state {
  known_descriptor control;
  pid_t owner = 0;  // a forked child has the handlers too, and is none of the parent's
  crash_record record;
  std::array<void*, crash_record::most_frames + 8> stack{};  // with the handler's own frames
};

crash_state& state() {
  static crash_state instance;
  return instance;
}

void send_record() {
  if (!state().control.is_same()) return;  // the task has closed it
  auto kind = message_kind::crash;
  auto& record = state().record;
  std::array<iovec, 2> parts = {iovec{&kind, sizeof kind}, iovec{&record, sizeof record}};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  static_cast<void>(!::sendmsg(state().control.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT));
}

std::uint32_t index_of_module(const char* name) {
  auto& record = state().record;
  for (std::uint32_t index = 0; index < record.modules_count; ++index) {
    if (std::strncmp(record.modules[index].data(), name, record.modules[index].size() - 1) == 0) return index;
  }
  if (record.modules_count == record.modules.size()) return crash_record::most_modules;
  auto& made = record.modules[record.modules_count];
  std::strncpy(made.data(), name, made.size() - 1);
  return record.modules_count++;
}

void add_frame(std::uintptr_t address, bool exact) {
  auto& record = state().record;
  if (record.frames_count == record.frames.size()) return;
  auto& frame = record.frames[record.frames_count++];
  frame = {.address = address, .is_exact = exact ? 1U : 0U};
  dl_find_object found{};
  // Without locks, and allowed in signal handlers, unlike dladdr.
  if (::_dl_find_object(reinterpret_cast<void*>(address), &found) != 0) return;  // NOLINT: an address it is
  const char* name = found.dlfo_link_map->l_name;
  frame.module = index_of_module(name != nullptr ? name : "");
  if (frame.module != crash_record::most_modules) frame.address = address - found.dlfo_link_map->l_addr;
}

std::uintptr_t program_counter([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.pc);
#else
  return 0;
#endif
}

// The frames of this handler, and the kernel's below it, are left out.
void add_frames(std::uintptr_t counter) {
  auto& stack = state().stack;
  const auto count = static_cast<std::size_t>(::backtrace(stack.data(), static_cast<int>(stack.size())));
  const auto address_at = [&](std::size_t index) { return reinterpret_cast<std::uintptr_t>(stack[index]); };  // NOLINT
  std::size_t first = 0;
  while (first < count && address_at(first) != counter) ++first;
  if (first == count) {  // it had jumped to where no code is, or overwritten its stack
    add_frame(counter, true);
    return;
  }
  for (std::size_t index = first; index < count; ++index) add_frame(address_at(index), index == first);
}

void handle_crash(int signal, siginfo_t* info, void* context) {
  // What goes wrong from here on ends the process at once; and so does this signal, when this returns.
  for (const int each : crash_signals) {
    struct sigaction now{};
    if (::sigaction(each, nullptr, &now) == 0 && now.sa_sigaction == &handle_crash) ::signal(each, SIG_DFL);
  }
  if (::getpid() == state().owner) {
    auto& record = state().record;
    record.signal = signal;
    const bool sent = info->si_code <= 0;
    record.has_address = !sent && info->si_code != SI_KERNEL ? 1 : 0;
    if (!sent) record.address = reinterpret_cast<std::uintptr_t>(info->si_addr);  // NOLINT: an address it is
    if (sent && info->si_pid != state().owner) record.sender = info->si_pid;
    send_record();  // the frames may be beyond reading
    add_frames(program_counter(context));
    send_record();
  }
  ::raise(signal);  // blocked until this returns
}

// Not for other threads: what they start with is theirs.
bool make_signal_stack() {
  constexpr std::size_t bytes = std::size_t{128} << 10U;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;  // NOLINT: the macro's cast
  const stack_t stack{.ss_sp = memory, .ss_flags = 0, .ss_size = bytes};
  return ::sigaltstack(&stack, nullptr) == 0;
}

}  // namespace

void report_crashes(int control) {
  if (is_sanitized || !make_signal_stack()) return;
  state().control = known_descriptor(control);
  state().owner = ::getpid();
  ::backtrace(state().stack.data(), 2);  // loads what it needs, which is not allowed in the handler
  for (const int each : crash_signals) {
    struct sigaction now{};
    if (::sigaction(each, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    struct sigaction ours{};
    ours.sa_sigaction = &handle_crash;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&ours.sa_mask);
    ::sigaction(each, &ours, nullptr);
  }
}

}  // namespace muster::detail
