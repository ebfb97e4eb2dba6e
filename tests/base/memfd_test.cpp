// SPDX-License-Identifier: BSL-1.0
#include <muster/base/memfd.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>

#include "refused_calls.hpp"

namespace muster::memfd_test {
namespace {

TEST(Memfd, HasTheSizeAndNoName) {
  const auto file = make_memfd("test", 12345);
  struct stat status{};
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  EXPECT_EQ(status.st_size, 12345);
  EXPECT_EQ(status.st_nlink, 0U);
}

TEST(Memfd, CannotShrinkGrowOrBeUnsealed) {
  const auto file = make_memfd("test", 8192);
  EXPECT_NE(::ftruncate(file.get(), 4096), 0);
  EXPECT_NE(::ftruncate(file.get(), 16384), 0);
  EXPECT_NE(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(Memfd, IsClosedOnExec) {
  const auto file = make_memfd("test", 1);
  EXPECT_NE(::fcntl(file.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Memfd, BeyondTheFileSizeLimitIsAnErrorAndNoSignal) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  try {
    static_cast<void>(make_memfd("test", 1 << 20U));
    ADD_FAILURE() << "no error";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::out_of_memory);
    EXPECT_THAT(failure.what(), testing::AllOf(testing::HasSubstr("1.0 MiB"), testing::HasSubstr("RLIMIT_FSIZE")));
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
}

std::int64_t bytes_in_memory(const unique_fd& file) {
  struct stat status{};
  EXPECT_EQ(::fstat(file.get(), &status), 0);
  return std::int64_t{status.st_blocks} * 512;
}

TEST(Memfd, HasItsPagesWhenTheyAreTouchedOrAtOnce) {
  EXPECT_EQ(bytes_in_memory(make_memfd("test", 1 << 20U)), 0);
  EXPECT_EQ(bytes_in_memory(make_memfd("test", 1 << 20U, memfd_pages::at_once)), 1 << 20U);
}

TEST(Memfd, PagesThatCannotBeHadAreAnErrorAndNoSignal) {
  for (const int cause : {ENOSPC, ENOMEM}) {
    const test::refused_calls scope("fallocate", cause);
    try {
      static_cast<void>(make_memfd("test", 1 << 20U, memfd_pages::at_once));
      ADD_FAILURE() << "no error";
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::out_of_memory);
      EXPECT_THAT(failure.what(), testing::AllOf(testing::HasSubstr("1.0 MiB"), testing::HasSubstr("CommitLimit")));
    }
  }
}

TEST(UniqueFd, ClosesWhatItOwns) {
  int number = -1;
  {
    unique_fd file = make_memfd("test", 1);
    number = file.get();
    const unique_fd moved = std::move(file);
    EXPECT_FALSE(file);  // NOLINT(bugprone-use-after-move): that is the question
    EXPECT_EQ(moved.get(), number);
  }
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace muster::memfd_test
