// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include <muster/base/unique_fd.hpp>

namespace bench {

/// A program that does one thing as often as it is told: our turns and its turns can alternate. It reads a number from
/// each line of its input: a positive one asks for as many in one, a negative one for the times of as many, each by
/// itself. It answers each line with a line. At the end of its input it ends.
class told_program {
public:
  /// Starts it: its path, and its arguments. Has it do the thing once.
  explicit told_program(std::vector<std::string> command);
  told_program(const told_program&) = delete;
  told_program& operator=(const told_program&) = delete;
  ~told_program();

  void run(std::size_t count);
  /// How long each of so many took, by itself, in ns.
  std::vector<double> run_singly(std::size_t count);

private:
  void ask(const std::string& line);
  [[nodiscard]] std::string read_line();

  const std::string name_;
  muster::unique_fd requests_;
  muster::unique_fd answers_;
  pid_t process_ = 0;
};

}  // namespace bench
