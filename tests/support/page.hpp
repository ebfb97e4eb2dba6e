// SPDX-License-Identifier: BSL-1.0
#pragma once

// Pages of the documentation whose lines of code a test compiles.

#include <cctype>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::test {

[[nodiscard]] inline std::string content_of(const char* file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

[[nodiscard]] inline std::string without_spaces(std::string text) {
  std::erase_if(text, [](unsigned char each) { return std::isspace(each) != 0; });
  return text;
}

/// What stands between backquotes in the second column of the page's tables.
[[nodiscard]] inline std::vector<std::string> code_of_page(const char* page) {
  std::istringstream lines(content_of(page));
  std::vector<std::string> found;
  const std::regex code("`([^`]+)`");
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ")) continue;
    const auto first = line.find(" | ") + 3;
    const auto cell = line.substr(first, line.find(" |", first) - first);
    for (std::sregex_iterator each(cell.begin(), cell.end(), code), end; each != end; ++each) {
      found.push_back((*each)[1]);
    }
  }
  return found;
}

/// That all of it, `least` pieces or more, stands in the source too, wherever lines are broken.
inline void expect_compiled(const char* page, const char* source, std::size_t least) {
  const auto here = without_spaces(content_of(source));
  const auto pieces = code_of_page(page);
  EXPECT_GE(pieces.size(), least);
  for (const auto& each : pieces) {
    EXPECT_NE(here.find(without_spaces(each)), std::string::npos) << "not compiled: " << each;
  }
}

/// The same of its blocks of C++.
inline void expect_blocks_compiled(const char* page, const char* source, std::size_t least) {
  const auto here = without_spaces(content_of(source));
  const auto text = content_of(page);
  const std::string begin = "```cpp\n";
  std::size_t found = 0;
  for (auto at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    at += begin.size();
    const auto block = text.substr(at, text.find("```", at) - at);
    EXPECT_NE(here.find(without_spaces(block)), std::string::npos) << "not compiled: " << block;
    ++found;
  }
  EXPECT_GE(found, least);
}

}  // namespace muster::test
