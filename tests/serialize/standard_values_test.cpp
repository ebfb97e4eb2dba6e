// SPDX-License-Identifier: BSL-1.0
// Each form of a value of the standard library, with muster's headers alone: nothing of cereal's types is included.
#include <muster/serialize/detail/standard_values.hpp>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <chrono>
#include <complex>
#include <deque>
#include <filesystem>
#include <forward_list>
#include <list>
#include <map>
#include <queue>
#include <set>
#include <stack>
#include <unordered_map>
#include <unordered_set>
#include <valarray>
#include <variant>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/serialize/detail/codec.hpp>

namespace muster::standard_values_test {
namespace {

template <class T>
T sent(const T& value) {
  std::vector<std::byte> frame(codec<T>::size(value));
  codec<T>::encode(frame, value);
  return codec<T>::decode_value(frame);
}
template <class T>
void expect_kept(const T& value) {
  EXPECT_EQ(sent(value), value);
}

TEST(StandardValues, KeepSequences) {
  expect_kept(std::deque<std::string>{"a", "b"});
  expect_kept(std::list<int>{1, 2});
  expect_kept(std::forward_list<std::string>{"a", "b", "c"});
  expect_kept(std::vector<bool>{true, false, true});
  expect_kept(std::vector<std::vector<std::string>>{{"a"}, {}});
  expect_kept(std::u32string(U"text"));
  const std::valarray<double> numbers{1.5, 2.5};
  EXPECT_TRUE((sent(numbers) == numbers).min());
}

// std::bitset has a flip() as elements of std::vector<bool> have.
TEST(StandardValues, KeepSequencesOfBitsAndOfBools) {
  expect_kept(std::deque<std::bitset<70>>{5, 6});
  expect_kept(std::list<std::bitset<3>>{1});
  expect_kept(std::deque<bool>{true, false});
}

TEST(StandardValues, KeepMapsAndSets) {
  expect_kept(std::map<std::string, std::vector<int>>{{"a", {1, 2}}});
  expect_kept(std::multimap<int, std::string>{{1, "a"}, {1, "b"}});
  expect_kept(std::set<std::string>{"a", "b"});
  expect_kept(std::multiset<int>{1, 1});
  expect_kept(std::unordered_map<int, std::string>{{1, "a"}});
  expect_kept(std::unordered_multimap<int, int>{{1, 2}, {1, 2}});
  expect_kept(std::unordered_set<std::string>{"a"});
  expect_kept(std::unordered_multiset<int>{1, 1});
}

TEST(StandardValues, KeepAdaptors) {
  expect_kept(std::queue<int>({1, 2}));
  expect_kept(std::stack<std::string>({"a", "b"}));
  std::priority_queue<int> queue;
  queue.push(3);
  queue.push(5);
  EXPECT_EQ(sent(queue).top(), 5);
}

TEST(StandardValues, KeepPartsAndChoices) {
  expect_kept(std::tuple<int, std::string>(1, "a"));
  expect_kept(std::pair<std::string, double>("a", 1.5));
  expect_kept(std::array<std::string, 2>{"a", "b"});
  expect_kept(std::array<bool, 2>{true, false});
  expect_kept(std::optional<std::string>("a"));
  expect_kept(std::optional<std::string>());
  expect_kept(std::variant<std::monostate, std::string, int>("a"));
  expect_kept(std::variant<std::monostate, std::string, int>());
}

TEST(StandardValues, KeepNumbersTimesAndPaths) {
  expect_kept(std::bitset<70>(5));
  expect_kept(std::complex<double>(1, 2));
  expect_kept(std::chrono::milliseconds(3));
  expect_kept(std::chrono::duration<double>(1.5));
  expect_kept(std::chrono::system_clock::now());
  expect_kept(std::chrono::year_month_day(std::chrono::year(2026), std::chrono::month(11), std::chrono::day(28)));
  expect_kept(std::vector<std::filesystem::path>{"/a", "b"});
}

// Members that by themselves could not be values.
struct holder {
  std::atomic<int> number = 3;
  int row[3] = {1, 2, 3};
  std::string texts[2] = {"a", "b"};

  holder() = default;
  holder(holder&& other) noexcept : number(other.number.load()) {
    std::copy(std::begin(other.row), std::end(other.row), std::begin(row));
    std::move(std::begin(other.texts), std::end(other.texts), std::begin(texts));
  }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(number), row, texts);
  }
};

TEST(StandardValues, KeepAtomicsAndArraysOfCAsMembers) {
  holder given;
  given.number = 7;
  given.row[1] = 9;
  given.texts[1] = "c";
  const auto read = sent(given);
  EXPECT_EQ(read.number, 7);
  EXPECT_EQ(read.row[1], 9);
  EXPECT_EQ(read.texts[1], "c");
}

struct ids : std::vector<int> {};
struct names : std::map<int, std::string> {};

TEST(StandardValues, KeepClassesThatAreDerivedFromOneAndAddNothing) {
  ids numbers;
  numbers.push_back(4);
  expect_kept(numbers);
  names given;
  given[1] = "a";
  expect_kept(given);
}

struct knot {
  std::shared_ptr<knot> next;
  std::weak_ptr<knot> last;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(next, last);
  }
};

TEST(StandardValues, KeepWhichPointersAreToOneObject) {
  const auto first = std::make_shared<knot>();
  first->next = std::make_shared<knot>();
  first->next->last = first;
  const auto read = sent(first);
  EXPECT_EQ(read->next->last.lock(), read) << "also in a circle";
  EXPECT_EQ(read->last.lock(), nullptr);
}

TEST(StandardValues, ARowThatIsLongerThanItsBytesIsRefused) {
  std::vector<std::byte> forged(16, std::byte{0xff});
  EXPECT_THROW((void)codec<std::string>::decode(forged), error);
  EXPECT_THROW((void)codec<std::deque<int>>::decode(forged), error);
  using numbers = std::map<int, int>;
  EXPECT_THROW((void)codec<numbers>::decode(forged), error);
}

TEST(StandardValues, AnAlternativeThatThereIsNotIsRefused) {
  using choice = std::variant<int, std::string>;
  std::vector<std::byte> forged(16, std::byte{7});
  EXPECT_THROW((void)codec<choice>::decode(forged), error);
}

struct throwing_move {
  throwing_move() = default;
  throwing_move(const throwing_move& /*from*/) { throw 1; }
  throwing_move& operator=(const throwing_move&) = default;
  template <class Archive>
  void serialize(Archive& /*archive*/) {}
};

TEST(StandardValues, AVariantWithoutAValueIsRefused) {
  using choice = std::variant<int, throwing_move>;
  choice lost;
  EXPECT_ANY_THROW(lost.emplace<1>(throwing_move()));
  ASSERT_TRUE(lost.valueless_by_exception());
  EXPECT_THROW((void)codec<choice>::size(lost), error);
}

}  // namespace
}  // namespace muster::standard_values_test
