// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/chunk_policy.hpp>

#include <algorithm>
#include <limits>

namespace muster::detail {

std::size_t chunk_policy::elements_in(std::chrono::nanoseconds time) const noexcept {
  const auto count = static_cast<double>(time.count()) / element_nanoseconds_;
  constexpr double most = 1e15;  // well inside std::size_t
  return static_cast<std::size_t>(std::clamp(count, 1.0, most));
}

std::size_t chunk_policy::next(std::size_t remaining) const noexcept {
  std::size_t size = limits_.given != 0 ? limits_.given : 1;
  if (limits_.given == 0 && element_nanoseconds_ > 0) {
    const auto half_share = remaining / (2 * limits_.workers) + 1;
    size = std::min({elements_in(target), ceiling_, std::max(half_share, elements_in(least))});
  }
  if (limits_.most != 0) size = std::min(size, limits_.most);
  return std::clamp<std::size_t>(size, 1, remaining);
}

void chunk_policy::observe(std::size_t elements, std::chrono::nanoseconds elapsed) noexcept {
  constexpr std::size_t fastest_growth = 32;
  constexpr double weight_of_news = 0.5;
  if (elements == 0) return;
  const auto measured = std::max(static_cast<double>(elapsed.count()) / static_cast<double>(elements), 0.1);
  element_nanoseconds_ =
      element_nanoseconds_ == 0 ? measured : weight_of_news * measured + (1 - weight_of_news) * element_nanoseconds_;
  if (elements <= std::numeric_limits<std::size_t>::max() / fastest_growth) {
    ceiling_ = std::max(ceiling_, elements * fastest_growth);
  }
}

}  // namespace muster::detail
