// SPDX-License-Identifier: BSL-1.0
#include <muster/nccl/nccl_library.hpp>

#include <sys/resource.h>

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nccl_support.hpp"
#include "processes.hpp"

namespace muster::nccl_library_test {
namespace {

using test::text_thrown_by;
using testing::AllOf;
using testing::HasSubstr;

class NcclLibrary : public test::nccl_test {
protected:
  // What it reads it reads once.
  static void in_a_process_of_its_own(const std::function<void()>& body) {
    test::processes other;
    other.add([&](std::size_t) {
      body();
      return HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(other.wait(0).code(), 0);
  }
};

TEST_F(NcclLibrary, SaysItsVersion) {
  in_a_process_of_its_own([] {
    const auto library = nccl_library::load();
    EXPECT_GE(library->version_number(), nccl_library::least_version);
    EXPECT_EQ(nccl_library::version_text(22809), "2.28.9");
    EXPECT_EQ(nccl_library::problem(), std::nullopt);
  });
}

TEST_F(NcclLibrary, AFailureNamesTheCallItsArgumentsAndTheCause) {
  in_a_process_of_its_own([] {
    const auto library = nccl_library::load();
    EXPECT_THAT(text_thrown_by<error>(
                    [&] { library->all_reduce(nullptr, nullptr, 1, ncclFloat32, ncclSum, nullptr, nullptr); }),
                AllOf(HasSubstr("ncclAllReduce(0, 0, 1, "), HasSubstr(") failed in process"),
                      HasSubstr("ncclInvalidArgument")));
    if (is_fake()) {
      test::fake_nccl().fail("ncclGroupEnd", ncclSystemError);
      EXPECT_THAT(text_thrown_by<error>([&] { library->group_end(); }),
                  AllOf(HasSubstr("ncclGroupEnd() failed in process"),
                        HasSubstr("2, ncclSystemError (an error of the fake"), HasSubstr("/dev/shm")));
    }
  });
}

TEST_F(NcclLibrary, AnOldOneIsRefusedWithBothVersions) {
  if (!is_fake()) GTEST_SKIP() << "NCCL is the real one";
  in_a_process_of_its_own([] {
    ::setenv("FAKE_NCCL_VERSION", "21703", 1);
    EXPECT_THAT(nccl_library::problem().value_or(""),
                AllOf(HasSubstr("version 2.17.3, and 2.18.0 is needed"), HasSubstr("install NCCL")));
  });
}

TEST_F(NcclLibrary, OneThatCannotBeOpenedIsRefusedWithWhatToDo) {
  in_a_process_of_its_own([] {
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_NOFILE, &none);
    EXPECT_THAT(text_thrown_by<error>([] { static_cast<void>(nccl_library::load()); }),
                AllOf(HasSubstr("NCCL cannot be used: its library could not be loaded (libnccl.so.2"),
                      HasSubstr("LD_LIBRARY_PATH")));
  });
}

TEST(NcclErrors, SayWhatCanBeDone) {
  EXPECT_EQ(detail::errc_of(ncclRemoteError), errc::peer_lost);
  EXPECT_EQ(detail::errc_of(ncclSystemError), errc::out_of_memory);
  EXPECT_EQ(detail::errc_of(ncclUnhandledCudaError), errc::device_lost);
  EXPECT_EQ(detail::name_of(ncclInvalidUsage), "ncclInvalidUsage");
  EXPECT_EQ(detail::name_of(ncclNumResults), "an unknown error");
  EXPECT_EQ(detail::errc_of(ncclNumResults), errc::invalid_argument);
}

}  // namespace
}  // namespace muster::nccl_library_test
