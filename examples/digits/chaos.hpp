// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <stop_token>
#include <thread>
#include <vector>

namespace digits {

/// Kills one of the processes that it has been told of with SIGKILL: the first at once, so that there is one; others at
/// a random moment soon after it was told of them, so that whoever works meanwhile gets on.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, except the destructor.
class chaos {
public:
  /// The seed of who dies, and when.
  explicit chaos(std::uint64_t seed);

  /// Processes there are now; 0 is none.
  void aim(const std::vector<pid_t>& at);
  [[nodiscard]] std::size_t kills() const noexcept { return kills_; }

private:
  void run(const std::stop_token& stop);
  void strike();

  std::mutex mutex_;
  std::condition_variable_any aimed_;
  std::vector<pid_t> victims_;  // guarded by mutex_, as is random_
  std::mt19937_64 random_;
  std::atomic<std::size_t> kills_ = 0;  // only a number
  std::jthread thread_;
};

}  // namespace digits
