// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <stop_token>
#include <thread>

#include <muster/pool/pool.hpp>

namespace corpus {

/// Kills a random worker of a pool with SIGKILL at once, and another every 200 ms, until it is destroyed.
/// Lifetime: borrows the pool.
class chaos {
public:
  explicit chaos(const muster::pool& victim);

  [[nodiscard]] std::size_t kills() const { return kills_; }

private:
  void run(const std::stop_token& stop);

  const muster::pool& victim_;
  std::atomic<std::size_t> kills_ = 0;
  std::jthread thread_;
};

}  // namespace corpus
