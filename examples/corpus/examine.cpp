// SPDX-License-Identifier: BSL-1.0
#include "examine.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <unordered_map>

namespace corpus {

namespace {

constexpr std::size_t longest_counted_word = 64;
constexpr std::size_t binary_probe_bytes = 8000;  // as git does
constexpr std::size_t piece_bytes = std::size_t{1} << 18;

// What a byte is in a word: itself, in lower case; 0: it separates words.
constexpr std::array<char, 256> make_word_bytes() {
  std::array<char, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool is_upper = byte >= 'A' && byte <= 'Z';
    const bool is_word = is_upper || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '_' || byte >= 0x80;
    if (is_word) table[byte] = static_cast<char>(is_upper ? byte - 'A' + 'a' : byte);
  }
  return table;
}
constexpr auto word_bytes = make_word_bytes();

/// Counts the words of a text that comes in pieces.
class word_counter {
public:
  void feed(std::string_view piece) {
    for (const char each : piece) {
      if (const char byte = word_bytes[static_cast<unsigned char>(each)]; byte != 0) {
        add(byte);
      } else {
        finish_word();
      }
    }
  }

  void finish_word() {
    if (length_ == 0) return;
    ++words_;
    if (length_ <= longest_counted_word) ++count_of({word_.data(), length_});
    length_ = 0;
  }

  [[nodiscard]] std::uint64_t words() const { return words_; }
  [[nodiscard]] std::vector<word_count> take_counts() { return {counts_.begin(), counts_.end()}; }

private:
  struct hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const { return XXH3_64bits(word.data(), word.size()); }
  };

  void add(char byte) {
    if (length_ < longest_counted_word) word_[length_] = byte;
    ++length_;
  }
  std::uint64_t& count_of(std::string_view word) {
    const auto at = counts_.find(word);
    return at != counts_.end() ? at->second : counts_[std::string(word)];
  }

  std::array<char, longest_counted_word> word_{};
  std::size_t length_ = 0;
  std::uint64_t words_ = 0;
  std::unordered_map<std::string, std::uint64_t, hash, std::equal_to<>> counts_;
};

struct close_file {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct free_hash {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

bool looks_binary(std::string_view beginning) {
  return beginning.substr(0, binary_probe_bytes).find('\0') != std::string_view::npos;
}

file_facts unreadable_file(int error) {
  file_facts facts;
  facts.what = file_facts::kind::unreadable;
  facts.reason = std::strerror(error);  // one thread examines in a process
  return facts;
}

}  // namespace

void sort_by_frequency(std::vector<word_count>& counts) {
  std::ranges::sort(counts, [](const word_count& a, const word_count& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
}

file_facts examine(const std::string& path) {
  const std::unique_ptr<std::FILE, close_file> file(std::fopen(path.c_str(), "rbe"));
  if (!file) return unreadable_file(errno);
  const std::unique_ptr<XXH3_state_t, free_hash> hash(XXH3_createState());
  XXH3_64bits_reset(hash.get());

  file_facts facts;
  word_counter words;
  std::vector<char> buffer(piece_bytes);
  while (const auto size = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    const std::string_view piece(buffer.data(), size);
    if (facts.bytes == 0 && looks_binary(piece)) facts.what = file_facts::kind::binary;
    facts.bytes += size;
    XXH3_64bits_update(hash.get(), piece.data(), size);
    if (facts.what == file_facts::kind::binary) continue;
    facts.lines += static_cast<std::uint64_t>(std::ranges::count(piece, '\n'));
    words.feed(piece);
  }
  if (std::ferror(file.get()) != 0) return unreadable_file(errno);
  words.finish_word();
  facts.hash = XXH3_64bits_digest(hash.get());
  facts.words = words.words();
  facts.counts = words.take_counts();
  sort_by_frequency(facts.counts);
  return facts;
}

}  // namespace corpus
