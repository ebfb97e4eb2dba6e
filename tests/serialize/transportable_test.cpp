// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/transportable.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <stack>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace muster::transportable_test {
namespace {

struct plain {
  int number;
};
struct with_string {
  std::string name;
};
struct with_string_and_serialize {
  std::string name;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name);
  }
};

TEST(Transportable, ValuesAre) {
  EXPECT_TRUE(transportable<int>);
  EXPECT_TRUE(transportable<plain>);
  EXPECT_TRUE(transportable<std::string>);
  EXPECT_TRUE((transportable<std::map<std::string, std::vector<plain>>>));
  EXPECT_TRUE(transportable<std::unique_ptr<int>>);
  EXPECT_TRUE(transportable<std::filesystem::path>);
  EXPECT_TRUE(transportable<with_string_and_serialize>);
}

TEST(Transportable, WhatMeansNothingElsewhereIsNot) {
  EXPECT_FALSE(transportable<int*>);
  EXPECT_FALSE(transportable<const char*>);
  EXPECT_FALSE(transportable<void (*)()>);
  EXPECT_FALSE(transportable<int plain::*>);
  EXPECT_FALSE(transportable<std::string_view>);
  EXPECT_FALSE(transportable<std::span<int>>);
  EXPECT_FALSE(transportable<std::reference_wrapper<int>>);
  EXPECT_FALSE(transportable<std::nullptr_t>);
}

TEST(Transportable, WhatCannotBeTakenApartIsNot) {
  EXPECT_FALSE(transportable<with_string>);
  EXPECT_FALSE(transportable<std::mutex>);
  EXPECT_FALSE(transportable<std::thread>);
  EXPECT_FALSE(transportable<std::vector<with_string>>) << "the elements decide";
  EXPECT_FALSE((transportable<std::map<std::string, std::optional<with_string>>>));
  EXPECT_FALSE((transportable<std::tuple<int, int*>>));
  EXPECT_FALSE((transportable<std::vector<const char*>>));
}

TEST(Transportable, PointersAndReferencesInsideOfStandardTypesAreNot) {
  EXPECT_FALSE((transportable<std::tuple<int, const char*>>));
  EXPECT_FALSE((transportable<std::tuple<int, int&>>));
  EXPECT_FALSE((transportable<std::pair<int, int*>>));
  EXPECT_FALSE((transportable<std::pair<const int&, int>>));
  EXPECT_FALSE((transportable<std::array<int*, 2>>));
  EXPECT_FALSE((transportable<std::optional<std::string_view>>));
  EXPECT_FALSE((transportable<std::variant<int, int*>>));
  EXPECT_FALSE((transportable<std::vector<std::string_view>>));
  EXPECT_FALSE((transportable<std::array<std::string_view, 2>>));
  EXPECT_FALSE((transportable<std::vector<std::pair<int, std::vector<int*>>>>));
  EXPECT_FALSE((transportable<std::map<int, std::reference_wrapper<int>>>));
  EXPECT_FALSE((transportable<std::unique_ptr<int*>>));
  EXPECT_FALSE((transportable<std::shared_ptr<std::string_view>>));
  EXPECT_FALSE((transportable<std::queue<int*>>));
  EXPECT_FALSE((transportable<std::stack<std::span<int>>>));
  EXPECT_FALSE((transportable<std::priority_queue<const char*>>));
}

TEST(Transportable, WhatOwningPointersAndAdaptersHoldDecides) {
  EXPECT_TRUE(transportable<std::unique_ptr<with_string_and_serialize>>);
  EXPECT_TRUE(transportable<std::shared_ptr<const plain>>);
  EXPECT_TRUE(transportable<std::queue<std::string>>);
  EXPECT_TRUE(transportable<std::priority_queue<int>>);
  EXPECT_FALSE(transportable<std::unique_ptr<with_string>>);
  EXPECT_FALSE(transportable<std::shared_ptr<std::vector<with_string>>>);
  EXPECT_FALSE(transportable<std::stack<with_string>>);
}

