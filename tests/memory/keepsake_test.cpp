// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/keepsake.hpp>

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
  keepsake_list all;
  bool first = false;
  bool second = true;
  int ended = 0;
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
