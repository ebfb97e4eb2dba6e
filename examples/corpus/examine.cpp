// SPDX-License-Identifier: BSL-1.0
#include "examine.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <unordered_map>

#include <muster/base/error.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/unique_fd.hpp>

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
    const bool is_word =
        is_upper || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '_' || byte >= 0x80;
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

struct free_hash {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

bool looks_binary(std::string_view beginning) {
  return beginning.substr(0, binary_probe_bytes).find('\0') != std::string_view::npos;
}

// Reads a file in pieces, the last of which may be short or empty. Throws muster::error.
template <class Take>
void read_in_pieces(const std::string& path, Take take) {
  const auto open = [](const char* name) { return ::open(name, O_RDONLY | O_CLOEXEC); };
  const muster::unique_fd file(muster::system_call("open", open, path.c_str()));
  std::vector<char> buffer(piece_bytes);
  for (;;) {
    const auto size = muster::system_call("read", ::read, file.get(), buffer.data(), buffer.size());
    if (size == 0) return;
    take(std::string_view(buffer.data(), static_cast<std::size_t>(size)));
  }
}

}  // namespace

void sort_by_frequency(std::vector<word_count>& counts) {
  std::ranges::sort(counts, [](const word_count& a, const word_count& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
}

file_facts examine(const std::string& path) {
  const std::unique_ptr<XXH3_state_t, free_hash> hash(XXH3_createState());
  XXH3_64bits_reset(hash.get());
  file_facts facts;
  word_counter words;
  try {
    read_in_pieces(path, [&](std::string_view piece) {
      if (facts.bytes == 0 && looks_binary(piece)) facts.what = file_facts::kind::binary;
      facts.bytes += piece.size();
      XXH3_64bits_update(hash.get(), piece.data(), piece.size());
      if (facts.what == file_facts::kind::binary) return;
      facts.lines += static_cast<std::uint64_t>(std::ranges::count(piece, '\n'));
      words.feed(piece);
    });
  } catch (const muster::error& failure) {
    file_facts unreadable;
    unreadable.what = file_facts::kind::unreadable;
    unreadable.reason = failure.code().message();
    return unreadable;
  }
  words.finish_word();
  facts.hash = XXH3_64bits_digest(hash.get());
  facts.words = words.words();
  facts.counts = words.take_counts();
  sort_by_frequency(facts.counts);
  return facts;
}

}  // namespace corpus
