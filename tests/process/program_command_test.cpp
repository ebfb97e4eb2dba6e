// SPDX-License-Identifier: BSL-1.0
#include "program_command.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::program_command_test {
namespace {

using detail::program_command;
using testing::ElementsAre;

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).string(); }

TEST(ProgramCommand, OfAProgramThatTheKernelHasStartedExecutesItsFile) {
  const auto& found = program_command::of_process();
  EXPECT_EQ(found.file, "/proc/self/exe");
  EXPECT_TRUE(found.arguments.empty());
  EXPECT_EQ(detail::describe_foreign_start(), "");
}

TEST(ProgramCommand, ByTheLoaderNamesTheProgramAbsolutelyAndNotItsArguments) {
  const auto made = program_command::by_loader({"/lib64/ld.so", "./program", "--flag", "x"}, "/folder/program");
  EXPECT_EQ(made.file, "/proc/self/exe");
  EXPECT_THAT(made.arguments, ElementsAre("/folder/program"));
  EXPECT_EQ(made.program, "/folder/program");
}

TEST(ProgramCommand, ByTheLoaderKeepsItsOptionsAndMakesTheirPathsAbsolute) {
  const auto made =
      program_command::by_loader({"ld.so", "--inhibit-cache", "--library-path", "lib::/usr/lib:$ORIGIN", "--preload",
                                  "libone.so:./libtwo.so", "--argv0", "renamed", "program", "--library-path"},
                                 "/folder/program");
  EXPECT_THAT(
      made.arguments,
      ElementsAre("--inhibit-cache", "--library-path", absolute("lib") + ':' + absolute(".") + ":/usr/lib:$ORIGIN",
                  "--preload", "libone.so:" + absolute("./libtwo.so"), "--argv0", "renamed", "/folder/program"));
}

TEST(ProgramCommand, OfABrokenCommandLineIsTheProgramAlone) {
  EXPECT_THAT(program_command::by_loader({}, "/folder/program").arguments, ElementsAre("/folder/program"));
  EXPECT_THAT(program_command::by_loader({"renamed process"}, "/folder/program").arguments,
              ElementsAre("/folder/program"));
}

}  // namespace
}  // namespace muster::program_command_test
