// SPDX-License-Identifier: BSL-1.0
#include "temporary_directory.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace muster::test {

temporary_directory::temporary_directory() {
  auto name = (std::filesystem::temp_directory_path() / "muster-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + name);
  path_ = name;
}

temporary_directory::~temporary_directory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void temporary_directory::write(const std::filesystem::path& file, std::string_view text) const {
  std::filesystem::create_directories((path_ / file).parent_path());
  std::ofstream(path_ / file) << text;
}

}  // namespace muster::test
