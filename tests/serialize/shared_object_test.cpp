// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/shared_object.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/interprocess/containers/map.hpp>
#include <boost/interprocess/containers/string.hpp>
#include <boost/interprocess/containers/vector.hpp>

#include <muster/base/error.hpp>
#include <muster/memory/domain.hpp>
#include <muster/serialize/detail/codec.hpp>
#include <muster/serialize/shared_segment.hpp>

namespace muster::shared_object_test {
namespace {

namespace bip = boost::interprocess;

struct squares {
  std::array<int, 1000> values;
};
using numbers = bip::vector<int, shared_allocator<int>>;
using word = bip::basic_string<char, std::char_traits<char>, shared_allocator<char>>;
using dictionary = bip::map<word, numbers, std::less<>, shared_allocator<std::pair<const word, numbers>>>;

static_assert(archivable<shared_object<squares>> && !trivially_transportable<shared_object<squares>> &&
              transportable<std::vector<shared_object<dictionary>>>);

squares first_squares() {
  squares made{};
  for (int each = 0; each < 1000; ++each) made.values[static_cast<std::size_t>(each)] = each * each;
  return made;
}

dictionary words_up_to(const shared_allocator<std::byte>& where, int last) {
  dictionary made(where);
  for (int each = 0; each <= last; ++each) {
    word name(std::to_string(each).c_str(), where);
    name += " is a word that is too long to lie in the string itself";
    numbers values(where);
    values.push_back(each);
    made.emplace(std::move(name), std::move(values));
  }
  return made;
}

int value_of(const dictionary& in, int which) {
  for (const auto& [name, values] : in) {
    if (name.find((std::to_string(which) + " is").c_str()) == 0) return values.at(0);
  }
  return -1;
}

struct sender final : attachment_sink {
  explicit sender(domain& where) : from(where) {}
  std::uint64_t attach(const shared_block& what) override { return from.blocks().send(what); }
  domain& from;
};

struct receiver final : attachment_source {
  explicit receiver(domain& where) : to(where) {}
  shared_block take(std::uint64_t name) override { return to.blocks().receive(name); }
  domain& to;
};

// Gives the same block whatever its name.
struct forger final : attachment_source {
  explicit forger(shared_block given) : block(std::move(given)) {}
  shared_block take(std::uint64_t /*name*/) override { return block; }
  shared_block block;
};

// Two participants in this process, each with a mapping of its own.
class SharedObject : public testing::Test {
protected:
  SharedObject() {
    const auto id = host_->participants().enrol();
    domain_files files{.control = unique_fd(::dup(host_->files().control.get())),
                       .arena = unique_fd(::dup(host_->files().arena.get()))};
    guest_ = std::make_shared<domain>(std::move(files), id);
    domain::enter(host_);
  }
  ~SharedObject() override { domain::enter(nullptr); }

  using bytes = std::vector<std::byte>;
  template <class T>
  bytes encode(const shared_object<T>& what) {
    bytes made(codec<shared_object<T>>::size_with(what).bytes);
    sender out(*host_);
    codec<shared_object<T>>::encode_with(made, &out, what);
    return made;
  }
  template <class T>
  static shared_object<T> decode(const bytes& from, attachment_source* blocks) {
    return std::get<0>(codec<shared_object<T>>::decode(from, blocks));
  }
  template <class T>
  shared_object<T> sent(const shared_object<T>& what) {
    receiver in(*guest_);
    return decode<T>(encode(what), &in);
  }
  void expect_all_free() {
    const auto host = host_->blocks().read_statistics();
    EXPECT_EQ(host.holds + guest_->blocks().read_statistics().holds, 0U);
    EXPECT_EQ(host.held_bytes, host.cached_bytes + guest_->blocks().read_statistics().cached_bytes);
  }
  template <class Call>
  static void expect_corrupted(const Call& call, const char* part) {
    try {
      static_cast<void>(call());
      ADD_FAILURE() << "nothing was thrown";
    } catch (const error& found) {
      EXPECT_EQ(found.code(), errc::corrupted) << found.what();
      EXPECT_THAT(found.what(), testing::HasSubstr(part));
    }
  }

