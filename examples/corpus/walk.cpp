// SPDX-License-Identifier: BSL-1.0
#include "walk.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <system_error>

namespace corpus {

namespace {

namespace fs = std::filesystem;

// As it was named, and its real path, which it has under whatever root it is found.
struct place {
  fs::path name;
  fs::path real;
};

// "a/b/" and "a/./b" are "a/b".
fs::path tidy(const std::string& root) {
  const auto path = fs::path(root).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

fs::path real_path(const fs::path& path) {
  std::error_code failure;
  auto found = fs::canonical(path, failure);
  return failure ? path : found;
}

class walker {
public:
  void add_root(const std::string& root) {
    const auto path = tidy(root);
    std::error_code failure;
    const auto kind = fs::status(path, failure).type();
    if (kind == fs::file_type::not_found) throw std::runtime_error("there is no file or directory " + root);
    if (failure) throw std::runtime_error(root + " cannot be looked at: " + failure.message());
    if (kind == fs::file_type::directory) {
      add_directory({path, real_path(path)});
    } else if (kind == fs::file_type::regular) {
      add_file({path, real_path(path)});
    } else {
      throw std::runtime_error(root + " is neither a directory nor a regular file: only those can be examined");
    }
  }

  [[nodiscard]] tree found() const {
    tree all;
    for (const auto& [real, name] : files_) all.files.push_back(name);
    for (const auto& [real, what] : directories_) all.directories.push_back(what);
    std::ranges::sort(all.files);
    std::ranges::sort(all.directories, {}, &unreadable::path);
    return all;
  }

private:
  // Under which root it was found first, that is its name.
  void add_file(const place& file) { files_.try_emplace(file.real.string(), file.name.string()); }

  // Below a root no link is followed, so that real paths need not be looked up there.
  void add_directory(const place& directory) {
    std::error_code failure;
    std::vector<place> deeper;
    for (fs::directory_iterator at(directory.name, failure); !failure && at != fs::directory_iterator();
         at.increment(failure)) {
      std::error_code unknown;  // what cannot even be looked at is met again, and named, when it is opened
      const auto kind = at->symlink_status(unknown).type();
      const place child{at->path().lexically_normal(), directory.real / at->path().filename()};
      if (kind == fs::file_type::directory) deeper.push_back(child);
      if (kind == fs::file_type::regular || kind == fs::file_type::unknown || kind == fs::file_type::none) {
        add_file(child);
      }
    }
    if (failure) {
      directories_.try_emplace(directory.real.string(), unreadable{directory.name.string(), failure.message()});
    }
    for (const auto& each : deeper) add_directory(each);
  }

  // By real path.
  std::map<std::string, std::string> files_;
  std::map<std::string, unreadable> directories_;
};

}  // namespace

tree walk(std::span<const std::string> roots) {
  walker all;
  for (const auto& root : roots) all.add_root(root);
  return all.found();
}

}  // namespace corpus
