// SPDX-License-Identifier: BSL-1.0
#include <muster/base/descriptor_limit.hpp>

#include <sys/resource.h>

#include <gtest/gtest.h>

#include <muster/base/system_call.hpp>

namespace muster::descriptor_limit_test {
namespace {

rlimit read_limit() {
  rlimit found{};
  system_call("getrlimit", ::getrlimit, RLIMIT_NOFILE, &found);
  return found;
}

class MakeRoomForDescriptors : public testing::Test {
protected:
  ~MakeRoomForDescriptors() override { ::setrlimit(RLIMIT_NOFILE, &before_); }

  void allow(rlim_t soft) const {
    const rlimit wanted{.rlim_cur = soft, .rlim_max = before_.rlim_max};
    system_call("setrlimit", ::setrlimit, RLIMIT_NOFILE, &wanted);
  }

  const rlimit before_ = read_limit();
};

TEST_F(MakeRoomForDescriptors, RaisesTheSoftLimitAsFarAsNeeded) {
  allow(64);
  make_room_for_descriptors(100);
  EXPECT_GT(read_limit().rlim_cur, 100U);
  EXPECT_LT(read_limit().rlim_cur, 100U + 64U);
  EXPECT_EQ(read_limit().rlim_max, before_.rlim_max);
}

TEST_F(MakeRoomForDescriptors, LowersNothing) {
  allow(1000);
  make_room_for_descriptors(10);
  EXPECT_EQ(read_limit().rlim_cur, 1000U);
}

TEST_F(MakeRoomForDescriptors, StopsAtTheHardLimit) {
  allow(64);
  make_room_for_descriptors(std::size_t{1} << 40U);
  EXPECT_EQ(read_limit().rlim_cur, before_.rlim_max);
}

}  // namespace
}  // namespace muster::descriptor_limit_test
