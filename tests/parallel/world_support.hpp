// SPDX-License-Identifier: BSL-1.0
#pragma once

// What tests of worlds have in common.

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/parallel/world.hpp>

namespace muster::test {

/// Which process of a world the caller is.
enum class caller { first, last, none };

[[nodiscard]] inline world_options options_for(unsigned ranks, caller who) {
  return {.ranks = ranks, .master_rank = who == caller::last ? ranks - 1 : 0, .caller_computes = who != caller::none};
}

/// Runs a test in a world for each number of ranks, with the caller as first rank, as last one, and as none by turns.
template <class Test>
void in_worlds(std::initializer_list<unsigned> ranks, const Test& test) {
  constexpr caller turns[] = {caller::first, caller::none, caller::last};
  std::size_t turn = 0;
  for (const auto count : ranks) {
    const auto who = turns[turn++ % 3];
    SCOPED_TRACE(testing::Message() << count << " ranks, caller " << static_cast<int>(who));
    world made(options_for(count, who));
    test(made);
  }
}

/// The text of the error of that code which a call throws; a failure of the test if it throws none.
template <class Call>
[[nodiscard]] std::string text_of(errc code, const Call& call) {
  try {
    call();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), code) << failure.what();
    return failure.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}
template <class Call>
[[nodiscard]] std::string refusal(const Call& call) {
  return text_of(errc::invalid_argument, call);
}

/// How often ranks have come by; in shared memory.
class visits {
public:
  [[nodiscard]] const tensor& shared() const { return count_; }
  [[nodiscard]] std::int64_t count() const { return std::atomic_ref(count_.item<std::int64_t>()).load(); }
  /// Until somebody has come by.
  static void await(const tensor& shared) {
    while (std::atomic_ref(shared.item<std::int64_t>()).load() == 0) ::sched_yield();
  }
  static void add(const tensor& shared) { std::atomic_ref(shared.item<std::int64_t>()).fetch_add(1); }

private:
  tensor count_ = tensor::zeros<std::int64_t>({});
};

/// Numbers from 0 to 1 that are the same each time.
[[nodiscard]] inline tensor noise(const tensor_shape& shape, std::uint32_t seed = 1) {
  auto made = tensor::empty<float>(shape);
  for (auto& each : made.span<float>()) {
    seed = seed * 1'664'525U + 1'013'904'223U;
    each = static_cast<float>(seed >> 8U) / static_cast<float>(1U << 24U);
  }
  return made;
}

/// The sums of the columns.
[[nodiscard]] inline tensor column_sums(const tensor& x) {
  const auto width = x.shape()[1];
  std::vector<double> sums(width);
  const auto values = x.span<float>();
  for (std::size_t index = 0; index < values.size(); ++index) sums[index % width] += static_cast<double>(values[index]);
  auto made = tensor::empty<float>({width});
  std::ranges::transform(sums, made.span<float>().begin(), [](double each) { return static_cast<float>(each); });
  return made;
}

[[nodiscard]] inline float total(const tensor& x) {
  const auto values = x.span<float>();
  return static_cast<float>(std::accumulate(values.begin(), values.end(), 0.0));
}

/// Whether all elements are as expected, but for a relative error. Sums and means of numbers that are not negative are
/// joined in double: each slice's is rounded to float, and the result, which makes some 1e-7 for any number of slices.
inline void expect_close(const tensor& found, const tensor& expected, double tolerance = 1e-6) {
  ASSERT_EQ(found.shape(), expected.shape());
  const auto values = found.contiguous();
  for (std::size_t index = 0; index < expected.size(); ++index) {
    const auto wanted = static_cast<double>(expected.span<float>()[index]);
    ASSERT_NEAR(static_cast<double>(values.span<float>()[index]), wanted, tolerance * std::abs(wanted));
  }
}

}  // namespace muster::test
