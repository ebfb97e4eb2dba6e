// SPDX-License-Identifier: BSL-1.0
#include <muster/base/error.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/assert.hpp>
#include <muster/base/system_call.hpp>

#include "foreign_locale.hpp"

namespace muster::error_test {
namespace {

using testing::HasSubstr;

TEST(Error, CodeComparesWithItsKind) {
  const error thrown(errc::pool_closed, "what happened");
  EXPECT_EQ(thrown.code(), errc::pool_closed);
  EXPECT_NE(thrown.code(), errc::timed_out);
  EXPECT_STREQ(thrown.what(), "what happened");
}

TEST(Error, EveryKindHasAText) {
  for (int value = 1; value <= static_cast<int>(errc::device_lost); ++value) {
    EXPECT_THAT(error_category().message(value), testing::Not(HasSubstr("unknown"))) << value;
  }
  EXPECT_THAT(error_category().message(999), HasSubstr("unknown"));
}

TEST(SystemCall, ReturnsTheResult) { EXPECT_EQ(system_call("getpid", ::getpid), ::getpid()); }

TEST(SystemCall, FailureNamesCallArgumentsProcessAndCause) {
  const auto open = [](const char* path, int flags) { return ::open(path, flags); };
  try {
    system_call("open", open, "/no/such/file", O_RDONLY);
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), std::errc::no_such_file_or_directory);
    EXPECT_THAT(failure.what(), HasSubstr("open(/no/such/file, 0)"));
    EXPECT_THAT(failure.what(), HasSubstr(std::to_string(::getpid())));
    EXPECT_THAT(failure.what(), HasSubstr("No such file"));
  }
}

TEST(SystemCall, FailureHasItsNumbersAsTheyAreInEveryLocale) {
  const test::foreign_locale scope;
  try {
    system_call("close", ::close, 987'654);
    FAIL();
  } catch (const error& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("close(987654) failed in process " + std::to_string(::getpid()) + ": "));
  }
}

TEST(SystemCall, ABufferIsPrintedAsAnAddressNotAsText) {
  std::array<char, 8> buffer;
  buffer.fill('x');  // no end of a text in it
  try {
    system_call("read", ::read, -1, buffer.data(), buffer.size());
    FAIL();
  } catch (const error& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("read(-1, 0x"));
  }
}

TEST(SystemCall, IsRetriedWhenASignalInterrupted) {
  int calls = 0;
  const auto interrupted_twice = [&calls]() -> int {
    if (++calls == 3) return 7;
    errno = EINTR;
    return -1;
  };
  EXPECT_EQ(system_call("interrupted", interrupted_twice), 7);
}

TEST(SystemCall, DescriptorShortageSaysWhatToDo) {
  const auto none_left = []() -> int {
    errno = EMFILE;
    return -1;
  };
  try {
    system_call("pipe", none_left);
    FAIL();
  } catch (const error& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("RLIMIT_NOFILE"));
  }
}

TEST(AssertDeathTest, AbortsWithConditionAndPlace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(MUSTER_ASSERT(1 + 1 == 3), "error_test.cpp:.*1 \\+ 1 == 3");
}

}  // namespace
}  // namespace muster::error_test