  std::shared_ptr<domain> host_ = std::make_shared<domain>(
      domain_options{.arena_bytes = std::size_t{64} << 20U, .max_participants = 8, .max_blocks = 64});
  std::shared_ptr<domain> guest_;
};

TEST_F(SharedObject, ADefaultOneRefersToNothingAndArrivesSo) {
  const shared_object<squares> none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.get(), nullptr);
  EXPECT_EQ(none.size_bytes(), 0U);
  EXPECT_FALSE(sent(none));
}

TEST_F(SharedObject, ItIsACopyOfWhatWasShared) {
  auto table = first_squares();
  const auto made = share(table);
  table.values[31] = 0;
  EXPECT_EQ(made->values[31], 961);
  EXPECT_EQ((*made).values[999], 998'001);
  static_assert(std::is_same_v<decltype(*made), const squares&>, "nobody writes to it");
}

TEST_F(SharedObject, CopiesAreOfTheSameObjectAndTheLastFreesIt) {
  auto made = share(first_squares());
  auto copy = made;
  EXPECT_EQ(copy.get(), made.get());
  made = {};
  EXPECT_EQ(copy->values[2], 4);
  copy = {};
  expect_all_free();
}

TEST_F(SharedObject, ArrivesInAnotherProcessAsTheSameMemoryAndOutlivesItsMaker) {
  auto made = share(first_squares());
  auto arrived = sent(made);
  EXPECT_NE(arrived.get(), made.get()) << "another mapping";
  const_cast<squares&>(*made).values[5] = -1;  // NOLINT: that is the question
  EXPECT_EQ(arrived->values[5], -1);
  made = {};
  EXPECT_EQ(arrived->values[6], 36);
  arrived = {};
  expect_all_free();
}

TEST_F(SharedObject, TakesNineBytesInAFrameWhateverItsSize) {
  EXPECT_EQ(codec<shared_object<squares>>::size_with(share(first_squares())).bytes, 9U);
  const auto large = share<numbers>(std::size_t{1} << 20U,
                                    [](const shared_allocator<int>& where) { return numbers(200'000, 7, where); });
  EXPECT_EQ(codec<shared_object<numbers>>::size_with(large).bytes, 9U);
}

TEST_F(SharedObject, ContainersAreWholeAtAnotherAddress) {
  const auto made =
      share<dictionary>(100'000, [](const shared_allocator<std::byte>& where) { return words_up_to(where, 100); });
  const auto arrived = sent(made);
  ASSERT_NE(arrived.get(), made.get());
  EXPECT_EQ(arrived->size(), 101U);
  EXPECT_EQ(value_of(*arrived, 77), 77);
}

TEST_F(SharedObject, WhenTheRoomWasTooSmallItIsBuiltAgainInMore) {
  int built = 0;
  const auto made = share<dictionary>(1, [&](const shared_allocator<std::byte>& where) {
    ++built;
    return words_up_to(where, 1000);
  });
  EXPECT_GT(built, 1);
  EXPECT_EQ(value_of(*sent(made), 1000), 1000);
  built = 0;
  const auto vector = share<numbers>(1, [&](const shared_allocator<int>& where) {
    ++built;
    numbers reserved(where);
    reserved.reserve(100'000);  // more than there could ever be in that room
    return reserved;
  });
  EXPECT_GT(built, 1);
  EXPECT_GT(vector.size_bytes(), 400'000U);
}

TEST_F(SharedObject, WithoutEnoughSharedMemoryTheErrorSaysWhatThereIsAndNothingIsLeft) {
  try {
    static_cast<void>(share<numbers>(
        1, [](const shared_allocator<int>& where) { return numbers(std::size_t{100} << 20U, 7, where); }));
    FAIL();
  } catch (const error& found) {
    EXPECT_EQ(found.code(), errc::out_of_memory);
    EXPECT_THAT(found.what(), testing::AllOf(testing::HasSubstr("64.0 MiB"), testing::HasSubstr(" free")));
  }
  EXPECT_EQ(host_->blocks().read_statistics().live_blocks, 0U);
}

TEST_F(SharedObject, RoomThatCannotBeIsRefusedWithTheNumber) {
  const auto build = [](const shared_allocator<int>& where) {
    ADD_FAILURE() << "it is not built";
    return numbers(where);
  };
  for (const auto bytes : {SIZE_MAX, SIZE_MAX - 1100}) {
    try {
      static_cast<void>(share<numbers>(bytes, build));
      FAIL() << "there was room";
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::out_of_memory);
      EXPECT_THAT(failure.what(), testing::HasSubstr(std::to_string(bytes) + " bytes"));
    }
  }
}

TEST_F(SharedObject, TheBuildersOwnLengthErrorComesOutWhenNoMoreRoomCanBeHad) {
  std::size_t times = 0;
  try {
    static_cast<void>(share<numbers>(1, [&](const shared_allocator<int>& where) -> numbers {
      ++times;
      if (where.get_segment_manager() != nullptr) throw std::length_error("no more than 12 of them");
      return numbers(where);
    }));
    FAIL() << "it was built";
  } catch (const std::length_error& failure) {
    EXPECT_STREQ(failure.what(), "no more than 12 of them");
  }
  EXPECT_GT(times, 1U) << "it might have been for want of room";
}

TEST_F(SharedObject, WhatTheBuilderThrowsComesOutAndNothingIsLeft) {
  EXPECT_THROW(static_cast<void>(share<numbers>(1000,
                                                [](const shared_allocator<int>& where) -> numbers {
                                                  const numbers some(10, 1, where);
                                                  throw std::runtime_error("mine");
                                                })),
               std::runtime_error);
  EXPECT_EQ(host_->blocks().read_statistics().live_blocks, 0U);
}

TEST_F(SharedObject, WhereNoBlockCanGoACopyArrives) {
  const auto made =
      share<dictionary>(50'000, [](const shared_allocator<std::byte>& where) { return words_up_to(where, 50); });
  bytes frame(codec<shared_object<dictionary>>::size(made));
  codec<shared_object<dictionary>>::encode(frame, made);
  const auto arrived = decode<dictionary>(frame, nullptr);
  EXPECT_NE(arrived.get(), made.get());
  EXPECT_EQ(value_of(*arrived, 50), 50);
  EXPECT_EQ(codec<shared_object<dictionary>>::size_with(arrived).bytes, 9U) << "a copy goes on by reference";
}

TEST_F(SharedObject, OneOfAnotherTypeIsRefused) {
  receiver in(*guest_);
  const auto frame = encode(share(first_squares()));
  struct other {
    std::array<int, 1000> values;
  };
  expect_corrupted([&] { return decode<other>(frame, &in); }, "type");
}

TEST_F(SharedObject, ABlockThatHoldsNoneOrIsTooSmallIsRefusedWithTheNumbers) {
  const auto frame = encode(share(first_squares()));
  const auto block = host_->blocks().allocate_shared(8192);
  std::memset(block.data(), 0, block.size());
  forger in(block);
  expect_corrupted([&] { return decode<squares>(frame, &in); }, "begins with 0");

  // The header of a true one: magic, type, bytes, object.
  const auto true_one = share(first_squares());
  std::array<std::uint64_t, 4> header{};
  std::memcpy(header.data(), reinterpret_cast<const std::byte*>(true_one.get()) - 64, sizeof header);
  const auto forged = [&](std::uint64_t all, std::uint64_t object) {
    header[2] = all;
    header[3] = object;
    std::memcpy(block.data(), header.data(), sizeof header);
    return [&] { return decode<squares>(frame, &in); };
  };
  EXPECT_NE(forged(8192, 64)().get(), nullptr);
  expect_corrupted(forged(8193, 64), "of 8193, in a block of 8192");
  expect_corrupted(forged(8192, 8192 - 3999), "byte 4193");
  expect_corrupted(forged(8192, 66), "byte 66");
  expect_corrupted(forged(8192, 32), "byte 32");
  expect_corrupted(forged(8192, UINT64_MAX - 3), "in a block of 8192");
  expect_corrupted(forged(100, 64), "of 100");
  expect_corrupted(forged(UINT64_MAX, 64), "in a block of 8192");
  forger small(host_->blocks().allocate_shared(20));
  expect_corrupted([&] { return decode<squares>(frame, &small); }, "20 bytes");
}

TEST_F(SharedObject, AForgedEncodingIsRefusedBeforeAnythingIsAllocated) {
  bytes frame(9 + 7, std::byte{0});
  frame[0] = std::byte{3};
  expect_corrupted([&] { return decode<squares>(frame, nullptr); }, "begins with 3");
  frame[0] = std::byte{2};
  const std::uint64_t huge = std::uint64_t{1} << 50U;
  std::memcpy(frame.data() + 1, &huge, sizeof huge);
  EXPECT_THROW(static_cast<void>(decode<squares>(frame, nullptr)), error);
  const std::uint64_t few = 7;
  std::memcpy(frame.data() + 1, &few, sizeof few);
  expect_corrupted([&] { return decode<squares>(frame, nullptr); }, "7 bytes");
  EXPECT_EQ(host_->blocks().read_statistics().held_bytes, 0U);
}

}  // namespace
}  // namespace muster::shared_object_test
