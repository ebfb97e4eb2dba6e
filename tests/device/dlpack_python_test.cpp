// SPDX-License-Identifier: BSL-1.0
// DLPack against implementations of others: NumPy's, and PyTorch's where it is installed. What they cannot do yet is
// skipped, with the reason.
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace muster::dlpack_python_test {
namespace {

struct outcome {
  int status = -1;
  std::string output;
};

outcome run(const std::string& command) {
  outcome found;
  auto* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return found;
  std::array<char, 4096> part{};
  while (const auto count = std::fread(part.data(), 1, part.size(), pipe)) found.output.append(part.data(), count);
  const int ended = ::pclose(pipe);
  found.status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
  return found;
}

// Debian's, whose packages are Debian's too; isolated (-I) from what the environment says of another one, and
// leaving no compiled modules (-B) beside the scripts.
constexpr auto python = "/usr/bin/python3 -I -B ";
constexpr int cannot_check = 77;

void expect_success(const std::string& script, const std::string& function) {
  if (!std::string_view(MUSTER_SANITIZER).empty()) GTEST_SKIP() << "Python loads no sanitized library";
  if (run(std::string(python) + "-c pass").status != 0) GTEST_SKIP() << "there is no /usr/bin/python3";
  const auto found =
      run(std::string(python) + "'" MUSTER_DLPACK_SCRIPTS "/" + script + "' '" MUSTER_DLPACK_PEER "' " + function);
  if (found.status == cannot_check) GTEST_SKIP() << found.output;
  EXPECT_EQ(found.status, 0) << found.output;
}

void with_numpy(const std::string& function) { expect_success("dlpack_numpy.py", function); }
void with_torch(const std::string& function) { expect_success("dlpack_torch.py", function); }

TEST(DlpackNumpy, ValuesOfEveryTypeGoBothWays) { with_numpy("values_go_both_ways"); }
TEST(DlpackNumpy, BoolsGoBothWays) { with_numpy("bools_go_both_ways"); }
TEST(DlpackNumpy, AnExportedTensorIsTheSameMemory) { with_numpy("an_exported_tensor_is_the_same_memory"); }
TEST(DlpackNumpy, AnImportedArrayIsTheSameMemory) { with_numpy("an_imported_array_is_the_same_memory"); }
TEST(DlpackNumpy, WhatIsRefusedStaysTheCapsules) { with_numpy("what_is_refused_stays_the_capsules"); }
TEST(DlpackNumpy, CapsulesOfVersion1GoBothWays) { with_numpy("version_1_goes_both_ways"); }

TEST(DlpackTorch, ValuesOfEveryTypeGoBothWays) { with_torch("values_go_both_ways"); }
TEST(DlpackTorch, BoolsGoBothWays) { with_torch("bools_go_both_ways"); }
TEST(DlpackTorch, AnExportedTensorIsTheSameMemory) { with_torch("an_exported_tensor_is_the_same_memory"); }
TEST(DlpackTorch, AnImportedTensorIsTheSameMemory) { with_torch("an_imported_tensor_is_the_same_memory"); }
TEST(DlpackTorch, CapsulesOfVersion1GoBothWays) { with_torch("version_1_goes_both_ways"); }

TEST(LikeNumpy, NumbersAreWrittenAlike) { with_numpy("texts_are_numpys"); }
TEST(LikeNumpy, LinesAreBrokenAlike) { with_numpy("lines_are_numpys"); }
TEST(LikeNumpy, ComparisonsFindTheSame) { with_numpy("comparisons_are_numpys"); }

}  // namespace
}  // namespace muster::dlpack_python_test
