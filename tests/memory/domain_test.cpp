// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/domain.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/detail/futex.hpp>
#include <muster/base/error.hpp>
#include <muster/base/memfd.hpp>
#include <muster/base/memory_budget.hpp>

#include "held_up_call.hpp"
#include "memory_map.hpp"
#include "processes.hpp"
#include "refused_calls.hpp"

namespace muster::domain_test {
namespace {

unique_fd duplicate(const unique_fd& file) { return unique_fd(::dup(file.get())); }
domain_files copy_of(const domain_files& files) {
  return {.control = duplicate(files.control), .arena = duplicate(files.arena)};
}

TEST(Domain, AProcessThatJoinsSeesTheHostsBlocks) {
  domain host({.arena_bytes = std::size_t{8} << 20U, .inherited = true});
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
  domain host({.arena_bytes = std::size_t{8} << 20U, .inherited = true});
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

// The host has never looked at it: it has to open its part of the arena now.
TEST(Domain, WhatADeadParticipantHeldCanBeUsedAgainByTheHost) {
  domain host({.arena_bytes = std::size_t{512} << 20U, .inherited = true});
  const auto id = host.participants().enrol();
  const std::size_t bytes = std::size_t{40} << 20U;
  const auto ranks = test::spawn(1, [&](std::size_t) {
    domain guest(copy_of(host.files()), id);
    const auto held = guest.blocks().allocate_shared(bytes);
    static_cast<void>(guest.blocks().name_of(held));
    ::_exit(0);  // holding it
    return 1;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
  host.bury(id);
  const auto again = host.blocks().allocate_shared(bytes);
  std::memset(again.data(), 7, bytes);
  EXPECT_EQ(again.data()[bytes - 1], std::byte{7});
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
  EXPECT_THROW(domain({.max_blocks = std::size_t{1} << 32U}), error);
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

TEST(Domain, ItsFilesCanNeitherShrinkNorGrowNorBeUnsealed) {
  const domain shared({.arena_bytes = std::size_t{1} << 20U});
  for (const auto* file : {&shared.files().control, &shared.files().arena}) {
    EXPECT_EQ(::fcntl(file->get(), F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
              F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  }
}

TEST(Domain, NobodyMapsItForDumpsOrForForkedChildren) {
  domain host({.arena_bytes = std::size_t{1} << 20U});
  const auto id = host.participants().enrol();
  const domain guest(copy_of(host.files()), id);
  for (const auto* name : {"memfd:muster-control", "memfd:muster-arena"}) {
    const auto flags = test::flags_of_mappings(name);
    EXPECT_GE(flags.size(), 2U);  // the host's and the guest's, each with a part that has not been opened
    EXPECT_THAT(flags, testing::Each(testing::AllOf(testing::HasSubstr(" dd "), testing::HasSubstr(" dc "))));
  }
}

// Why the file need not grow: it has its full size, but what nobody has touched takes no memory.
TEST(Domain, MemoryThatNobodyHasTouchedTakesNone) {
  domain shared({.arena_bytes = std::size_t{64} << 30U});
  const auto used_bytes = [&] {
    struct stat found{};
    EXPECT_EQ(::fstat(shared.files().arena.get(), &found), 0);
    EXPECT_EQ(found.st_size, off_t{64} << 30U);
    return static_cast<std::size_t>(found.st_blocks) * 512;
  };
  EXPECT_EQ(used_bytes(), 0U);
  {
    const auto touched = shared.blocks().allocate_shared(3 * extent_bytes);
    std::memset(touched.data(), 1, touched.size());
    EXPECT_EQ(used_bytes(), 3 * extent_bytes);
  }
}

std::size_t used_bytes_of(const domain& which) {
  struct stat found{};
  EXPECT_EQ(::fstat(which.files().arena.get(), &found), 0);
  return static_cast<std::size_t>(found.st_blocks) * 512;
}

// What such a machine does not have it says by SIGBUS, when a page is touched.
TEST(Domain, ItsTablesHavePagesFromTheStartWhereTheKernelNeverOvercommits) {
  const auto untouched_bytes = [](const domain& which) {
    struct stat found{};
    EXPECT_EQ(::fstat(which.files().control.get(), &found), 0);
    return found.st_size - off_t{found.st_blocks} * 512;
  };
  constexpr std::size_t bytes = std::size_t{64} << 20U;
  EXPECT_EQ(untouched_bytes(domain({.arena_bytes = bytes, .populates = true})), 0);
  EXPECT_GT(untouched_bytes(domain({.arena_bytes = bytes, .populates = false})), 0);
  const test::refused_calls scope("fallocate", ENOSPC);
  EXPECT_THROW(domain({.arena_bytes = bytes, .populates = true}), error);
}

TEST(Domain, WhatIsPrefaultedIsThereAndIsGivenOutFirst) {
  constexpr std::size_t some = std::size_t{8} << 20U;
  domain shared({.arena_bytes = std::size_t{64} << 20U, .prefault_bytes = some});
  EXPECT_EQ(used_bytes_of(shared), some);
  const auto made = shared.blocks().allocate_shared(some);
  std::memset(made.data(), 1, made.size());
  EXPECT_EQ(used_bytes_of(shared), some);
}

TEST(Domain, PrefaultingMoreThanThereIsIsRefusedBeforeAnythingIsTouched) {
  try {
    const domain shared({.arena_bytes = std::size_t{1} << 20U, .prefault_bytes = std::size_t{2} << 20U});
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_THAT(refused.what(), testing::AllOf(testing::HasSubstr("2.0 MiB"), testing::HasSubstr("1.0 MiB")));
  }
  const auto budget = available_memory();
  try {
    const domain shared({.arena_bytes = 2 * budget.limit_bytes, .prefault_bytes = 3 * (budget.limit_bytes / 2)});
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::out_of_memory);
    EXPECT_THAT(refused.what(), testing::HasSubstr("are available"));
  }
}

// Bytes of mappings of the arena that are mapped by huge pages.
std::size_t mapped_huge() {
  std::ifstream lines("/proc/self/smaps");
  std::size_t kibibytes = 0;
  bool is_it = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find('-') < line.find(' ')) is_it = line.find("memfd:muster-arena") != std::string::npos;
    if (is_it && line.starts_with("ShmemPmdMapped:"))
      kibibytes += std::stoul(line.substr(line.find_first_of("0123456789")));
  }
  return kibibytes * 1024;
}

TEST(Domain, HugePagesAreUsedWhereTheKernelGivesThem) {
  constexpr std::size_t some = std::size_t{8} << 20U;
  domain shared({.arena_bytes = std::size_t{64} << 20U, .huge_pages = huge_pages::where_possible});
  const auto before = shared.blocks().allocate_shared(extent_bytes);
  const auto made = shared.blocks().allocate_shared(some);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made.data()) % (std::size_t{2} << 20U), 0U);
  std::memset(made.data(), 7, made.size());
  const auto id = shared.participants().enrol();
  domain guest(copy_of(shared.files()), id);
  EXPECT_EQ(guest.blocks().borrow(shared.blocks().name_of(made)).bytes()[some - 1], std::byte{7});
  const auto huge = shared.blocks().read_statistics().huge_bytes;
  if (huge == 0) GTEST_SKIP() << "this kernel gives no huge pages for shared memory (MADV_COLLAPSE, from 6.1 on)";
  EXPECT_EQ(huge, some);
  EXPECT_GT(mapped_huge(), 0U);
}

TEST(Domain, PagesAreSmallUnlessAskedOtherwise) {
  domain shared({.arena_bytes = std::size_t{64} << 20U});
  const auto made = shared.blocks().allocate_shared(std::size_t{8} << 20U);
  EXPECT_EQ(shared.blocks().read_statistics().huge_bytes, 0U);
}

TEST(Domain, WhatWasMadeOfHugePagesIsGivenBackToo) {
  domain shared({.arena_bytes = std::size_t{64} << 20U, .huge_pages = huge_pages::where_possible});
  static_cast<void>(shared.blocks().allocate_shared(std::size_t{32} << 20U));  // more than is cached
  EXPECT_EQ(shared.blocks().read_statistics().cached_bytes, 0U);
  EXPECT_EQ(used_bytes_of(shared), 0U);
}

TEST(Domain, OfTheDefaultSizeItKeepsToTheLimitOfFiles) {
  const auto ranks = test::spawn(1, [&](std::size_t) {
    const rlimit small{.rlim_cur = rlim_t{33} << 20U, .rlim_max = rlim_t{33} << 20U};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) return 2;
    domain shared({});
    if (shared.blocks().size_bytes() != small.rlim_cur) return 3;
    const auto all = shared.blocks().allocate(std::size_t{32} << 20U);
    std::memset(all.data(), 1, all.size());
    return 0;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
}

TEST(Domain, ABlockTellsItsDomainUnlessThatIsSomebodysLocalObject) {
  const auto shared = std::make_shared<domain>(domain_options{.arena_bytes = std::size_t{1} << 20U});
  EXPECT_EQ(domain::of(shared->blocks().allocate_shared(1)), shared);
  domain local({.arena_bytes = std::size_t{1} << 20U});
  EXPECT_EQ(domain::of(local.blocks().allocate_shared(1)), nullptr);
  EXPECT_EQ(domain::of(shared_block()), nullptr);
}

TEST(Domain, AChildThatIsForkedWhileAnotherThreadMakesTheProgramsGetsOneOfItsOwn) {
  constexpr domain_options small{.arena_bytes = std::size_t{1} << 20U};
  const test::held_up_call scope("ftruncate");
  auto made = std::async(std::launch::async, [&] { return domain::of_program(small); });
  scope.wait();
  const auto ranks = test::spawn(1, [&](std::size_t) {
    ::alarm(60);  // it might wait for a thread that it does not have
    const auto own = domain::of_program(small);
    return domain::entered() == nullptr && domain::of_program(small) == own && own->blocks().allocate(1000) ? 0 : 1;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
  scope.let_go();
  EXPECT_EQ(domain::of_program(small), made.get());
}

TEST(Domain, AForkedChildHasNoPartInItsParents) {
  constexpr domain_options small{.arena_bytes = std::size_t{1} << 20U};
  const auto parents = domain::of_program(small);
  const auto ranks =
      test::spawn(1, [&](std::size_t) { return domain::of_program(small) != parents && !domain::entered() ? 0 : 1; });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
  EXPECT_EQ(domain::of_program(small), parents);
}

TEST(Domain, BuryingWakesWhoSleepsOnDeaths) {
  domain host({.arena_bytes = std::size_t{8} << 20U, .inherited = true});
  const auto sleeper = host.participants().enrol();
  const auto ranks = test::spawn(1, [&](std::size_t) {
    const domain guest(copy_of(host.files()), sleeper);
    while (guest.deaths() == 0) futex_wait(futex_address(guest.deaths()), 0, futex_scope::shared);
    return 0;
  });
  host.bury(host.participants().enrol());
  EXPECT_TRUE(ranks->wait(0).success());
}

TEST(Domain, BuryingRunsTheRegisteredRecoveries) {
  domain host({.arena_bytes = std::size_t{1} << 20U});
  participant_id told{};
  const auto entry = host.recoveries().add(recovery_stage::boards, [&](participant_id who) { told = who; });
  const auto id = host.participants().enrol();
  host.bury(id);
  EXPECT_EQ(told, id);
}

}  // namespace
}  // namespace muster::domain_test
