// SPDX-License-Identifier: BSL-1.0
// this_task::stop_token in pools: tests/pool/stop_token_test.cpp.
#include <muster/queue/stop_watch.hpp>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <latch>
#include <stop_token>
#include <string>

#include <gtest/gtest.h>

#include <muster/base/detail/futex.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "processes.hpp"

namespace muster::stop_watch_test {
namespace {

constexpr slot_word claimed(1, 1, slot_flag::none, slot_state::claimed);

// From now on, for this thread and those that it starts.
bool refuse_futex_waitv() {
  std::array<sock_filter, 4> filter = {
      sock_filter{.code = BPF_LD | BPF_W | BPF_ABS, .jt = 0, .jf = 0, .k = offsetof(seccomp_data, nr)},
      sock_filter{.code = BPF_JMP | BPF_JEQ | BPF_K, .jt = 0, .jf = 1, .k = SYS_futex_waitv},
      sock_filter{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ERRNO | ENOSYS},
      sock_filter{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ALLOW}};
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool another_thread_sleeps() {
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    const auto thread = std::stoi(each.path().filename().string());
    if (thread != ::gettid() && test::sleeps_on_futex(thread)) return true;
  }
  return false;
}

void ask_to_stop(task_slot& slot) {
  slot_protocol::request(slot.word, slot_flag::stop);
  futex_wake(futex_address(slot.word), INT_MAX, futex_scope::shared);
}

// Whether a token is stopped when the parent asks, and only then.
bool tells_of_a_request() {
  task_slot slot{};
  slot.word = claimed.bits();
  stop_watch watch(slot, claimed);
  std::latch told(1);
  const std::stop_callback callback(watch.token(), [&told] { told.count_down(); });
  if (!test::eventually(another_thread_sleeps) || watch.token().stop_requested()) return false;
  ask_to_stop(slot);
  told.wait();
  return watch.token().stop_requested();
}

// Whether it ends without a request, wherever its thread is.
bool ends_unasked() {
  task_slot slot{};
  slot.word = claimed.bits();
  for (int round = 0; round < 300; ++round) {
    const stop_watch watch(slot, claimed);
    if (round % 3 == 0 && !test::eventually(another_thread_sleeps)) return false;
  }
  return true;
}

void expect_true_before_linux_5_16(const std::function<bool()>& run) {
  constexpr int no_filters = 77;
  const auto child = test::spawn(1, [&](std::size_t) {
    if (!refuse_futex_waitv()) return no_filters;
    return run() ? 0 : 1;
  });
  const auto how = child->wait(0);
  if (how == exit_status::exited(no_filters)) GTEST_SKIP() << "this kernel does not filter system calls";
  EXPECT_EQ(how, exit_status::exited(0));
}

TEST(StopWatch, TellsOfARequest) { EXPECT_TRUE(tells_of_a_request()); }

TEST(StopWatch, EndsWithoutOne) { EXPECT_TRUE(ends_unasked()); }

TEST(StopWatch, TellsOfARequestBeforeLinux516) { expect_true_before_linux_5_16(tells_of_a_request); }

TEST(StopWatch, EndsWithoutOneBeforeLinux516) { expect_true_before_linux_5_16(ends_unasked); }

}  // namespace
}  // namespace muster::stop_watch_test
