// my_service FILE… : the ten most frequent words of the files, counted in worker processes.
#include <algorithm>
#include <iostream>
#include <utility>

#include "word_count.hpp"

int main(int argc, char** argv) {
  muster::init(argc, argv);  // first: workers are this same program, and enter here
  if (argc < 2) {
    std::cerr << "usage: my_service FILE...\n";
    return 2;
  }
  muster::pool pool;  // as many workers as there are processors
  std::vector<std::string> problems;
  const auto counts = count_words_of(pool, std::vector<std::string>(argv + 1, argv + argc), problems);

  std::vector<std::pair<std::string, std::size_t>> words(counts.begin(), counts.end());
  std::stable_sort(words.begin(), words.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  words.resize(std::min<std::size_t>(words.size(), 10));
  for (const auto& [word, count] : words) std::cout << count << ' ' << word << '\n';
  for (const auto& problem : problems) std::cerr << problem << '\n';
  return problems.empty() ? 0 : 1;
}
