// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "examine.hpp"
#include "walk.hpp"

namespace corpus {

/// Merges what is known of the files. It says the same whoever examined them, and in whichever order.
class summary {
public:
  /// Keeps the `top` most frequent words, of each file and of all.
  explicit summary(std::size_t top) : top_(top) {}

  void add(const std::string& path, file_facts facts);
  /// A file that could not be examined.
  void add_failure(const std::string& path, const std::string& reason);
  /// Directories that could not be listed.
  void add(const std::vector<unreadable>& directories);

  /// A JSON document with everything. Bytes that are no UTF-8 are replaced in it.
  [[nodiscard]] std::string json() const;
  /// A table for people: totals, the largest groups of equal files, the most frequent words, what was not read.
  [[nodiscard]] std::string table() const;

  [[nodiscard]] std::size_t files() const { return files_.size(); }

private:
  struct duplicate_group {
    std::uint64_t hash = 0;
    std::uint64_t bytes = 0;
    std::vector<std::string> paths;
  };
  struct totals {
    std::uint64_t text = 0, binary = 0, bytes = 0, lines = 0, words = 0;
  };

  [[nodiscard]] totals sum() const;
  [[nodiscard]] std::vector<word_count> top_words() const;
  [[nodiscard]] std::vector<duplicate_group> duplicates() const;
  [[nodiscard]] std::vector<std::string> binary_files() const;
  [[nodiscard]] std::vector<unreadable> unread() const;

  const std::size_t top_;
  std::map<std::string, file_facts> files_;  // by path; of the counts, the top ones
  std::unordered_map<std::string, std::uint64_t> counts_;
  std::vector<unreadable> directories_;
};

}  // namespace corpus
