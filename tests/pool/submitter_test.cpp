// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/local_calls.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/submit_calls.hpp>
#include <muster/pool/submitter.hpp>
#include <muster/pool/thread_pool.hpp>

#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace muster::submitter_test {
namespace {

// Programs name these; the headers of the same names give them, and so do those of the pools.
using as_given = detail::as_given;
static_assert(std::is_same_v<decltype(std::declval<pool&>().with({})), submitter>);
static_assert(std::is_same_v<decltype(std::declval<pool&>().collect_errors()), collecting_submitter>);
static_assert(std::is_same_v<submitter, basic_submitter<as_given>>);
static_assert(std::is_same_v<collecting_submitter, basic_collecting_submitter<as_given>>);
static_assert(std::is_same_v<decltype(std::declval<thread_pool&>().with({})), local_submitter<as_given>>);
static_assert(
    std::is_same_v<decltype(std::declval<thread_pool&>().collect_errors()), collecting_local_submitter<as_given>>);
static_assert(std::is_base_of_v<submit_calls<submitter>, submitter>);
static_assert(std::is_base_of_v<local_calls<local_submitter<as_given>>, local_submitter<as_given>>);

int half_of_even(int x) {
  if (x % 2 != 0) throw std::invalid_argument("odd");
  return x / 2;
}

template <class Pool>
class Submitter : public testing::Test {
protected:
  Pool pool_{{.workers = 1}};
};
using pools = testing::Types<pool, thread_pool>;
TYPED_TEST_SUITE(Submitter, pools);

TYPED_TEST(Submitter, CollectsErrorsWhicheverOptionsComeBeforeOrBehind) {
  const std::vector numbers{2, 3};
  const auto expect_both = [&](const auto& calls) {
    const auto found = calls.map(half_of_even, numbers);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].value(), 1);
    EXPECT_FALSE(found[1].has_value());
  };
  expect_both(this->pool_.with({.chunk = 1}).on(0).collect_errors());
  expect_both(this->pool_.collect_errors().with({.chunk = 1}).on(0));
  expect_both(this->pool_.on(0).collect_errors().collect_errors());
}

TYPED_TEST(Submitter, RefusesAWorkerThatThePoolHasNot) {
  EXPECT_THROW(static_cast<void>(this->pool_.with({}).on(64)), error);
  EXPECT_THROW(static_cast<void>(this->pool_.collect_errors().on(64)), error);
}

}  // namespace
}  // namespace muster::submitter_test
