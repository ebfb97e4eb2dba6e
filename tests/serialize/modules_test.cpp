// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/modules.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::modules_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

module_info make(std::string path, std::string id) { return {.path = std::move(path), .build_id = std::move(id)}; }

TEST(Modules, TheExecutableComesFirstAndHasABuildId) {
  const auto modules = loaded_modules();
  ASSERT_FALSE(modules.empty());
  EXPECT_TRUE(modules.front().path.empty());
  EXPECT_FALSE(modules.front().build_id.empty());
  EXPECT_TRUE(modules.front().contains(reinterpret_cast<std::uintptr_t>(&make)));
}

TEST(Modules, LibrariesAreFound) {
  const auto table = describe(loaded_modules());
  EXPECT_THAT(table, HasSubstr("(executable)"));
  EXPECT_THAT(table, HasSubstr("libc.so"));
}

TEST(FindMismatch, EqualBuildsMatch) {
  const auto modules = loaded_modules();
  EXPECT_THAT(find_mismatch(modules, modules), IsEmpty());
}

TEST(FindMismatch, AnotherExecutableIsNamedWithBothIds) {
  const std::vector parent = {make("", "\x01\x02")};
  const std::vector worker = {make("", "\x03\x04")};
  EXPECT_THAT(find_mismatch(parent, worker),
              testing::AllOf(HasSubstr("the executable"), HasSubstr("0102"), HasSubstr("0304")));
}

TEST(FindMismatch, NoBuildIdNeverMatches) {
  const std::vector both = {make("", "")};
  EXPECT_THAT(find_mismatch(both, both), HasSubstr("no build-id"));
}

TEST(FindMismatch, ALibraryOfTheSameNameMustBeTheSame) {
  const std::vector parent = {make("", "x"), make("/a/libtask.so", "1")};
  const std::vector worker = {make("", "x"), make("/b/libtask.so", "2")};
  EXPECT_THAT(find_mismatch(parent, worker), HasSubstr("libtask.so"));
}

TEST(FindMismatch, LibrariesThatOneSideLacksDoNoHarm) {
  const std::vector parent = {make("", "x"), make("/a/libplugin.so", "1"), make("/a/libold.so", "")};
  const std::vector worker = {make("", "x"), make("/a/libother.so", "2"), make("/a/libold.so", "3")};
  EXPECT_THAT(find_mismatch(parent, worker), IsEmpty());
}

}  // namespace
}  // namespace muster::modules_test
