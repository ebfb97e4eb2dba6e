// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <limits>

namespace muster::test {

/// Random bits for tests that fill arrays: where nothing is optimised std::mt19937_64 takes most of their time.
/// SplitMix64: G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number generators", 2014.
class quick_random {
public:
  using result_type = std::uint64_t;

  explicit quick_random(std::uint64_t seed) noexcept : state_(seed) {}

  [[nodiscard]] static constexpr result_type min() noexcept { return 0; }
  [[nodiscard]] static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }

  result_type operator()() noexcept {
    state_ += 0x9E37'79B9'7F4A'7C15U;
    auto mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58'476D'1CE4'E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D0'49BB'1331'11EBU;
    return mixed ^ (mixed >> 31U);
  }

  /// Any number from `first` on, below `last`.
  double between(double first, double last) noexcept {
    constexpr double units = 1.0 / (std::uint64_t{1} << 53U);
    return first + (last - first) * (static_cast<double>((*this)() >> 11U) * units);
  }

private:
  std::uint64_t state_;
};

}  // namespace muster::test
