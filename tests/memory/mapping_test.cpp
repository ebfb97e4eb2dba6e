// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/mapping.hpp>

#include <sys/mman.h>
#include <sys/resource.h>

#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/base/memfd.hpp>

#include "memory_map.hpp"
#include "processes.hpp"

namespace muster::mapping_test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

// Of this process, in all.
std::size_t mapped_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  file >> pages;
  return pages * 4096;
}

TEST(Mapping, SeesWhatAnotherMappingOfTheFileWrites) {
  const auto file = make_memfd("test", 4096);
  const mapping one(file, 4096, mapping::inherit::yes);
  const mapping other(file, 4096, mapping::inherit::yes);
  one.bytes()[100] = std::byte{7};
  EXPECT_EQ(other.bytes()[100], std::byte{7});
}

TEST(Mapping, BeginsWhereItIsToAndLeavesNothingAround) {
  constexpr std::size_t alignment = std::size_t{2} << 20U;
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{4096}, std::size_t{5'000}, alignment, 3 * alignment + 1}) {
    const auto file = make_memfd("muster-aligned-test", bytes);
    const std::size_t before = mapped_bytes();
    {
      const mapping memory(file, bytes, mapping::inherit::yes, alignment);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.bytes().data()) % alignment, 0U);
      EXPECT_EQ(memory.bytes().size(), bytes);
      memory.bytes()[bytes - 1] = std::byte{7};
      if (!sanitized) {
        EXPECT_EQ(mapped_bytes(), before + (bytes + 4095) / 4096 * 4096);
      }
    }
    if (!sanitized) {
      EXPECT_EQ(mapped_bytes(), before);
    }
  }
}

TEST(Mapping, IsOpenedAsItIsUsedByThreadsThatDoNotWaitForOneAnother) {
  constexpr std::size_t bytes = std::size_t{64} << 20U;
  for (int round = 0; round < 200; ++round) {
    const auto file = make_memfd("test", bytes);
    const mapping memory(file, bytes, mapping::inherit::no, std::size_t{2} << 20U, mapping::opened::nothing);
    const auto use = [&](std::size_t from) {
      for (std::size_t at = from; at < bytes; at += std::size_t{1} << 20U) {
        memory.open(at + 1);
        memory.bytes()[at] = std::byte{7};
      }
    };
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < 4; ++thread) threads.emplace_back(use, thread * 4096);
  }
}

TEST(Mapping, IsNotInheritedWhenAskedSo) {
  const auto file = make_memfd("test", 4096);
  const mapping memory(file, 4096, mapping::inherit::no);
  const auto ranks = test::spawn(1, [&](std::size_t) {
    memory.bytes()[0] = std::byte{1};  // not there: SIGSEGV
    return 0;
  });
  EXPECT_FALSE(ranks->wait(0).success());
}

// At that very address, which nobody has; nullptr if somebody does.
std::byte* page_of_its_own(const std::byte* at) {
  auto* const made = ::mmap(const_cast<std::byte*>(at), 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  return made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made);
}

/// Whether what a forked child has mapped in place of `memory` is still there after `end`: else SIGSEGV.
exit_status keeps_its_page(const mapping& memory, const std::function<void()>& end) {
  return test::spawn(1,
                     [&](std::size_t) {
                       auto* const own = page_of_its_own(memory.bytes().data());
                       if (own == nullptr) return 1;
                       *own = std::byte{7};
                       end();
                       return *own == std::byte{7} ? 0 : 2;
                     })
      ->wait(0);
}

TEST(Mapping, AForkedChildThatDropsOneItDoesNotSeeKeepsWhatItHasMappedThere) {
  const auto file = make_memfd("test", 4096);
  std::optional<mapping> memory(std::in_place, file, 4096, mapping::inherit::no);
  EXPECT_EQ(keeps_its_page(*memory, [&] { memory.reset(); }), exit_status::exited(0));
  EXPECT_EQ(keeps_its_page(*memory, [&] { *memory = mapping(); }), exit_status::exited(0));
  EXPECT_EQ(keeps_its_page(*memory, [&] { const mapping other(std::move(*memory)); }), exit_status::exited(0));
}

TEST(Mapping, OneThatAForkedChildPutsInThePlaceOfItsParentsIsTheChilds) {
  const auto file = make_memfd("test", 4096);
  mapping memory(file, 4096, mapping::inherit::no);
  const auto ranks = test::spawn(1, [&](std::size_t) {
    memory = mapping(file, 4096, mapping::inherit::no);
    const auto* const at = memory.bytes().data();
    memory = mapping();
    return page_of_its_own(at) != nullptr ? 0 : 1;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
}

TEST(Mapping, AForkedChildThatDropsOneItHasInheritedUnmapsIt) {
  const auto file = make_memfd("test", 4096);
  std::optional<mapping> memory(std::in_place, file, 4096, mapping::inherit::yes);
  const auto ranks = test::spawn(1, [&](std::size_t) {
    const auto* const at = memory->bytes().data();
    memory.reset();
    return page_of_its_own(at) != nullptr ? 0 : 1;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
}

TEST(Mapping, IsNotDumpedAndToldApartByWhetherChildrenHaveIt) {
  const auto file = make_memfd("muster-mapping-test", 4096);
  const mapping inherited(file, 4096, mapping::inherit::yes);
  EXPECT_THAT(
      test::flags_of_mappings("muster-mapping-test"),
      testing::ElementsAre(testing::AllOf(testing::HasSubstr(" dd "), testing::Not(testing::HasSubstr(" dc ")))));
  const auto other = make_memfd("muster-other-test", 4096);
  const mapping kept(other, 4096, mapping::inherit::no);
  EXPECT_THAT(test::flags_of_mappings("muster-other-test"),
              testing::ElementsAre(testing::AllOf(testing::HasSubstr(" dd "), testing::HasSubstr(" dc "))));
}

TEST(Mapping, OneThatReplacesAnotherIsNotDumpedOrInheritedEither) {
  const auto file = make_memfd("muster-mapping-test", 4096);
  const auto other = make_memfd("muster-other-test", 4096);
  mapping memory(file, 4096, mapping::inherit::no);
  memory.replace(other);
  EXPECT_TRUE(test::flags_of_mappings("muster-mapping-test").empty());
  EXPECT_THAT(test::flags_of_mappings("muster-other-test"),
              testing::ElementsAre(testing::AllOf(testing::HasSubstr(" dd "), testing::HasSubstr(" dc "))));
}

TEST(Mapping, TooLittleAddressSpaceIsAnErrorThatNamesTheLimit) {
  if (sanitized)
    GTEST_SKIP() << "sanitizers reserve terabytes of address space, so RLIMIT_AS cannot be tested under them";
  const auto file = make_memfd("test", std::size_t{4} << 30U);
  const auto ranks = test::spawn(1, [&](std::size_t) {
    const rlimit small{.rlim_cur = rlim_t{1} << 30U, .rlim_max = rlim_t{1} << 30U};
    if (::setrlimit(RLIMIT_AS, &small) != 0) return 2;
    try {
      const mapping memory(file, std::size_t{4} << 30U, mapping::inherit::yes);
      return 3;
    } catch (const error& failure) {
      const std::string what = failure.what();
      const bool told =
          what.find("4.0 GiB") != std::string::npos && what.find("RLIMIT_AS is 1.0 GiB") != std::string::npos;
      return failure.code() == errc::out_of_memory && told ? 0 : 4;
    }
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
}

}  // namespace
}  // namespace muster::mapping_test
