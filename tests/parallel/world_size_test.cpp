// SPDX-License-Identifier: BSL-1.0
#include "world_size.hpp"

#include <gtest/gtest.h>

#include <muster/base/error.hpp>

namespace muster::detail::world_size_test {
namespace {

TEST(WorldSize, ThereIsARankForEachProcessorUpTo256) {
  EXPECT_EQ(ranks_of({}, 1), 1U);
  EXPECT_EQ(ranks_of({}, 256), 256U);
  EXPECT_EQ(ranks_of({}, 384), 256U);
}

TEST(WorldSize, WhatIsAskedForIsNotChanged) {
  EXPECT_EQ(ranks_of({.ranks = 3}, 384), 3U);
  EXPECT_EQ(ranks_of({.ranks = 256}, 2), 256U);
  EXPECT_THROW(static_cast<void>(ranks_of({.ranks = 257}, 384)), error);
}

TEST(WorldSize, TheMasterIsOneOfTheRanksWhetherTheCallerComputesOrNot) {
  for (const bool computes : {true, false}) {
    EXPECT_EQ(ranks_of({.ranks = 3, .master_rank = 2, .caller_computes = computes}, 8), 3U);
    EXPECT_THROW(static_cast<void>(ranks_of({.ranks = 3, .master_rank = 3, .caller_computes = computes}, 8)), error);
    EXPECT_THROW(static_cast<void>(ranks_of({.master_rank = 2, .caller_computes = computes}, 2)), error);
  }
}

}  // namespace
}  // namespace muster::detail::world_size_test
