// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/result.hpp>

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <muster/serialize/exceptions.hpp>

namespace muster::result_test {
namespace {

TEST(Result, HoldsAValue) {
  result<std::string> found = std::string("yes");
  EXPECT_TRUE(found);
  EXPECT_EQ(*found, "yes");
  EXPECT_EQ(found->size(), 3U);
  EXPECT_EQ(found.value(), "yes");
  EXPECT_EQ(std::move(found).value(), "yes");
}

TEST(Result, HoldsAnErrorThatValueThrows) {
  const result<int> found = error_info(errc::timed_out, "too late");
  EXPECT_FALSE(found);
  EXPECT_EQ(found.error(), errc::timed_out);
  EXPECT_EQ(found.error().message(), "too late");
  EXPECT_THROW(static_cast<void>(found.value()), task_error);
}

TEST(Result, OfVoidHoldsSuccess) {
  EXPECT_TRUE(result<void>());
  result<void>().value();
  EXPECT_THROW(result<void>(error_info(errc::cancelled, "")).value(), task_error);
}

TEST(Result, HoldsMoveOnlyValues) {
  result<std::unique_ptr<int>> found = std::make_unique<int>(4);
  EXPECT_EQ(*std::move(found).value(), 4);
}

}  // namespace
}  // namespace muster::result_test
