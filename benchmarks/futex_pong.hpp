// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <muster/base/unique_fd.hpp>
#include <muster/memory/detail/mapping.hpp>

namespace bench {

/// Two processes that answer each other by futex, asleep in between: the limit of a call that finds everybody asleep.
class futex_pong {
public:
  /// Forks the other process and binds it to the `processor`-th processor.
  explicit futex_pong(std::size_t processor);
  futex_pong(const futex_pong&) = delete;
  futex_pong& operator=(const futex_pong&) = delete;
  ~futex_pong();

  void round_trip();
  [[nodiscard]] pid_t partner() const { return child_; }

private:
  struct page {
    alignas(64) std::atomic<std::uint32_t> ping = 0;
    alignas(64) std::atomic<std::uint32_t> pong = 0;
  };
  [[noreturn]] void answer();

  muster::unique_fd file_;
  muster::mapping memory_;
  page& page_;
  pid_t child_ = 0;
  std::uint32_t sent_ = 0;
};

/// Waits until the process sleeps in the kernel, and so does this thread for a moment: for calls that shall find
/// everybody asleep.
void let_sleep(pid_t process);

}  // namespace bench
