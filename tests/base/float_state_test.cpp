// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/float_state.hpp>

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "float_states.hpp"

namespace muster::float_state_test {
namespace {

using test::floats;
using test::floats_scope;
using test::signs_of_state;

class FloatState : public testing::TestWithParam<floats> {
protected:
  const std::vector<std::uint64_t> usual_ = signs_of_state();
};

TEST_P(FloatState, WhatIsComputedInTheFixedStateIsTheSame) {
  const floats_scope set(GetParam());
  EXPECT_EQ(in_fixed_float_state(signs_of_state), usual_);
  EXPECT_TRUE(set.is_unchanged());
}

TEST_P(FloatState, ItsFlagsDoNotComeOut) {
  const floats_scope set(GetParam());
  volatile double zero = 0;
  const auto divided = in_fixed_float_state([&zero] { return 1.0 / zero; });
  EXPECT_EQ(divided, HUGE_VAL);
  EXPECT_TRUE(set.is_unchanged());
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0);
}

TEST_P(FloatState, FlagsOfTheThreadStay) {
  const floats_scope set(GetParam());
  std::feraiseexcept(FE_UNDERFLOW);
  in_fixed_float_state([] { static_cast<void>(signs_of_state()); });
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT) & (FE_UNDERFLOW | FE_DIVBYZERO), FE_UNDERFLOW);
}

TEST_P(FloatState, IsTheThreadsAgainWhenSomethingIsThrown) {
  const floats_scope set(GetParam());
  EXPECT_THROW(in_fixed_float_state([] { throw std::runtime_error("thrown"); }), std::runtime_error);
  EXPECT_TRUE(set.is_unchanged());
}

TEST_P(FloatState, OfLongDoubleIsFixedToo) {
  volatile long double one = 1;
  const auto third = one / 3;
  const floats_scope set(GetParam());
  EXPECT_EQ(in_fixed_long_double_state([&one] { return one / 3; }), third);
  EXPECT_TRUE(set.is_unchanged());
}

TEST_P(FloatState, CanBeThatOfAnotherThread) {
  float_state of_other = float_state::of_thread();
  std::vector<std::uint64_t> signs;
  std::thread([&] {
    const floats_scope set(GetParam());
    of_other = float_state::of_thread();
    signs = signs_of_state();
  }).join();
  EXPECT_EQ(in_float_state(of_other, signs_of_state), signs);
  EXPECT_EQ(signs_of_state(), usual_);
}

INSTANTIATE_TEST_SUITE_P(States, FloatState, testing::ValuesIn(test::floats_here()),
                         [](const auto& which) { return test::name_of(which.param); });

// Else the tests that set one show nothing.
TEST(StatesOfTests, AreOthers) {
  const auto usual = signs_of_state();
  for (const auto which : {floats::flushing, floats::upward}) {
    const floats_scope set(which);
    EXPECT_NE(signs_of_state(), usual) << which;
  }
}

}  // namespace
}  // namespace muster::float_state_test
