// SPDX-License-Identifier: BSL-1.0
// Which reason the compiler gives for a type that cannot be sent.
#include <muster/serialize/detail/refusal.hpp>

#include <any>
#include <array>
#include <atomic>
#include <coroutine>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <ranges>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <typeindex>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include <muster/serialize/transportable.hpp>

namespace muster::refusal_test {

struct without_default {
  explicit without_default(int value) : number(value) {}
  int number;
};

}  // namespace muster::refusal_test

template <>
inline constexpr bool muster::is_plain_bytes<muster::refusal_test::without_default> = true;

namespace muster::refusal_test {
namespace {

using detail::refusal;

template <class T>
constexpr refusal why = detail::verdict_on<T>::why;

struct named {
  std::string name;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name);
  }
};
struct inherits : named {
  int more;
};
struct adds : named {
  int more;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(cereal::base_class<named>(this), more);
  }
};
struct adds_nothing : named {};
template <class Derived>
struct mixin {
  template <class Archive>
  void serialize(Archive& archive) {
    static_cast<Derived*>(this)->fields(archive);
  }
};
struct mixed : mixin<mixed> {
  int more;
  template <class Archive>
  void fields(Archive& archive) {
    archive(more);
  }
};
struct named_list : std::vector<int> {
  std::string name;
};
struct plain_list : std::vector<int> {};
struct served_list : std::vector<int> {
  std::string name;
};
template <class Archive>
void save(Archive& archive, const served_list& list) {
  archive(list.name, static_cast<const std::vector<int>&>(list));
}
template <class Archive>
void load(Archive& archive, served_list& list) {
  archive(list.name, static_cast<std::vector<int>&>(list));
}

TEST(Refusal, OfAFunctionOfABaseThatLeavesMembersOut) {
  EXPECT_EQ(why<inherits>, refusal::inherited);
  EXPECT_EQ(why<named_list>, refusal::inherited);
  EXPECT_EQ(why<std::vector<inherits>>, refusal::inherited);
  EXPECT_EQ(why<adds>, refusal::none);
  EXPECT_EQ(why<adds_nothing>, refusal::none);
  EXPECT_EQ(why<mixed>, refusal::none);
  EXPECT_EQ(why<plain_list>, refusal::none);
  EXPECT_EQ(why<served_list>, refusal::none);
}

struct by_modulus {
  int modulus;
  bool operator()(int a, int b) const { return a % modulus < b % modulus; }
};

TEST(Refusal, OfComparatorsAndHashesWithState) {
  EXPECT_EQ((why<std::set<int, by_modulus>>), refusal::stateful);
  EXPECT_EQ((why<std::set<int, bool (*)(int, int)>>), refusal::stateful);
  EXPECT_EQ((why<std::map<int, int, std::function<bool(int, int)>>>), refusal::stateful);
  EXPECT_EQ((why<std::unordered_set<int, std::size_t (*)(int)>>), refusal::stateful);
  EXPECT_EQ((why<std::unordered_set<int, std::hash<int>, bool (*)(int, int)>>), refusal::stateful);
  EXPECT_EQ((why<std::priority_queue<int, std::vector<int>, by_modulus>>), refusal::stateful);
  EXPECT_EQ((why<std::vector<std::set<int, by_modulus>>>), refusal::stateful);
  EXPECT_EQ((why<std::set<int, std::greater<>>>), refusal::none);
  EXPECT_EQ((why<std::priority_queue<int, std::vector<int>, std::greater<>>>), refusal::none);
}

TEST(Refusal, OfDeletersBesideTheDefault) {
  EXPECT_EQ((why<std::unique_ptr<int, void (*)(int*)>>), refusal::deleter);
  EXPECT_EQ((why<std::unique_ptr<int, std::function<void(int*)>>>), refusal::deleter);
  EXPECT_EQ(why<std::unique_ptr<int>>, refusal::none);
}

struct shape {
  shape() = default;
  shape(const shape&) = default;
  virtual ~shape() = default;
  virtual void draw() = 0;
};

TEST(Refusal, OfAbstractClassesThatAreNotOwned) {
  EXPECT_EQ(why<shape>, refusal::abstract_class);
  EXPECT_EQ(why<std::unique_ptr<shape>>, refusal::none);
}

