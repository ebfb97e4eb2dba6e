// SPDX-License-Identifier: BSL-1.0
#include <muster/base/fork_count.hpp>

#include <pthread.h>
#include <unistd.h>

#include <array>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

// Descriptors, each plus one; 0: none.
constinit std::array<std::atomic<int>, 64> to_close{};

void begin_child() noexcept {
  detail::forks.fetch_add(1, std::memory_order_relaxed);
  for (auto& each : to_close) {
    if (const int found = each.exchange(0); found != 0) ::close(found - 1);
  }
}

}  // namespace

unsigned fork_count() noexcept {
  // It fails only without memory for its list; then a forked child takes itself for its parent.
  static const int registered = ::pthread_atfork(nullptr, nullptr, &begin_child);
  static_cast<void>(registered);
  return detail::forks.load(std::memory_order_relaxed);
}

process_mark::process_mark() noexcept : forks_(fork_count()), process_(::getpid()) {}

closed_in_children::closed_in_children(int descriptor) noexcept {
  static_cast<void>(fork_count());
  for (auto& each : to_close) {
    int none = 0;
    if (!each.compare_exchange_strong(none, descriptor + 1)) continue;
    place_ = &each;
    return;
  }
}

closed_in_children::~closed_in_children() {
  if (place_ != nullptr) place_->store(0);
}

void process_mark::throw_forked(const char* what) const {
  throw error(errc::forked,
              text(what, " of process ", process_, " is used in process ", ::getpid(),
                   ", which was forked from it and has neither its threads nor its workers: make pools after fork() "
                   "and daemon(); a forked child calls muster::init(argc, argv) and makes a pool of its own"));
}

}  // namespace muster
