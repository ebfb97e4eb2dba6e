#include "word_count.hpp"

#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>

namespace {

class WordCount : public testing::Test {
protected:
  WordCount() : folder_(testing::TempDir() + "/word_count_test") { std::filesystem::create_directory(folder_); }
  ~WordCount() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string file_with(const std::string& text) const {
    auto path = folder_ + "/" + std::to_string(std::hash<std::string>()(text));
    std::ofstream(path) << text;
    return path;
  }

private:
  std::string folder_;
};

}  // namespace

TEST_F(WordCount, CountsWordsWithoutRegardToCase) {
  EXPECT_EQ(count_words(file_with("The cat and the dog")),
            (word_counts{{"and", 1}, {"cat", 1}, {"dog", 1}, {"the", 2}}));
}

TEST_F(WordCount, AddsUpWhatTheWorkersCount) {
  muster::pool pool({.workers = 2});
  std::vector<std::string> problems;
  EXPECT_EQ(count_words_of(pool, {file_with("a b"), file_with("b c")}, problems),
            (word_counts{{"a", 1}, {"b", 2}, {"c", 1}}));
  EXPECT_TRUE(problems.empty());
}

TEST_F(WordCount, ReportsAFileThatCannotBeReadAndCountsTheOthers) {
  muster::pool pool({.workers = 2});
  std::vector<std::string> problems;
  EXPECT_EQ(count_words_of(pool, {"/no/such/file", file_with("a")}, problems), (word_counts{{"a", 1}}));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems.front().find("cannot read /no/such/file"), std::string::npos) << problems.front();
}
