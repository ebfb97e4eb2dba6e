// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/wait/outlook.hpp>

#include <array>
#include <thread>

#include <gtest/gtest.h>

#include <muster/base/cpu_list.hpp>

namespace muster::outlook_test {
namespace {

// Three workers, told to be here or elsewhere, as seen by a thread that is bound to one processor.
class Outlook : public testing::Test {
protected:
  Outlook() : bound_({allowed_cpus().front()}), here_(current_cpu() + 1) {}

  [[nodiscard]] prospect of_any() {
    return outlook::of_any(idle_set(looking_), idle_set(sleeping_), places_.size(),
                           [this](std::size_t worker) -> const place_word& { return places_[worker]; });
  }
  [[nodiscard]] prospect of_many() {
    return outlook::of_many(idle_set(sleeping_), places_.size(),
                            [this](std::size_t worker) -> const place_word& { return places_[worker]; });
  }

  const affinity_scope bound_;
  const std::uint32_t here_;
  std::array<place_word, 3> places_{};
  std::array<std::atomic<std::uint64_t>, 1> looking_{};
  std::array<std::atomic<std::uint64_t>, 1> sleeping_{};
};

TEST_F(Outlook, IsThatOfTheWorkerThatLooks) {
  places_[0] = here_;
  places_[1] = here_ + 1;
  looking_[0] = 2;
  EXPECT_EQ(of_any(), prospect::usual);
  looking_[0] = 1;
  EXPECT_EQ(of_any(), prospect::futile);
}

TEST_F(Outlook, IsFutileWhereAllThatAreAwakeAreHere) {
  places_[0] = places_[1] = here_;
  places_[2] = here_ + 1;
  EXPECT_EQ(of_any(), prospect::usual);
  sleeping_[0] = 4;
  EXPECT_EQ(of_any(), prospect::futile);
}

TEST_F(Outlook, IsShortWhereAWorkerIsBeingWoken) {
  sleeping_[0] = 7;
  EXPECT_EQ(of_any(), prospect::woken);
  places_[1] = here_ + 1;
  note_woken(places_[1]);
  sleeping_[0] = 5;
  EXPECT_EQ(of_any(), prospect::woken);
}

TEST_F(Outlook, OfManyIsFutileWhereOneThatIsAwakeIsHere) {
  places_[0] = here_;
  places_[1] = places_[2] = here_ + 1;
  EXPECT_EQ(of_many(), prospect::futile);
  sleeping_[0] = 1;
  EXPECT_EQ(of_many(), prospect::usual);
}

TEST_F(Outlook, OfOthersDoesNotCountTheWorkerThatWaits) {
  const auto of_others = [&](std::size_t self) {
    return outlook::of_others(idle_set(sleeping_), 3, self,
                              [&](std::size_t worker) -> const place_word& { return places_[worker]; });
  };
  places_[0] = places_[1] = here_;
  places_[2] = here_ + 1;
  EXPECT_EQ(of_others(0), prospect::usual);
  sleeping_[0] = 4;
  EXPECT_EQ(of_others(0), prospect::futile);
  sleeping_[0] = 6;
  EXPECT_EQ(of_others(0), prospect::usual) << "all others sleep: the parent is to act";
}

TEST_F(Outlook, NobodyBeyondTheWorkersIsAsked) {
  looking_[0] = std::uint64_t{1} << 60U;  // somebody has overwritten the set
  places_[0] = places_[1] = places_[2] = here_;
  EXPECT_EQ(of_any(), prospect::futile);
}

}  // namespace
}  // namespace muster::outlook_test
