// SPDX-License-Identifier: BSL-1.0
// Processes that allocate and lend are killed at random instructions; the host recovers, and nothing is lost or
// doubled.
#include <csignal>
#include <random>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/memory/domain.hpp>

#include "processes.hpp"
#include "seed.hpp"

namespace muster::arena_kill_test {
namespace {

unique_fd duplicate(const unique_fd& file) { return unique_fd(::dup(file.get())); }

// A participant that allocates, writes, releases and lends without end.
int churn(const domain_files& files, participant_id self, std::atomic<std::uint64_t>& handed, unsigned seed) {
  domain joined({.control = duplicate(files.control), .arena = duplicate(files.arena)}, self);
  std::minstd_rand random(seed);
  std::vector<block> kept;
  for (;;) {
    kept.push_back(joined.blocks().allocate(1 + random() % 100000));
    kept.back().bytes()[0] = std::byte{1};
    if (handed.load() == 0) {
      const auto ref = kept.back().lend();
      handed.store(std::uint64_t{ref.descriptor} << 32U | ref.generation);
      kept.pop_back();
    }
    if (kept.size() > 8) kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(random() % kept.size()));
  }
}

TEST(ArenaKill, KilledParticipantsLeaveNothingBehind) {
  domain host({.arena_bytes = std::size_t{256} << 20U, .max_participants = 8, .inherited = true});
  const test::shared<std::atomic<std::uint64_t>> handed;
  std::vector<participant_id> ids = {host.participants().enrol(), host.participants().enrol()};
  std::minstd_rand random(test::seed());
  // In the child, whose copy stands where ours stood at the fork.
  const auto run = [&](std::size_t rank) {
    return churn(host.files(), ids[rank], *handed, static_cast<unsigned>(random() + rank));
  };
  const auto ranks = test::spawn(ids.size(), run);
  std::vector<block> adopted;
  constexpr int deaths = 300;
  for (int death = 0; death < deaths; ++death) {
    for (std::size_t takes = random() % 200; takes > 0; --takes) {
      const auto word = handed->exchange(0);
      if (word == 0) continue;
      try {
        adopted.push_back(host.blocks().adopt({.descriptor = static_cast<std::uint32_t>(word >> 32U),
                                               .generation = static_cast<std::uint32_t>(word),
                                               .size_bytes = block_ref::whole}));
      } catch (const error&) {
        continue;  // its lender died, and its recovery was faster than we
      }
      adopted.back().bytes()[0] = std::byte{2};
      if (adopted.size() > 16) adopted.erase(adopted.begin());
    }
    const auto victim = random() % ids.size();
    ranks->kill(victim);
    ASSERT_EQ(ranks->wait(victim).signal(), SIGKILL);
    host.bury(ids[victim]);
    ids[victim] = host.participants().enrol();
    ranks->replace(victim, run);
  }
  for (std::size_t rank = 0; rank < ids.size(); ++rank) {
    ranks->kill(rank);
    static_cast<void>(ranks->wait(rank));
    host.bury(ids[rank]);
  }
  adopted.clear();
  const auto end = host.blocks().read_statistics();
  EXPECT_EQ(end.live_blocks, 0U);
  EXPECT_EQ(end.held_bytes, end.cached_bytes);
  EXPECT_EQ(host.participants().count(), 1U);
}

}  // namespace
}  // namespace muster::arena_kill_test
