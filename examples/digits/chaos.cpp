// SPDX-License-Identifier: BSL-1.0
#include "chaos.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <utility>

namespace digits {

chaos::chaos(std::uint64_t seed) : random_(seed), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void chaos::aim(const std::vector<pid_t>& at) {
  const std::lock_guard lock(mutex_);
  victims_ = at;
  std::erase(victims_, 0);
  if (kills_ == 0 && !victims_.empty()) return strike();
  aimed_.notify_all();
}

void chaos::strike() {
  const auto victims = std::exchange(victims_, {});
  if (::kill(victims[random_() % victims.size()], SIGKILL) == 0) ++kills_;
}

void chaos::run(const std::stop_token& stop) {
  std::uniform_int_distribution<int> microseconds(0, 3000);  // some steps
  std::unique_lock lock(mutex_);
  while (aimed_.wait(lock, stop, [this] { return !victims_.empty(); })) {
    aimed_.wait_for(lock, stop, std::chrono::microseconds(microseconds(random_)), [] { return false; });
    if (stop.stop_requested()) return;  // there still are victims: the wait above would not tell
    strike();
  }
}

}  // namespace digits
