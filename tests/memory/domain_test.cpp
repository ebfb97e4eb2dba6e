// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/domain.hpp>

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/base/memfd.hpp>

#include "processes.hpp"

namespace muster {
namespace {

unique_fd duplicate(const unique_fd& file) { return unique_fd(::dup(file.get())); }
domain_files copy_of(const domain_files& files) {
  return {.control = duplicate(files.control), .arena = duplicate(files.arena)};
}

TEST(Domain, AProcessThatJoinsSeesTheHostsBlocks) {
  domain host({.arena_bytes = std::size_t{8} << 20U});
  const auto sent = host.blocks().allocate(100000);
  std::memset(sent.data(), 42, sent.size());
  const auto id = host.participants().enrol();
  const auto ranks = test::spawn(1, [&](std::size_t) {
    domain guest(copy_of(host.files()), id);
    const auto seen = guest.blocks().view(sent.ref());
    return seen.size() == 100000 && seen[99999] == std::byte{42} ? 0 : 1;
  });
  EXPECT_TRUE(ranks->wait(0).success());
  host.bury(id);
}

TEST(Domain, ABlockLentByAProcessOutlivesIt) {
  domain host({.arena_bytes = std::size_t{8} << 20U});
  const auto id = host.participants().enrol();
  const test::shared<block_ref> ref;
  const auto ranks = test::spawn(1, [&](std::size_t) {
    domain guest(copy_of(host.files()), id);
    auto made = guest.blocks().allocate(50000);
    std::memset(made.data(), 7, made.size());
    *ref = made.lend();
    return 0;
  });
  ASSERT_TRUE(ranks->wait(0).success());
  const auto adopted = host.blocks().adopt(*ref);
  host.bury(id);
  EXPECT_EQ(adopted.bytes()[49999], std::byte{7});
}

TEST(Domain, ForeignFilesAreRefused) {
  domain_files files{.control = make_memfd("other", 4096), .arena = make_memfd("other", 4096)};
  try {
    const domain guest(std::move(files), participant_id{2});
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::corrupted);
  }
}

TEST(Domain, ImpossibleOptionsAreRefusedWithTheirRange) {
  EXPECT_THROW(domain({.max_participants = 1}), error);
  EXPECT_THROW(domain({.max_participants = 70000}), error);
  EXPECT_THROW(domain({.max_blocks = 0}), error);
  try {
    const domain shared({.arena_bytes = std::size_t{1} << 50U});
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    EXPECT_THAT(failure.what(), testing::HasSubstr("64 TiB"));
  }
}

TEST(Domain, TheDefaultArenaIsNoLargerThanTheMachine) {
  domain shared({});
  EXPECT_GT(shared.blocks().size_bytes(), std::size_t{64} << 20U);
}

TEST(Domain, BuryingRunsTheRegisteredRecoveries) {
  domain host({.arena_bytes = std::size_t{1} << 20U});
  participant_id told{};
  const auto entry = host.recoveries().add(recovery_stage::slots, [&](participant_id who) { told = who; });
  const auto id = host.participants().enrol();
  host.bury(id);
  EXPECT_EQ(told, id);
}

}  // namespace
}  // namespace muster
