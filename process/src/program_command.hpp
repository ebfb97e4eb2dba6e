// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <vector>

namespace muster::detail {

/// How this program is executed anew, as this process was started: by the kernel, or by the dynamic loader, which was
/// itself executed (`ld.so [OPTION…] PROGRAM`).
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct program_command {
  std::string file = "/proc/self/exe";     ///< to execute
  std::vector<std::string> arguments{};    ///< in front of the program's own: the loader's options, and the program
  std::string program = "/proc/self/exe";  ///< the file that holds the program's symbols

  /// The first call finds it, and must come before this process changes its directory.
  [[nodiscard]] static const program_command& of_process() noexcept;
  /// The same for a process with that command line, of which `program` is the file, and the words before it are the
  /// loader's. Options that name files or folders relative to the current one do so absolutely then.
  [[nodiscard]] static program_command by_loader(const std::vector<std::string>& words, const std::string& program);
};

/// A sentence, if /proc/self/exe, which workers execute, is not this program: under valgrind, qemu-user and the like.
/// Empty if it is, or nothing is known.
[[nodiscard]] std::string describe_foreign_start();

}  // namespace muster::detail
