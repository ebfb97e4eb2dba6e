// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <filesystem>
#include <string_view>

namespace muster::test {

/// A directory that goes with the object.
class temporary_directory {
public:
  temporary_directory();
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  ~temporary_directory();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file below it, with the directories on the way.
  void write(const std::filesystem::path& file, std::string_view text) const;

private:
  std::filesystem::path path_;
};

}  // namespace muster::test
