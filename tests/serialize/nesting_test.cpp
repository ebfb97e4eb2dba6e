// SPDX-License-Identifier: BSL-1.0
// Values that contain one another, and the order of equal keys.
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/serialize/detail/codec.hpp>

#include "chain.hpp"

namespace muster::nesting_test {
namespace {

template <class T>
T sent(const T& value) {
  std::vector<std::byte> frame(codec<T>::size(value));
  codec<T>::encode(frame, value);
  return codec<T>::decode_value(frame);
}

using test::chain_of;
using test::length_of;
using test::node;

TEST(Nesting, OfAThousandLevelsArrives) { EXPECT_EQ(length_of(sent(chain_of(1000))), 1000U); }

TEST(Nesting, DeeperThanTheStackThrowsWhereItIsWritten) {
  const auto chain = chain_of(1'000'000);
  try {
    (void)codec<node>::size(chain);
    FAIL() << "it was written";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::not_serializable);
    EXPECT_THAT(failure.what(), testing::HasSubstr("nested deeper than this thread's stack"));
  }
}

TEST(Nesting, DeeperThanTheStackThrowsWhereItIsRead) {
  // What a chain of a million is encoded as: a pointer that is there, for each but the last.
  std::vector<std::byte> frame(1'000'000, std::byte{1});
  frame.back() = std::byte{0};
  EXPECT_THROW((void)codec<node>::decode(frame), error);
}

// ---- equal keys

using pairs = std::vector<std::pair<int, std::string>>;

TEST(EqualKeys, OfMultimapsStayInOrder) {
  const std::multimap<int, std::string> given{{1, "a"}, {2, "x"}, {1, "b"}, {1, "c"}, {2, "y"}};
  const auto once = sent(given);
  EXPECT_EQ(once, given);
  EXPECT_EQ(sent(once), given);
}

struct by_size {
  bool operator()(const std::string& a, const std::string& b) const { return a.size() < b.size(); }
};

TEST(EqualKeys, OfMultisetsStayInOrder) {
  const std::multiset<std::string, by_size> given{"b", "a", "cc", "c", "aa"};
  EXPECT_THAT(sent(given), testing::ElementsAreArray(given));
}

template <class Map>
std::vector<std::string> values_at(const Map& map, int key) {
  std::vector<std::string> all;
  for (auto [each, end] = map.equal_range(key); each != end; ++each) all.push_back(each->second);
  return all;
}

TEST(EqualKeys, OfUnorderedMultimapsStayInOrder) {
  std::unordered_multimap<int, std::string> given;
  for (int i = 0; i < 100; ++i) given.emplace(i % 3, std::to_string(i));
  const auto once = sent(given);
  const auto twice = sent(once);
  for (int key = 0; key < 3; ++key) {
    EXPECT_EQ(values_at(once, key), values_at(given, key));
    EXPECT_EQ(values_at(twice, key), values_at(given, key));
  }
}

struct size_hash {
  std::size_t operator()(const std::string& text) const { return text.size(); }
};
struct same_size {
  bool operator()(const std::string& a, const std::string& b) const { return a.size() == b.size(); }
};

TEST(EqualKeys, OfUnorderedMultisetsStayInOrder) {
  const std::unordered_multiset<std::string, size_hash, same_size> given{"b", "a", "cc", "c", "aa"};
  const auto once = sent(given);
  const auto [first, end] = once.equal_range("z");
  const auto [given_first, given_end] = given.equal_range("z");
  EXPECT_EQ(std::vector<std::string>(first, end), std::vector<std::string>(given_first, given_end));
}

}  // namespace
}  // namespace muster::nesting_test
