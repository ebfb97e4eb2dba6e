// SPDX-License-Identifier: BSL-1.0
#include <muster/process/init.hpp>

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>

#include "processes.hpp"

namespace muster::init_test {
namespace {

TEST(Init, WasCalledHere) { EXPECT_NO_THROW(detail::require_init()); }

TEST(Init, AForkedChildMustCallItAgain) {
  const auto ranks = test::spawn(1, [](std::size_t) {
    try {
      detail::require_init();
      return 1;
    } catch (const error& failure) {
      const std::string what = failure.what();
      if (failure.code() != errc::not_initialized || what.find("first line of main()") == std::string::npos) return 2;
    }
    init(0, nullptr);
    detail::require_init();
    return 0;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
}

TEST(Init, AMarkWithoutTheSocketIsNoWorkerAndIsRemoved) {
  const auto ranks = test::spawn(1, [](std::size_t) {
    ::setenv("MUSTER_WORKER", "forged", 1);
    init(0, nullptr);  // returns
    return std::getenv("MUSTER_WORKER") == nullptr ? 0 : 1;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
}

}  // namespace
}  // namespace muster::init_test
