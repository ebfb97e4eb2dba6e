// SPDX-License-Identifier: BSL-1.0
// Values that are nested deeper than the stack, as arguments and as results.
#include <cstddef>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/pool/pool.hpp>

#include "chain.hpp"

namespace muster::nesting_test {
namespace {

using test::chain_of;
using test::length_of;

constexpr std::size_t too_deep = 1'000'000;

template <class Call>
void expect_refused(Call call) {
  try {
    call();
    FAIL() << "it was sent";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::not_serializable);
    EXPECT_THAT(failure.what(), testing::HasSubstr("nested deeper than this thread's stack"));
  }
}

TEST(NestedValue, DeeperThanTheCallersStackIsRefusedAsAnArgument) {
  const pool pool({.workers = 1});
  const auto chain = chain_of(too_deep);
  expect_refused([&] { pool.apply(length_of, chain); });
  EXPECT_EQ(pool.apply(length_of, chain_of(100)), 100U);
}

TEST(NestedValue, DeeperThanTheWorkersStackIsRefusedAsAResult) {
  const pool pool({.workers = 1});
  expect_refused([&] { pool.apply(chain_of, too_deep); });
  EXPECT_EQ(length_of(pool.apply(chain_of, 100U)), 100U);
}

TEST(NestedValue, DeeperThanTheStackIsRefusedAsAnElement) {
  const pool pool({.workers = 1});
  expect_refused([&] { pool.map(chain_of, std::vector<std::size_t>{1, too_deep}); });
}

}  // namespace
}  // namespace muster::nesting_test
