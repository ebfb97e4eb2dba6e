// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/known_descriptor.hpp>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

#include <muster/base/memfd.hpp>
#include <muster/base/unique_fd.hpp>

namespace muster::known_descriptor_test {
namespace {

unique_fd marked_eventfd() {
  unique_fd made(::eventfd(0, EFD_CLOEXEC));
  known_descriptor::mark(made.get());
  return made;
}

// Gives the number of `open` to `another`.
void put(const unique_fd& another, const unique_fd& open) { ASSERT_EQ(::dup2(another.get(), open.get()), open.get()); }

TEST(KnownDescriptor, OfNoneIsNeverTheSame) {
  EXPECT_FALSE(known_descriptor().is_same());
  EXPECT_FALSE(known_descriptor(-1).is_same());
  EXPECT_FALSE(known_descriptor(1'000'000).is_same());
}

TEST(KnownDescriptor, IsTheSameUntilItIsClosed) {
  unique_fd file = make_memfd("muster-test", 4096);
  unique_fd bell = marked_eventfd();
  const known_descriptor known_file(file.get());
  const known_descriptor known_bell(bell.get());
  EXPECT_TRUE(known_file.is_same());
  EXPECT_TRUE(known_bell.is_same());
  file.reset();
  bell.reset();
  EXPECT_FALSE(known_file.is_same());
  EXPECT_FALSE(known_bell.is_same());
}

TEST(KnownDescriptor, IsNotTheSameWhenAnotherFileHasTheNumber) {
  const unique_fd file = make_memfd("muster-test", 4096);
  const known_descriptor known(file.get());
  put(make_memfd("muster-test", 4096), file);
  EXPECT_FALSE(known.is_same());
}

TEST(KnownDescriptor, IsNotTheSameWhenAnotherSocketHasTheNumber) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const unique_fd one(ends[0]);
  const unique_fd other(ends[1]);
  const known_descriptor known(one.get());
  put(other, one);
  EXPECT_FALSE(known.is_same());
}

TEST(KnownDescriptor, OfAMarkedEventfdIsNotTheSameWhenAnotherEventfdHasTheNumber) {
  const unique_fd bell = marked_eventfd();
  const known_descriptor known(bell.get());
  put(unique_fd(::eventfd(0, EFD_CLOEXEC)), bell);
  EXPECT_FALSE(known.is_same());
}

TEST(KnownDescriptor, IsTheSameByAnotherDescriptorOfTheFile) {
  const unique_fd bell = marked_eventfd();
  const known_descriptor known(bell.get());
  const unique_fd copy(::dup(bell.get()));
  ASSERT_EQ(::close(bell.get()), 0);
  put(copy, bell);
  EXPECT_TRUE(known.is_same());
}

}  // namespace
}  // namespace muster::known_descriptor_test
