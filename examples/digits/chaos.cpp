// SPDX-License-Identifier: BSL-1.0
#include "chaos.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <utility>

namespace digits {

chaos::chaos(std::uint64_t seed) : thread_([this, seed](const std::stop_token& stop) { run(stop, seed); }) {}

void chaos::aim(const std::vector<pid_t>& at) {
  const std::lock_guard lock(mutex_);
  victims_ = at;
  std::erase(victims_, 0);
  aimed_.notify_all();
}

void chaos::run(const std::stop_token& stop, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int> microseconds(0, 3000);  // some steps
  std::unique_lock lock(mutex_);
  while (aimed_.wait(lock, stop, [this] { return !victims_.empty(); })) {
    aimed_.wait_for(lock, stop, std::chrono::microseconds(microseconds(random)), [] { return false; });
    const auto victims = std::exchange(victims_, {});
    if (!stop.stop_requested() && ::kill(victims[random() % victims.size()], SIGKILL) == 0) ++kills_;
  }
}

}  // namespace digits
