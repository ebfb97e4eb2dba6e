// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace corpus {

using word_count = std::pair<std::string, std::uint64_t>;

/// What is known of one file. It travels from the worker through cereal.
struct file_facts {
  enum class kind : std::uint8_t { text, binary, unreadable };

  kind what = kind::text;
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;  ///< XXH3 of the content
  std::uint64_t lines = 0;
  std::uint64_t words = 0;
  std::vector<word_count> counts;  ///< of every word, the most frequent first; equal ones by name
  std::string reason;              ///< why it is unreadable

  template <class Archive>
  void serialize(Archive& archive) {
    archive(what, bytes, hash, lines, words, counts, reason);
  }
};

/// Reads a file, in pieces, and measures it. Runs in a worker; what goes wrong with the file is part of the result.
///
/// A file with a zero byte in its first 8000 is binary: its lines and words are not counted. A word is a run of
/// letters, digits, underscores and bytes beyond ASCII; letters are taken as lower case; only words of up to 64 bytes
/// get a count of their own.
[[nodiscard]] file_facts examine(const std::string& path);

/// The order in which word counts are shown.
void sort_by_frequency(std::vector<word_count>& counts);

}  // namespace corpus
