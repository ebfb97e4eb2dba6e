// SPDX-License-Identifier: BSL-1.0
// A container whose /dev/shm is small: shared memory without names does not lie there.
#include <sched.h>

#include <algorithm>

#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>
#include <muster/pool/pool.hpp>

#include "memory_map.hpp"
#include "processes.hpp"

namespace muster::small_shm_test {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20U;
constexpr int not_permitted = 77;

bool has_small_shm() {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (::mount("muster-test", "/dev/shm", "tmpfs", 0, "size=1m") != 0) return false;
  struct statvfs found{};
  return ::statvfs("/dev/shm", &found) == 0 && found.f_blocks * found.f_frsize == mebibyte;
}

tensor negated(const tensor& given) {
  const auto made = tensor::empty<std::uint8_t>({given.size()});
  const auto from = given.span<std::uint8_t>();
  std::transform(from.begin(), from.end(), made.data<std::uint8_t>(),
                 [](std::uint8_t each) { return static_cast<std::uint8_t>(~each); });
  return made;
}

TEST(SmallShm, APoolWorksAndTensorsOf64MebibytesGoToAWorkerAndBack) {
  const auto ranks = test::spawn(1, [](std::size_t) {
    if (!has_small_shm()) return not_permitted;
    init(0, nullptr);  // a forked child is another process
    pool workers({.workers = 2});
    if (workers.apply([](int x) { return x + 1; }, 41) != 42) return 1;
    const auto given = tensor::full<std::uint8_t>({64 * mebibyte}, 0x0f);
    const auto back = workers.apply(negated, given);
    const auto seen = back.span<std::uint8_t>();
    return std::all_of(seen.begin(), seen.end(), [](std::uint8_t each) { return each == 0xf0; }) ? 0 : 2;
  });
  const auto how = ranks->wait(0);
  if (how == exit_status::exited(not_permitted)) GTEST_SKIP() << "mount namespaces are not permitted here";
  EXPECT_EQ(how, exit_status::exited(0));
}

TEST(SmallShm, AWorkersMemoryIsNeitherDumpedNorInheritedByItsChildren) {
  pool workers({.workers = 1});
  const auto flags = workers.apply([] {
    auto found = test::flags_of_mappings("memfd:muster-control");
    const auto arena = test::flags_of_mappings("memfd:muster-arena");
    found.insert(found.end(), arena.begin(), arena.end());
    return found;
  });
  EXPECT_EQ(flags.size(), 2U);
  EXPECT_THAT(flags, testing::Each(testing::AllOf(testing::HasSubstr(" dd "), testing::HasSubstr(" dc "))));
}

}  // namespace
}  // namespace muster::small_shm_test
