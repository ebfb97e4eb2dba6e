// SPDX-License-Identifier: BSL-1.0
#include "line_splitter.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::line_splitter_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class LineSplitter : public testing::Test {
protected:
  void add(std::string_view bytes) { splitter_.add(bytes, keep()); }
  void finish() { splitter_.finish(keep()); }
  [[nodiscard]] std::vector<std::pair<std::string, bool>> take() { return std::exchange(lines_, {}); }

private:
  std::function<void(std::string_view, bool)> keep() {
    return [this](std::string_view text, bool ends_line) { lines_.emplace_back(text, ends_line); };
  }

  detail::line_splitter splitter_;
  std::vector<std::pair<std::string, bool>> lines_;
};

TEST_F(LineSplitter, GivesEveryCompleteLineAlsoEmptyOnes) {
  add("a\n\nbc\nd");
  EXPECT_THAT(take(), ElementsAre(Pair("a", true), Pair("", true), Pair("bc", true)));
}

TEST_F(LineSplitter, PutsPiecesOfALineTogether) {
  add("a");
  add("b");
  EXPECT_THAT(take(), IsEmpty());
  add("c\n");
  EXPECT_THAT(take(), ElementsAre(Pair("abc", true)));
}

TEST_F(LineSplitter, GivesTheUnfinishedLineAtTheEndOnce) {
  add("a\nb");
  finish();
  EXPECT_THAT(take(), ElementsAre(Pair("a", true), Pair("b", false)));
  finish();
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(LineSplitter, GivesOverlongLinesInPiecesOfTheLongestLength) {
  const std::string piece(longest_output_line, 'x');
  add(piece + piece + "y\nz\n");
  EXPECT_THAT(take(), ElementsAre(Pair(piece, false), Pair(piece, false), Pair("y", true), Pair("z", true)));
}

TEST_F(LineSplitter, KeepsALineOfTheLongestLengthWhole) {
  const std::string line(longest_output_line, 'x');
  add(line + "\na\n");
  EXPECT_THAT(take(), ElementsAre(Pair(line, true), Pair("a", true)));
  add(line);
  add("\n");
  EXPECT_THAT(take(), ElementsAre(Pair(line, true)));
}

TEST(LastLines, KeepsTheLastOnly) {
  detail::last_lines lines;
  for (int each = 0; each < 100; ++each) lines.add(std::to_string(each));
  const auto kept = lines.take();
  EXPECT_TRUE(kept.starts_with("80\n81\n")) << kept;
  EXPECT_TRUE(kept.ends_with("98\n99\n")) << kept;
  EXPECT_EQ(lines.take(), "");
}

TEST(LastLines, StaysWithinItsBytes) {
  detail::last_lines lines;
  lines.add("first");
  lines.add(std::string(longest_output_line, 'x'));
  EXPECT_EQ(lines.take(), std::string(detail::last_lines::most_bytes - 1, 'x') + '\n');
  lines.add(std::string(3000, 'a'));
  lines.add(std::string(3000, 'b'));
  EXPECT_EQ(lines.take(), std::string(3000, 'b') + '\n');
}

}  // namespace
}  // namespace muster::line_splitter_test
