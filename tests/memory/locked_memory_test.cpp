// SPDX-License-Identifier: BSL-1.0
// Programs that call mlockall: what is only reserved must not become memory by that.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>

#include "processes.hpp"

namespace muster::locked_memory_test {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20U;
constexpr domain_options half_a_gibibyte{.arena_bytes = 512 * mebibyte};

std::size_t bytes_of(const unique_fd& file) {
  struct stat found{};
  return ::fstat(file.get(), &found) == 0 ? static_cast<std::size_t>(found.st_blocks) * 512 : SIZE_MAX;
}

unique_fd duplicate(const unique_fd& file) { return unique_fd(::dup(file.get())); }

bool can_be_written(domain& where, std::size_t bytes) {
  const auto made = where.blocks().allocate(bytes);
  std::memset(made.data(), 7, made.size());
  return made.bytes()[bytes - 1] == std::byte{7};
}

class LockedMemory : public testing::Test {
protected:
  static constexpr int not_permitted = 77;

  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizers ignore mlockall";
#endif
  }

  // In a process of its own, which ends with what it returns: what is locked goes with it.
  static void run(const std::function<int()>& what) {
    const auto found = test::spawn(1, [&](std::size_t) { return what(); })->wait(0);
    if (found == exit_status::exited(not_permitted)) GTEST_SKIP() << "this user may not lock so much (RLIMIT_MEMLOCK)";
    EXPECT_EQ(found, exit_status::exited(0));
  }
};

TEST_F(LockedMemory, ADomainThatIsMadeAfterMlockallTakesWhatIsTouched) {
  run([] {
    if (::mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return not_permitted;
    domain host(half_a_gibibyte);
    domain guest({.control = duplicate(host.files().control), .arena = duplicate(host.files().arena)},
                 host.participants().enrol());
    if (bytes_of(host.files().control) > mebibyte || bytes_of(host.files().arena) != 0) return 1;
    if (!can_be_written(host, 40 * mebibyte) || !can_be_written(guest, 40 * mebibyte)) return 2;
    return bytes_of(host.files().arena) <= 80 * mebibyte ? 0 : 3;
  });
}

TEST_F(LockedMemory, AnArenaThatWasMadeBeforeMlockallTakesLittleMoreThanIsUsed) {
  run([] {
    domain host(half_a_gibibyte);
    domain guest({.control = duplicate(host.files().control), .arena = duplicate(host.files().arena)},
                 host.participants().enrol());
    const auto sent = host.blocks().allocate(20 * mebibyte);
    if (guest.blocks().view(sent.ref()).size() != sent.size()) return 1;
    if (::mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return not_permitted;
    if (bytes_of(host.files().arena) > 32 * mebibyte) return 2;
    if (!can_be_written(host, 100 * mebibyte) || !can_be_written(guest, 100 * mebibyte)) return 3;
    return bytes_of(host.files().arena) <= 256 * mebibyte ? 0 : 4;
  });
}

TEST_F(LockedMemory, APoolServesAfterMlockall) {
  run([] {
    init(0, nullptr);
    if (::mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return not_permitted;
    pool pool({.workers = 2, .arena_bytes = 512 * mebibyte, .log = [](log_level, std::string_view) {}});
    const auto size_of = [](const std::string& text) { return text.size(); };
    if (pool.apply(size_of, std::string(30 * mebibyte, 'x')) != 30 * mebibyte) return 1;
    return bytes_of(domain::of_program()->files().arena) <= 128 * mebibyte ? 0 : 2;
  });
}

TEST_F(LockedMemory, TooLittleThatMayBeLockedIsAnErrorThatNamesTheLimit) {
  run([] {
    constexpr uid_t nobody = 65534;  // root may lock what it likes
    const rlimit small{.rlim_cur = 8 * mebibyte, .rlim_max = 8 * mebibyte};
    if (::setrlimit(RLIMIT_MEMLOCK, &small) != 0) return not_permitted;
    if (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0) return not_permitted;
    if (::mlockall(MCL_FUTURE) != 0) return not_permitted;
    try {
      const domain host(half_a_gibibyte);
      return 1;
    } catch (const error& failure) {
      const std::string_view what = failure.what();
      const auto says = [&](std::string_view part) { return what.find(part) != std::string_view::npos; };
      const bool is_told = says("mlockall") && says("RLIMIT_MEMLOCK is 8.0 MiB") && !says("RLIMIT_AS");
      return failure.code() == errc::out_of_memory && is_told ? 0 : 2;
    }
  });
}

}  // namespace
}  // namespace muster::locked_memory_test
