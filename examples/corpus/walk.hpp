// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace corpus {

/// Something that could not be read, and why.
struct unreadable {
  std::string path;
  std::string reason;
};

/// What a walk found.
struct tree {
  std::vector<std::string> files;       ///< regular files, sorted; those under two roots once, named by the first
  std::vector<unreadable> directories;  ///< that could not be listed; likewise
};

/// Lists the regular files under `roots`, which may be files themselves. Symbolic links below a root are not followed.
/// Throws std::runtime_error that names a root which does not exist, cannot be looked at, or is neither a directory nor
/// a regular file.
[[nodiscard]] tree walk(std::span<const std::string> roots);

}  // namespace corpus
