// SPDX-License-Identifier: BSL-1.0
// The corpus example: its parts, and the program on a real tree: serial, in workers, and with workers killed.
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpus/examine.hpp"
#include "corpus/summary.hpp"
#include "corpus/walk.hpp"
#include "temporary_directory.hpp"

namespace corpus {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class Corpus : public testing::Test {
protected:
  std::string write(const std::string& name, const std::string& text) {
    files_.write(name, text);
    return name_of(name);
  }
  [[nodiscard]] std::string name_of(const std::string& name) const { return (files_.path() / name).string(); }

  struct output {
    int status = 0;
    std::string text;
  };
  static output run(const std::string& arguments) {
    output found;
    std::FILE* pipe = ::popen((CORPUS_PROGRAM " " + arguments + " 2>&1").c_str(), "r");
    std::array<char, 4096> buffer{};
    while (const auto size = std::fread(buffer.data(), 1, buffer.size(), pipe)) found.text.append(buffer.data(), size);
    found.status = WEXITSTATUS(::pclose(pipe));
    return found;
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream in(name_of(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  muster::test::temporary_directory files_;
};

TEST_F(Corpus, CountsLinesWordsAndBytes) {
  const auto facts = examine(write("a", "One two,\ntwo THREE_3 ÿ\nno newline"));
  EXPECT_EQ(facts.what, file_facts::kind::text);
  EXPECT_EQ(facts.bytes, 34U);
  EXPECT_EQ(facts.lines, 2U);
  EXPECT_EQ(facts.words, 7U);
  EXPECT_THAT(facts.counts, ElementsAre(Pair("two", 2), Pair("newline", 1), Pair("no", 1), Pair("one", 1),
                                        Pair("three_3", 1), Pair("ÿ", 1)));
}

TEST_F(Corpus, AWordAcrossTwoPiecesOfAFileIsOne) {
  const auto facts = examine(write("a", std::string((std::size_t{1} << 18U) - 2, ' ') + "word"));
  EXPECT_THAT(facts.counts, ElementsAre(Pair("word", 1)));
}

TEST_F(Corpus, VeryLongWordsAreWordsButNotListed) {
  const auto facts = examine(write("a", std::string(65, 'x') + ' ' + std::string(64, 'y')));
  EXPECT_EQ(facts.words, 2U);
  EXPECT_THAT(facts.counts, ElementsAre(Pair(std::string(64, 'y'), 1)));
}

TEST_F(Corpus, AFileWithAZeroByteIsBinary) {
  const auto facts = examine(write("a", std::string("text\0text\n", 10)));
  EXPECT_EQ(facts.what, file_facts::kind::binary);
  EXPECT_EQ(facts.bytes, 10U);
  EXPECT_EQ(facts.lines, 0U);
  EXPECT_NE(facts.hash, 0U);
}

TEST_F(Corpus, UnreadableFilesSayWhy) {
  EXPECT_EQ(examine(name_of("absent")).reason, "No such file or directory");
  EXPECT_EQ(examine(files_.path().string()).reason, "Is a directory");
}

TEST_F(Corpus, EqualContentHasEqualHashes) {
  EXPECT_EQ(examine(write("a", "same")).hash, examine(write("b", "same")).hash);
  EXPECT_NE(examine(write("a", "same")).hash, examine(write("c", "Same")).hash);
}

TEST_F(Corpus, WalkListsRegularFilesOnceInOrder) {
  write("b/2", "");
  write("b/1", "");
  write("a", "");
  std::filesystem::create_symlink(name_of("b"), name_of("link"));
  ::mkfifo(name_of("pipe").c_str(), 0600);
  const std::string root = files_.path().string();
  const auto found = walk(std::array{root + "/", root + "/b", name_of("a")});
  EXPECT_THAT(found.files, ElementsAre(name_of("a"), name_of("b/1"), name_of("b/2")));
}

/// The directory in which the test runs, for as long as it lives.
class working_directory {
public:
  explicit working_directory(const std::filesystem::path& path) { std::filesystem::current_path(path); }
  working_directory(const working_directory&) = delete;
  working_directory& operator=(const working_directory&) = delete;
  ~working_directory() { std::filesystem::current_path(before_); }

private:
  const std::filesystem::path before_ = std::filesystem::current_path();
};

TEST_F(Corpus, WalkListsAFileOnceHoweverItsRootsAreNamedAndByTheFirst) {
  write("sub/x", "");
  std::filesystem::create_directory_symlink("sub", name_of("link"));
  const auto whole = files_.path().string();
  const working_directory here(files_.path());
  EXPECT_THAT(walk(std::array<std::string, 2>{".", "sub"}).files, ElementsAre("sub/x"));
  EXPECT_THAT(walk(std::array<std::string, 3>{"sub/x", "./sub//", whole}).files, ElementsAre("sub/x"));
  EXPECT_THAT(walk(std::array<std::string, 2>{whole, "sub"}).files, ElementsAre(whole + "/sub/x"));
  EXPECT_THAT(walk(std::array<std::string, 2>{"link", "sub"}).files, ElementsAre("link/x"));
}

std::string refusal_of(const std::string& root) {
  try {
    static_cast<void>(walk(std::array{root}));
  } catch (const std::runtime_error& refused) {
    return refused.what();
  }
  return "not refused";
}

TEST_F(Corpus, WalkRefusesARootThatIsNotThere) {
  EXPECT_EQ(refusal_of(name_of("absent")), "there is no file or directory " + name_of("absent"));
}

TEST_F(Corpus, WalkSaysWhyARootCannotBeLookedAt) {
  std::filesystem::create_symlink("itself", name_of("itself"));
  EXPECT_THAT(refusal_of(name_of("itself")),
              AllOf(HasSubstr(name_of("itself")), HasSubstr("Too many levels of symbolic links")));
}

TEST_F(Corpus, WalkRefusesARootThatIsNeitherADirectoryNorARegularFile) {
  ASSERT_EQ(::mkfifo(name_of("pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal_of(name_of("pipe")), HasSubstr(name_of("pipe") + " is neither a directory nor a regular file"));
}

TEST_F(Corpus, TheSummaryDoesNotDependOnTheOrder) {
  const auto a = write("a", "x x y");
  const auto b = write("b", "y y z");
  summary forth(2);
  forth.add(a, examine(a));
  forth.add(b, examine(b));
  summary back(2);
  back.add(b, examine(b));
  back.add(a, examine(a));
  EXPECT_EQ(forth.json(), back.json());
  EXPECT_THAT(forth.json(), HasSubstr("\"word\": \"y\",\n   \"count\": 3"));
}

TEST_F(Corpus, TheSummaryFindsDuplicatesAndSurvivesBytesThatAreNoText) {
  summary all(5);
  for (const auto* name : {"a", "b", "c"}) {
    const auto path = write(name, name[0] == 'c' ? "\xff\xfe other" : "same");
    all.add(path, examine(path));
  }
  all.add_failure("gone\xff", "No such file");
  EXPECT_THAT(all.json(), HasSubstr("\"paths\": [\n    \"" + name_of("a") + "\",\n    \"" + name_of("b") + "\"\n   ]"));
  EXPECT_THAT(all.table(), HasSubstr("2 x 4 bytes"));
  EXPECT_THAT(all.table(), HasSubstr("No such file"));
}

// ---- the program

TEST_F(Corpus, SerialPoolAndChaosGiveTheSameBytes) {
  const std::string tree = "/usr/include/c++ /usr/include/x86_64-linux-gnu /usr/share/common-licenses ";
  ASSERT_EQ(run(tree + "--workers 0 --json " + name_of("serial")).status, 0);
  ASSERT_EQ(run(tree + "--workers 2 --json " + name_of("pool")).status, 0);
  const auto chaos = run(tree + "--workers 3 --chaos --json " + name_of("chaos"));
  ASSERT_EQ(chaos.status, 0) << chaos.text;
  EXPECT_GT(content("serial").size(), 1000U);
  EXPECT_TRUE(content("serial") == content("pool"));
  EXPECT_TRUE(content("serial") == content("chaos"));
  EXPECT_THAT(chaos.text, testing::ContainsRegex("chaos: killed [1-9][0-9]* workers"));
  EXPECT_THAT(chaos.text, HasSubstr(" 0 lost"));
}

TEST_F(Corpus, CountsAndNamesWhatItCannotReadAndGoesOn) {
  write("tree/text", "words");
  write("tree/binary", std::string(10, '\0'));
  // Root may read everything, but nobody the memory at address 0.
  const auto found = run(name_of("tree") + " /proc/self/mem --workers 1");
  EXPECT_EQ(found.status, 0);
  EXPECT_THAT(found.text, testing::ContainsRegex("text +1\n +binary +1\n +unreadable +1\n"));
  EXPECT_THAT(found.text, HasSubstr("not counted:\n    " + name_of("tree/binary") + '\n'));
  EXPECT_THAT(found.text, HasSubstr("/proc/self/mem: Input/output error"));
}

TEST_F(Corpus, BadInputIsAnErrorThatSaysWhatToDo) {
  EXPECT_THAT(run("/absent/tree").text, HasSubstr("there is no file or directory /absent/tree"));
  EXPECT_NE(run("/absent/tree").status, 0);
  EXPECT_THAT(run("--workers 100000 /usr/share/common-licenses").text, HasSubstr("100000"));
  EXPECT_NE(run("--workers 100000 /usr/share/common-licenses").status, 0);
  EXPECT_NE(run("--workers -1").status, 0);
  EXPECT_NE(run("--workers 0 --chaos").status, 0);
  EXPECT_THAT(run("--json /absent/file /usr/share/common-licenses").text, HasSubstr("cannot write /absent/file"));
}

}  // namespace
}  // namespace corpus
