// SPDX-License-Identifier: BSL-1.0
#include <muster/base/fork_count.hpp>

#include <pthread.h>

#include <atomic>

namespace muster {

namespace {

std::atomic<unsigned> forks = 0;

void count_fork() noexcept { forks.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

unsigned fork_count() noexcept {
  // It fails only without memory for its list; then a forked child takes itself for its parent.
  static const int registered = ::pthread_atfork(nullptr, nullptr, &count_fork);
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

}  // namespace muster
