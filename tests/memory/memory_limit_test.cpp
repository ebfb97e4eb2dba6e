// SPDX-License-Identifier: BSL-1.0
// Allocations in a control group with little memory, where the kernel answers what is too much by killing: nobody is
// ever killed, since what does not fit is refused before it is touched.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/detail/futex.hpp>
#include <muster/base/error.hpp>
#include <muster/base/memory_budget.hpp>
#include <muster/memory/domain.hpp>

#include "memory_group.hpp"
#include "processes.hpp"

namespace muster::memory_limit_test {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20U;
constexpr std::size_t reserve_bytes = 64 * mebibyte;  // that everybody leaves
constexpr std::size_t arena_bytes = 1024 * mebibyte;  // more than any group here has

/// Everybody waits here until all have come.
class meeting {
public:
  void arrive(std::uint32_t all) {
    const auto round = round_.load();
    if (come_.fetch_add(1) + 1 == all) {
      come_ = 0;
      ++round_;
      futex_wake(futex_address(round_), static_cast<int>(all), futex_scope::shared);
      return;
    }
    const auto patience = deadline::after(std::chrono::seconds(60));  // another may have been killed
    while (round_ == round) {
      if (!futex_wait(futex_address(round_), round, futex_scope::shared, patience)) throw std::runtime_error("alone");
    }
  }

private:
  std::atomic<std::uint32_t> come_ = 0;
  std::atomic<std::uint32_t> round_ = 0;
};

class MemoryLimit : public testing::Test {
protected:
  void SetUp() override {
    if (std::string_view(MUSTER_SANITIZER) != "") GTEST_SKIP() << "the sanitizer's own memory counts";
    if (!group_.why_not().empty()) GTEST_SKIP() << group_.why_not();
  }

  // Runs `what` in so many processes in a group with that much memory, and expects them to end by themselves.
  void run_within(std::size_t bytes, std::size_t processes, const test::processes::rank_function& what) {
    const test::limited_memory limit(group_, bytes);
    const auto ranks = test::spawn(processes, [&](std::size_t rank) {
      limit.enter();
      return what(rank);
    });
    for (std::size_t rank = 0; rank < processes; ++rank) EXPECT_EQ(ranks->wait(rank), exit_status::exited(0)) << rank;
    EXPECT_EQ(limit.kills(), 0U);
  }

  test::memory_group group_;
};

/// Blocks of one domain, until there is no memory for more.
class hoard {
public:
  explicit hoard(domain& of) : domain_(of) {}

  bool add(std::size_t bytes) {
    try {
      blocks_.push_back(domain_.blocks().allocate(bytes));
      bytes_ += bytes;
      return true;
    } catch (const error& refusal) {
      refused_ = refusal.code() == errc::out_of_memory;
      return false;
    }
  }
  void write_last() const { std::memset(blocks_.back().data(), 1, blocks_.back().size()); }
  void write_all() const {
    for (const auto& each : blocks_) std::memset(each.data(), 1, each.size());
  }
  void drop_all() { blocks_.clear(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] bool was_refused() const { return refused_; }

private:
  domain& domain_;
  std::vector<block> blocks_;
  std::size_t bytes_ = 0;
  bool refused_ = false;
};

TEST_F(MemoryLimit, WhoAllocatesAndWritesWithoutEndIsRefusedAndNotKilled) {
  run_within(256 * mebibyte, 1, [](std::size_t) {
    domain own({.arena_bytes = arena_bytes});
    for (const std::size_t bytes :
         {std::size_t{200}, std::size_t{16} << 10U, std::size_t{64} << 10U, mebibyte, 7 * mebibyte, 100 * mebibyte}) {
      hoard all(own);
      while (all.add(bytes)) all.write_last();
      if (!all.was_refused() || all.bytes() > 256 * mebibyte - reserve_bytes) return 1;
    }
    return 0;
  });
}

TEST_F(MemoryLimit, WhatIsWrittenLongAfterItWasClaimedIsThere) {
  run_within(256 * mebibyte, 1, [](std::size_t) {
    domain own({.arena_bytes = arena_bytes});
    hoard all(own);
    while (all.add(mebibyte / 2)) continue;
    if (!all.was_refused() || all.bytes() > 256 * mebibyte - reserve_bytes) return 1;
    all.write_all();
    return 0;
  });
}

unique_fd duplicate(const unique_fd& file) { return unique_fd(::dup(file.get())); }

// A domain of two processes, whose host looks on.
struct pair {
  pair() : ids{host.participants().enrol(), host.participants().enrol()} {}

  [[nodiscard]] std::unique_ptr<domain> join(std::size_t rank) const {
    return std::make_unique<domain>(
        domain_files{.control = duplicate(host.files().control), .arena = duplicate(host.files().arena)}, ids[rank]);
  }

  domain host{{.arena_bytes = arena_bytes, .max_participants = 8, .inherited = true}};
  participant_id ids[2];
  const test::shared<meeting> together;
};

TEST_F(MemoryLimit, TwoProcessesThatClaimAtOnceAndWriteLaterHaveRoom) {
  const pair both;
  const test::shared<std::atomic<std::size_t>> claimed;
  run_within(256 * mebibyte, 2, [&](std::size_t rank) {
    const auto own = both.join(rank);
    hoard all(*own);
    both.together->arrive(2);
    while (all.add(mebibyte / 2)) continue;
    *claimed += all.bytes();
    both.together->arrive(2);
    all.write_all();
    return *claimed <= 256 * mebibyte - reserve_bytes ? 0 : 1;
  });
}

// Whoever was admitted touches all of it at once, so two that were admitted together would be too much.
TEST_F(MemoryLimit, OfTwoProcessesThatAskForMostOfItAtOnceAtMostOneGetsIt) {
  constexpr std::size_t most = 150 * mebibyte;
  const pair both;
  const test::shared<std::atomic<unsigned>> winners;
  const test::shared<std::atomic<unsigned>> all_winners;
  run_within(reserve_bytes + most + most / 2, 2, [&](std::size_t rank) {
    const auto own = both.join(rank);
    for (int round = 0; round < 20; ++round) {
      hoard mine(*own);
      both.together->arrive(2);
      if (mine.add(most)) ++*winners;
      both.together->arrive(2);
      if (*winners > 1) return 1;
      mine.drop_all();
      both.together->arrive(2);
      if (rank == 0) *all_winners += winners->exchange(0);
      both.together->arrive(2);
    }
    const bool has_room = available_memory().available_bytes > most + reserve_bytes + mebibyte;
    return rank == 1 || !has_room || hoard(*own).add(most) ? 0 : 2;  // alone
  });
  std::printf("%u of 20 times one got it\n", all_winners->load());
}

TEST_F(MemoryLimit, TwoDomainsOfOneProcessAreNotPromisedTheSameMemory) {
  run_within(256 * mebibyte, 1, [](std::size_t) {
    domain one({.arena_bytes = arena_bytes});
    domain another({.arena_bytes = arena_bytes});
    hoard ones(one);
    hoard anothers(another);
    for (bool more = true; more;) {
      more = ones.add(mebibyte / 2);
      more = anothers.add(mebibyte / 2) || more;
    }
    if (ones.bytes() + anothers.bytes() > 256 * mebibyte - reserve_bytes) return 1;
    ones.write_all();
    anothers.write_all();
    return 0;
  });
}

}  // namespace
}  // namespace muster::memory_limit_test