struct as_large_as_can_be {
  std::array<std::byte, max_value_bytes> bytes;
};
struct too_large {
  std::array<std::byte, max_value_bytes + 1> bytes;
};

TEST(Transportable, ValuesHaveNoMoreThanTheMaximum) {
  EXPECT_TRUE(transportable<as_large_as_can_be>);
  EXPECT_FALSE(transportable<too_large>);
  EXPECT_FALSE((transportable<std::array<too_large, 1>>));
  EXPECT_FALSE((transportable<std::array<std::string, max_value_bytes>>));
  EXPECT_FALSE((transportable<std::tuple<int, too_large>>));
  EXPECT_FALSE((transportable<std::pair<as_large_as_can_be, int>>));
  EXPECT_FALSE((transportable<std::variant<int, too_large>>));
  EXPECT_FALSE(transportable<std::optional<too_large>>);
}

TEST(Transportable, WhatAValueOwnsMayBeOfAnySize) {
  EXPECT_TRUE(transportable<std::unique_ptr<too_large>>);
  EXPECT_TRUE(transportable<std::shared_ptr<too_large>>);
  EXPECT_TRUE(transportable<std::vector<too_large>>);
  EXPECT_TRUE((transportable<std::deque<std::pair<int, std::list<too_large>>>>));
  EXPECT_TRUE(transportable<std::queue<too_large>>);
}

TEST(Transportable, ElementsOfMapsAndSetsAreValues) {
  EXPECT_TRUE((transportable<std::map<int, std::unique_ptr<too_large>>>));
  EXPECT_FALSE((transportable<std::map<int, too_large>>));
  EXPECT_FALSE((transportable<std::unordered_map<int, too_large>>));
  EXPECT_FALSE(transportable<std::set<too_large>>);
  EXPECT_FALSE((transportable<std::vector<std::tuple<int, std::multimap<int, too_large>>>>));
}

struct list_node {
  int key;
  std::uintptr_t next;
};
struct list_node_with_serialize {
  int key;
  list_node_with_serialize* next;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(key);
  }
};

}  // namespace
}  // namespace muster::transportable_test

template <>
inline constexpr bool muster::holds_pointers<muster::transportable_test::list_node> = true;
template <>
inline constexpr bool muster::holds_pointers<muster::transportable_test::list_node_with_serialize> = true;

namespace muster::transportable_test {
namespace {

TEST(Transportable, ClassesThatAreDeclaredToHoldPointersAreNotUnlessTheySerialize) {
  EXPECT_FALSE(transportable<list_node>);
  EXPECT_FALSE(transportable<std::vector<list_node>>);
  EXPECT_FALSE((transportable<std::array<list_node, 2>>));
  EXPECT_FALSE(transportable<std::unique_ptr<list_node>>);
  EXPECT_TRUE(transportable<list_node_with_serialize>);
}

struct plain_with_serialize {
  int number;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(number);
  }
};
struct plain_for_our_archive {
  int number;
  void save(output_archive& archive) const { archive(number); }
  void load(input_archive& archive) { archive(number); }
};

TEST(Transportable, AClassesOwnFunctionsAreUsedThoughItsBytesWouldDo) {
  EXPECT_TRUE(transportable<plain_with_serialize> && !trivially_transportable<plain_with_serialize>);
  EXPECT_TRUE(transportable<plain_for_our_archive> && !trivially_transportable<plain_for_our_archive>);
  EXPECT_TRUE((trivially_transportable<std::array<plain, 3>>));
  EXPECT_FALSE((trivially_transportable<std::array<plain_with_serialize, 3>>));
}

TEST(SentAs, CStringsTravelAsText) {
  EXPECT_TRUE((std::is_same_v<sent_as<const char*>, std::string>));
  EXPECT_TRUE((std::is_same_v<sent_as<const char(&)[6]>, std::string>));
  EXPECT_TRUE((std::is_same_v<sent_as<const std::string&>, std::string>));
  EXPECT_TRUE((std::is_same_v<sent_as<const int&>, int>));
}

}  // namespace
}  // namespace muster::transportable_test
