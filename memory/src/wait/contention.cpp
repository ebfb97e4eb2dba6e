// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/wait/contention.hpp>

#include <algorithm>

namespace muster {

void contention::begin(clock::time_point now) noexcept {
  const bool is_soon = length_.count() != 0 && now < end_ + length_;
  length_ = is_soon ? std::min(2 * length_, longest) : shortest;
  end_ = now + length_;
  is_on_ = true;
}

bool contention::is_over(clock::time_point now) noexcept {
  is_on_ = now < end_;
  return !is_on_;
}

}  // namespace muster
