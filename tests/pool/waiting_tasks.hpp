// SPDX-License-Identifier: BSL-1.0
#pragma once

// Tasks that say when they have begun, and end in different ways: for tests of what becomes of tasks that run or wait.

#include <unistd.h>

#include <condition_variable>
#include <mutex>

#include <muster/pool/pool.hpp>
#include <muster/queue/event.hpp>

namespace muster::test {

inline void run_for_ever(const event& began) {
  began.set();
  for (;;) ::pause();
}

inline void wait_until_asked() {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait(lock, this_task::stop_token(), [] { return false; });
}
inline int run_until_asked(const event& began) {
  began.set();
  wait_until_asked();
  return 7;
}

/// Whether it was asked to stop meanwhile.
inline bool run_until(const event& began, const event& end) {
  began.set();
  end.wait();
  return this_task::stop_requested();
}

/// Holds a pool's only worker until it is destroyed, so that tasks wait.
class occupied {
public:
  explicit occupied(const pool& where) : task_(where.apply_async(run_until, began_, end_)) { began_.wait(); }
  occupied(const occupied&) = delete;
  occupied& operator=(const occupied&) = delete;
  ~occupied() { end_.set(); }

private:
  const event began_;
  const event end_;
  future<bool> task_;
};

/// Without the messages about workers that the test kills.
inline pool_options quiet(unsigned workers) {
  return {.workers = workers, .log = [](log_level, std::string_view) {}};
}

}  // namespace muster::test
