// SPDX-License-Identifier: BSL-1.0
#include <muster/base/text.hpp>

#include <gtest/gtest.h>

#include <muster/base/detail/demangle.hpp>
#include <muster/base/log.hpp>

#include "foreign_locale.hpp"

namespace muster::text_test {
namespace {

TEST(Text, JoinsItsParts) { EXPECT_EQ(text("a", 1, ' ', 2.5), "a1 2.5"); }

TEST(Text, IsTheSameInEveryLocale) {
  const test::foreign_locale scope;
  EXPECT_EQ(text(12345, ' ', std::hex, 0x12345, ' ', 2.5), "12345 12345 2.5");
  EXPECT_EQ(text_of_bytes(1023), "1023 bytes");
  EXPECT_EQ(text_of_bytes(1536), "1.5 KiB");
  EXPECT_EQ(text_of_bytes(std::uint64_t{3} << 50U), "3072.0 TiB");
}

TEST(Text, ByteCountsHaveUnits) {
  EXPECT_EQ(text_of_bytes(0), "0 bytes");
  EXPECT_EQ(text_of_bytes(1023), "1023 bytes");
  EXPECT_EQ(text_of_bytes(1536), "1.5 KiB");
  EXPECT_EQ(text_of_bytes(std::uint64_t{5} << 30U), "5.0 GiB");
  EXPECT_EQ(text_of_bytes(std::uint64_t{3} << 50U), "3072.0 TiB");
}

TEST(Demangle, GivesSourceNames) {
  EXPECT_EQ(name_of(typeid(std::pair<int, char>)), "std::pair<int, char>");
  EXPECT_EQ(demangle("not mangled"), "not mangled");
}

TEST(Log, LevelsHaveNames) {
  EXPECT_EQ(to_string(log_level::debug), "debug");
  EXPECT_EQ(to_string(log_level::error), "error");
}

TEST(Log, StderrSinkPrintsWarningsAndErrorsOnly) {
  testing::internal::CaptureStderr();
  log_to_stderr(log_level::info, "not shown");
  log_to_stderr(log_level::warning, "shown");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "muster: warning: shown\n");
}

}  // namespace
}  // namespace muster::text_test
