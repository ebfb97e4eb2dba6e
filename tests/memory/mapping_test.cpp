// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/mapping.hpp>

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/base/memfd.hpp>

#include "processes.hpp"

namespace muster {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

TEST(Mapping, SeesWhatAnotherMappingOfTheFileWrites) {
  const auto file = make_memfd("test", 4096);
  const mapping one(file, 4096, mapping::inherit::yes);
  const mapping other(file, 4096, mapping::inherit::yes);
  one.bytes()[100] = std::byte{7};
  EXPECT_EQ(other.bytes()[100], std::byte{7});
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
}  // namespace muster
