// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/keepsake.hpp>

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <muster/memory/domain.hpp>

namespace muster::keepsake_test {
namespace {

class remembrance final : public keepsake {
public:
  remembrance(const bool& done, int& ended) : done_(done), ended_(ended) {}
  ~remembrance() override { ++ended_; }
  [[nodiscard]] bool is_done() noexcept override { return done_; }

private:
  const bool& done_;
  int& ended_;
};

TEST(KeepsakeList, DestroysThoseThatAreDoneAndNoOthers) {
  bool first = false;
  bool second = true;
  int ended = 0;
  keepsake_list all;  // last: what it keeps refers to the others
  all.add(std::make_unique<remembrance>(first, ended));
  all.add(std::make_unique<remembrance>(second, ended));
  all.add(std::make_unique<remembrance>(second, ended));
  all.tidy();
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(all.size(), 1U);
  first = true;
  all.tidy();
  EXPECT_EQ(all.size(), 0U);
}

// 10 000 queues took 40 µs each to make, and as much to let go, because each asked all.
TEST(KeepsakeList, OfManyTheOneThatIsLetGoIsAskedAndFewOthers) {
  class counted final : public keepsake {
  public:
    counted(int& questions, const bool& done) : questions_(questions), done_(done) {}
    [[nodiscard]] bool is_done() noexcept override {
      ++questions_;
      return done_;
    }

  private:
    int& questions_;
    const bool& done_;
  };
  int questions = 0;
  std::vector<char> subjects(1000);
  const auto done = std::make_unique<bool[]>(subjects.size());
  keepsake_list all;
  for (std::size_t each = 0; each < subjects.size(); ++each) {
    all.add(std::make_unique<counted>(questions, done[each]), &subjects[each]);
  }
  for (std::size_t each = 1000; each-- > 0;) {
    done[each] = true;
    all.tidy_some(&subjects[each]);
    ASSERT_EQ(all.size(), each);
  }
  EXPECT_LE(questions, 17 * 1000);
}

TEST(KeepsakeList, OthersAreAskedInTurn) {
  bool first = false;
  bool second = false;
  int ended = 0;
  keepsake_list all;
  for (int each = 0; each < 100; ++each) all.add(std::make_unique<remembrance>(each == 99 ? second : first, ended));
  second = true;
  for (int each = 0; each < 7; ++each) all.tidy_some();
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(all.size(), 99U);
}

TEST(KeepsakeList, OneMayTidyItselfWhenItGoes) {
  class tidier final : public keepsake {
  public:
    explicit tidier(keepsake_list& list) : list_(list) {}
    ~tidier() override { list_.tidy(); }
    [[nodiscard]] bool is_done() noexcept override { return true; }

  private:
    keepsake_list& list_;
  };
  keepsake_list all;
  all.add(std::make_unique<tidier>(all));
  all.add(std::make_unique<tidier>(all));
  all.tidy();
  EXPECT_EQ(all.size(), 0U);
}

TEST(Domain, AsksItsKeepsakesAfterEachDeathAndDropsThemWithItself) {
  bool done = false;
  int ended = 0;
  {
    domain host({.arena_bytes = std::size_t{1} << 20U, .max_participants = 8});
    host.keepsakes().add(std::make_unique<remembrance>(done, ended));
    host.bury(host.participants().enrol());
    EXPECT_EQ(ended, 0);
    done = true;
    host.bury(host.participants().enrol());
    EXPECT_EQ(ended, 1);
    done = false;
    host.keepsakes().add(std::make_unique<remembrance>(done, ended));
  }
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace muster::keepsake_test
