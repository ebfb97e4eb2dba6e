// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace muster::detail {

/// How long attempt number `attempt` (the first one is 1) waits: none for the first, `first` for the second, and twice
/// as long for each further one, at most a minute (or `first`, if that is longer); a quarter more or less, so that what
/// failed together does not come back together.
///
/// Thread safety: as of `random`.
template <class Random>
[[nodiscard]] std::chrono::nanoseconds retry_delay(std::chrono::nanoseconds first, std::uint32_t attempt,
                                                   Random& random) {
  if (attempt <= 1 || first.count() <= 0) return {};
  constexpr std::uint32_t most_doublings = 16;
  const auto most = std::max<std::chrono::nanoseconds>(first, std::chrono::minutes(1));
  auto delay = first;
  for (auto each = std::min(attempt - 2, most_doublings); each > 0 && delay < most; --each) delay *= 2;
  std::uniform_real_distribution<double> jitter(0.75, 1.25);
  const std::chrono::duration<double, std::nano> wanted = std::min(delay, most) * jitter(random);
  constexpr auto longest = std::chrono::nanoseconds::max();
  return wanted < longest ? std::chrono::duration_cast<std::chrono::nanoseconds>(wanted) : longest;
}

}  // namespace muster::detail
