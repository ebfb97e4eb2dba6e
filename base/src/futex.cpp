// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/futex.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include <muster/base/assert.hpp>
#include <muster/base/system_call.hpp>

namespace muster {

namespace {

timespec to_timespec(clock::time_point when) {
  const auto since_boot = when.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
  return {.tv_sec = seconds.count(), .tv_nsec = std::chrono::nanoseconds(since_boot - seconds).count()};
}

int operation(int what, futex_scope scope) { return scope == futex_scope::shared ? what : what | FUTEX_PRIVATE_FLAG; }

}  // namespace

bool futex_wait(const std::uint32_t* word, std::uint32_t expected, futex_scope scope, deadline until) noexcept {
  timespec end{};
  if (!until.is_never()) end = to_timespec(until.when());
  // The bitset form takes an absolute time on the monotonic clock, so a retried wait does not grow.
  const auto result = ::syscall(SYS_futex, word, operation(FUTEX_WAIT_BITSET, scope), expected,
                                until.is_never() ? nullptr : &end, nullptr, FUTEX_BITSET_MATCH_ANY);
  return result == 0 || errno != ETIMEDOUT;
}

bool futex_wait_any(std::span<const futex_expectation> words, futex_scope scope, deadline until) {
  MUSTER_ASSERT(!words.empty() && words.size() <= most_futex_words);
  std::array<futex_waitv, most_futex_words> waited{};
  const auto flags = static_cast<std::uint32_t>(FUTEX_32 | (scope == futex_scope::shared ? 0 : FUTEX_PRIVATE_FLAG));
  for (std::size_t index = 0; index < words.size(); ++index) {
    waited[index].val = words[index].expected;
    waited[index].uaddr = reinterpret_cast<std::uintptr_t>(words[index].word);
    waited[index].flags = flags;
  }
  timespec end{};
  if (!until.is_never()) end = to_timespec(until.when());
  const auto result =
      ::syscall(SYS_futex_waitv, waited.data(), words.size(), 0U, until.is_never() ? nullptr : &end, CLOCK_MONOTONIC);
  if (result >= 0 || errno == EAGAIN || errno == EINTR) return true;
  if (errno == ETIMEDOUT) return false;
  detail::throw_system_error_with(errno, "futex_waitv", words.size());
}

int futex_wake(const std::uint32_t* word, int count, futex_scope scope) noexcept {
  const auto woken = ::syscall(SYS_futex, word, operation(FUTEX_WAKE, scope), count, nullptr, nullptr, 0);
  return woken > 0 ? static_cast<int>(woken) : 0;
}

}  // namespace muster
