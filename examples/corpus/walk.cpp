// SPDX-License-Identifier: BSL-1.0
#include "walk.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace corpus {

namespace {

namespace fs = std::filesystem;

void walk_directory(const fs::path& directory, tree& found) {
  std::error_code failure;
  std::vector<fs::path> deeper;
  for (fs::directory_iterator at(directory, failure); !failure && at != fs::directory_iterator();
       at.increment(failure)) {
    std::error_code unknown;  // what cannot even be looked at is met again, and named, when it is opened
    const auto kind = at->symlink_status(unknown).type();
    if (kind == fs::file_type::directory) deeper.push_back(at->path());
    if (kind == fs::file_type::regular || kind == fs::file_type::unknown) found.files.push_back(at->path().string());
  }
  if (failure) found.directories.push_back({directory.string(), failure.message()});
  for (const auto& each : deeper) walk_directory(each, found);
}

// "a/b/" and "a/./b" are "a/b", so that a file has one name.
fs::path tidy(const std::string& root) {
  const auto path = fs::path(root).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

tree walk(std::span<const std::string> roots) {
  tree found;
  for (const auto& root : roots) {
    const auto path = tidy(root);
    std::error_code failure;
    if (!fs::exists(path, failure)) throw std::runtime_error("there is no file or directory " + root);
    if (fs::is_directory(path, failure)) {
      walk_directory(path, found);
    } else {
      found.files.push_back(path.string());
    }
  }
  std::ranges::sort(found.files);
  found.files.erase(std::unique(found.files.begin(), found.files.end()), found.files.end());
  std::ranges::sort(found.directories, {}, &unreadable::path);
  return found;
}

}  // namespace corpus
