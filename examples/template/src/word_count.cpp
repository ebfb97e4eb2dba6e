#include "word_count.hpp"

#include <cctype>
#include <fstream>
#include <stdexcept>

word_counts count_words(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  word_counts found;
  for (std::string word; file >> word;) {
    for (char& letter : word) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    ++found[word];
  }
  return found;
}

word_counts count_words_of(muster::pool& pool, const std::vector<std::string>& paths,
                           std::vector<std::string>& problems) {
  word_counts all;
  auto results = pool.imap(count_words, paths);
  for (auto result = results.next_result(); result; result = results.next_result()) {
    if (!*result) {
      problems.push_back(result->error().message());
      continue;
    }
    for (const auto& [word, count] : **result) all[word] += count;
  }
  return all;
}
