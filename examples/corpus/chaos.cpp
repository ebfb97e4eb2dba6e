// SPDX-License-Identifier: BSL-1.0
#include "chaos.hpp"

#include <csignal>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>

namespace corpus {

chaos::chaos(const muster::pool& victim)
    : victim_(victim), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void chaos::run(const std::stop_token& stop) {
  std::minstd_rand random(std::random_device{}());
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    const auto workers = victim_.workers();
    const auto pid = workers[random() % workers.size()].pid;
    if (pid > 0 && ::kill(pid, SIGKILL) == 0) ++kills_;  // 0: just being replaced
    stopped.wait_for(lock, stop, std::chrono::milliseconds(200), [] { return false; });
  }
}

}  // namespace corpus
