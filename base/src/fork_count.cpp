// SPDX-License-Identifier: BSL-1.0
#include <muster/base/fork_count.hpp>

#include <pthread.h>
#include <unistd.h>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

void count_fork() noexcept { detail::forks.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

unsigned fork_count() noexcept {
  // It fails only without memory for its list; then a forked child takes itself for its parent.
  static const int registered = ::pthread_atfork(nullptr, nullptr, &count_fork);
  static_cast<void>(registered);
  return detail::forks.load(std::memory_order_relaxed);
}

process_mark::process_mark() noexcept : forks_(fork_count()), process_(::getpid()) {}

void process_mark::throw_forked(const char* what) const {
  throw error(errc::forked,
              text(what, " of process ", process_, " is used in process ", ::getpid(),
                   ", which was forked from it and has neither its threads nor its workers: make pools after fork() "
                   "and daemon(); a forked child calls muster::init(argc, argv) and makes a pool of its own"));
}

}  // namespace muster
