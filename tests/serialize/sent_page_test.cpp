// SPDX-License-Identifier: BSL-1.0
// Every type of docs/what-can-be-sent.md, as it stands there; and that none is missing here.
#include <any>
#include <array>
#include <atomic>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <cereal/types/polymorphic.hpp>

#include <muster/serialize/transportable.hpp>

#include "page.hpp"

namespace muster::sent_page_test {

enum class colour { red };
struct point {
  double x;
  int labels[3];  // NOLINT(*-avoid-c-arrays)
};
class money {
public:
  explicit money(int cents) : cents_(cents) {}
  [[nodiscard]] int cents() const { return cents_; }

private:
  int cents_;
};
struct person {
  std::string name;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name);
  }
};
struct adds_members : person {
  int age;
};
struct shape {
  virtual ~shape() = default;
  virtual void draw() = 0;
};
struct with_pointer {
  int* pointer;
};
struct tagged {
  std::uintptr_t address;
};
struct by_modulus {
  int modulus;
  bool operator()(int a, int b) const { return a % modulus < b % modulus; }
};
struct without_default {
  explicit without_default(int value) : number(value) {}
  int number;
};
struct picture {
  std::array<std::array<float, 1000>, 1000> rows;
};
[[maybe_unused]] const auto closure = [number = 1] { return number; };

}  // namespace muster::sent_page_test

template <>
inline constexpr bool muster::is_plain_bytes<muster::sent_page_test::money> = true;
template <>
inline constexpr bool muster::is_plain_bytes<muster::sent_page_test::without_default> = true;
template <>
inline constexpr bool muster::holds_pointers<muster::sent_page_test::tagged> = true;

namespace muster::sent_page_test {
namespace {

__extension__ using widest_integer = __int128;

template <class... Ts>
constexpr bool all_sent = (transportable<Ts> && ...);
template <class... Ts>
constexpr bool none_sent = (!transportable<std::remove_const_t<Ts>> && ...);

TEST(SentPage, SaysWhichTypesAreSent) {
  EXPECT_TRUE((all_sent<double, widest_integer, colour>));
  EXPECT_TRUE((all_sent<point>));
  EXPECT_TRUE((all_sent<money>));
  EXPECT_TRUE((all_sent<person>));
  EXPECT_TRUE((all_sent<std::vector<person>, std::map<std::string, std::vector<int>>,
                        std::unordered_multimap<int, std::string>>));
  EXPECT_TRUE((all_sent<std::optional<person>, std::variant<int, std::string>, std::tuple<int, person>,
                        std::pair<int, double>>));
  EXPECT_TRUE((all_sent<std::unique_ptr<person>, std::shared_ptr<person>, std::weak_ptr<person>>));
  EXPECT_TRUE((all_sent<std::unique_ptr<shape>>));
  EXPECT_TRUE((all_sent<std::chrono::year_month_day, std::chrono::system_clock::time_point, std::filesystem::path,
                        std::strong_ordering>));
  EXPECT_TRUE((all_sent<std::mt19937, std::normal_distribution<>>));
}

TEST(SentPage, SaysWhichTypesAreNot) {
  EXPECT_TRUE(
      (none_sent<int*, std::string_view, std::span<int>, std::vector<int>::iterator, std::reference_wrapper<int>>));
  EXPECT_TRUE((none_sent<with_pointer, std::vector<with_pointer>>));
  EXPECT_TRUE((none_sent<tagged>));
  EXPECT_TRUE((none_sent<decltype(closure)>));
  EXPECT_TRUE((none_sent<std::thread, std::mutex, std::function<void()>, std::any, std::type_index>));
  EXPECT_TRUE((none_sent<std::set<int, by_modulus>, std::map<int, int, bool (*)(int, int)>>));
  EXPECT_TRUE((none_sent<std::unique_ptr<int, void (*)(int*)>>));
  EXPECT_TRUE((none_sent<adds_members>));
  EXPECT_TRUE((none_sent<shape>));
  EXPECT_TRUE((none_sent<std::pair<const int, std::string>, std::optional<const int>>));
  EXPECT_TRUE((none_sent<std::optional<without_default>, std::deque<without_default>>));
  EXPECT_TRUE((none_sent<std::atomic<int>>));
  EXPECT_TRUE((none_sent<picture>));
}

TEST(SentPage, IsAllHere) { test::expect_compiled(MUSTER_DOCS "what-can-be-sent.md", __FILE__, 44); }

}  // namespace
}  // namespace muster::sent_page_test
