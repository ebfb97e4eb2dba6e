// SPDX-License-Identifier: BSL-1.0
// DLPack against somebody else's implementation of it.
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace muster::dlpack_numpy_test {
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

// Debian's, whose packages are Debian's too; isolated (-I) from what the environment says of another one.
constexpr auto python = "/usr/bin/python3 -I ";

TEST(DlpackNumpy, TensorsAndArraysAreTheSameMemory) {
  if (!std::string_view(MUSTER_SANITIZER).empty()) GTEST_SKIP() << "Python loads no sanitized library";
  if (run(std::string(python) + "-c pass").status != 0) GTEST_SKIP() << "there is no /usr/bin/python3";
  const auto found = run(std::string(python) + "'" MUSTER_DLPACK_SCRIPT "' '" MUSTER_DLPACK_PEER "'");
  constexpr int no_numpy = 77;
  if (found.status == no_numpy) GTEST_SKIP() << "/usr/bin/python3 has no NumPy: install python3-numpy";
  EXPECT_EQ(found.status, 0) << found.output;
}

}  // namespace
}  // namespace muster::dlpack_numpy_test