TEST(Refusal, OfWhatIsReceivedIntoAValueThatCannotBeMade) {
  EXPECT_EQ(why<std::deque<without_default>>, refusal::no_default);
  EXPECT_EQ(why<std::list<without_default>>, refusal::no_default);
  EXPECT_EQ(why<std::optional<without_default>>, refusal::no_default);
  EXPECT_EQ((why<std::variant<without_default, int>>), refusal::no_default);
  EXPECT_EQ((why<std::map<int, without_default>>), refusal::no_default);
  EXPECT_EQ(why<std::unique_ptr<without_default>>, refusal::no_default);
  EXPECT_EQ(why<without_default>, refusal::none);
  EXPECT_EQ(why<std::vector<without_default>>, refusal::none);
  EXPECT_EQ((why<std::array<without_default, 3>>), refusal::none);
}

struct hidden {
  explicit hidden(int value) : number(value) {}
  int number;
};
struct with_string {
  std::string name;
};

TEST(Refusal, OfClassesThatTheCompilerCannotSeeInto) {
  EXPECT_EQ(why<hidden>, refusal::hidden_members);
  EXPECT_EQ(why<std::vector<hidden>>, refusal::hidden_members);
  EXPECT_EQ(why<with_string>, refusal::no_functions);
}

[[maybe_unused]] const auto closure = [number = 1] { return number; };

TEST(Refusal, OfLambdas) {
  using type = std::remove_const_t<decltype(closure)>;
  EXPECT_EQ(why<type>, refusal::closure);
  EXPECT_EQ(why<std::vector<type>>, refusal::closure);
}

TEST(Refusal, OfStandardClassesThatStandForSomethingOfThisProcess) {
  EXPECT_EQ(why<std::any>, refusal::standard);
  EXPECT_EQ(why<std::function<void()>>, refusal::standard);
  EXPECT_EQ(why<std::mutex>, refusal::standard);
  EXPECT_EQ(why<std::thread>, refusal::standard);
  EXPECT_EQ(why<std::type_index>, refusal::standard);
  EXPECT_EQ(why<std::coroutine_handle<>>, refusal::standard);
  EXPECT_EQ(why<std::vector<std::any>>, refusal::standard);
}

TEST(Refusal, OfPointersViewsAndIterators) {
  EXPECT_EQ(why<std::vector<int>::iterator>, refusal::pointer);
  EXPECT_EQ(why<std::list<int>::iterator>, refusal::pointer);
  EXPECT_EQ(why<decltype(std::declval<std::vector<int>&>() | std::views::reverse)>, refusal::pointer);
  EXPECT_EQ(why<std::initializer_list<int>>, refusal::pointer);
  EXPECT_EQ(why<std::vector<int*>>, refusal::pointer);
}

TEST(Refusal, OfConstants) {
  EXPECT_EQ((why<std::pair<const int, int>>), refusal::constant);
  EXPECT_EQ(why<std::optional<const int>>, refusal::constant);
  EXPECT_EQ((why<std::vector<std::pair<const int, std::string>>>), refusal::constant);
}

TEST(Refusal, OfValuesThatCannotBeMoved) { EXPECT_EQ(why<std::atomic<int>>, refusal::immovable); }

// ---- what is not refused

struct list_of_b;
struct list_of_a : std::vector<list_of_b> {};
struct list_of_b : std::vector<list_of_a> {};

/// A range with a serialize function of its own, so that its elements do not matter.
struct handles {
  std::vector<void*> all;
  [[nodiscard]] auto begin() const { return all.begin(); }
  [[nodiscard]] auto end() const { return all.end(); }
  template <class Archive>
  void serialize(Archive& archive) {
    auto count = all.size();
    archive(count);
    all.resize(count);
  }
};

TEST(Refusal, IsNoneOfClassesThatAreListsOfOneAnother) { EXPECT_EQ(why<list_of_a>, refusal::none); }

TEST(Refusal, IsNoneOfRangesThatSerialiseThemselves) { EXPECT_EQ(why<handles>, refusal::none); }

}  // namespace
}  // namespace muster::refusal_test
