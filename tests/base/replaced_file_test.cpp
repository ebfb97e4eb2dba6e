// SPDX-License-Identifier: BSL-1.0
#include <muster/base/replaced_file.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>

#include "refused_calls.hpp"
#include "temporary_directory.hpp"

namespace muster::replaced_file_test {
namespace {

using detail::replaced_file;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(replaced_file& file, const std::string& what) { file.write(std::as_bytes(std::span(what))); }

std::ptrdiff_t count_in(const std::filesystem::path& directory) {
  return std::distance(std::filesystem::directory_iterator(directory), {});
}

class ReplacedFile : public testing::Test {
protected:
  void replace(const std::string& by) const {
    replaced_file file(path_);
    write(file, by);
    file.commit();
  }

  test::temporary_directory where_;
  std::string path_ = where_.path() / "file";
};

TEST_F(ReplacedFile, IsThereWhenItIsCommittedAndNotBefore) {
  replace("old");
  replaced_file file(path_);
  write(file, "ne");
  write(file, "w");
  EXPECT_EQ(content_of(path_), "old");
  file.commit();
  EXPECT_EQ(content_of(path_), "new");
  EXPECT_EQ(count_in(where_.path()), 1);
}

TEST_F(ReplacedFile, LeavesNothingWhereItIsNotCommitted) {
  {
    replaced_file file(path_);
    write(file, "new");
    EXPECT_EQ(count_in(where_.path()), 1) << "beside it";
  }
  EXPECT_EQ(count_in(where_.path()), 0);
}

TEST_F(ReplacedFile, SaysWhichFileCouldNotBeWritten) {
  try {
    replaced_file file((where_.path() / "missing" / "file").string());
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), std::error_code(ENOENT, std::system_category()));
    EXPECT_NE(std::string(failure.what()).find("missing"), std::string::npos) << failure.what();
  }
}

TEST_F(ReplacedFile, ThatCannotBeWrittenOrFlushedOrRenamedLeavesTheOldOne) {
  replace("old");
  for (const auto* const call : {"write", "fsync", "rename"}) {
    const test::refused_calls none(call, ENOSPC, 1);
    EXPECT_THROW(replace("new"), error) << call;
    EXPECT_EQ(content_of(path_), "old") << call;
    EXPECT_EQ(count_in(where_.path()), 1) << call;
  }
}

TEST_F(ReplacedFile, TwoOfOnePathAreOneAfterTheOther) {
  replaced_file first(path_);
  replaced_file second(path_);
  write(second, "second");
  write(first, "first");
  second.commit();
  first.commit();
  EXPECT_EQ(content_of(path_), "first");
  EXPECT_EQ(count_in(where_.path()), 1);
}

}  // namespace
}  // namespace muster::replaced_file_test
