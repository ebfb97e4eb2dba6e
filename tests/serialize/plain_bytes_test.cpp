// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/plain_bytes.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include <muster/serialize/transportable.hpp>

namespace muster::plain_bytes_test {

class money {
public:
  explicit money(int cents) : cents_(cents) {}
  [[nodiscard]] int cents() const { return cents_; }

private:
  int cents_;
};
struct with_money {
  std::array<money, 2> prices;
};
union number {
  int whole;
  float real;
};
union told {
  int whole;
  float real;
};

}  // namespace muster::plain_bytes_test

template <>
inline constexpr bool muster::is_plain_bytes<muster::plain_bytes_test::money> = true;
template <>
inline constexpr bool muster::is_plain_bytes<muster::plain_bytes_test::told> = true;

namespace muster::plain_bytes_test {
namespace {

struct numbers {
  int whole;
  double real;
  bool flag : 1;
  enum class colour { red } shade;
  std::byte raw;
};
struct with_arrays {
  std::array<char, 256> name;
  int matrix[3][4];  // NOLINT(*-avoid-c-arrays): of C libraries
  numbers many[2];   // NOLINT(*-avoid-c-arrays)
};
struct derived : numbers {
  int more;
};
struct with_constant {
  const int fixed = 3;
  [[no_unique_address]] std::monostate nothing;
};
struct with_choices {
  std::optional<double> perhaps;
  std::variant<int, numbers> either;
};
struct large {
  char bytes[70'000];  // NOLINT(*-avoid-c-arrays)
};

TEST(PlainBytes, StructsOfNumbersArraysAndStructsAre) {
  EXPECT_TRUE(trivially_transportable<numbers>);
  EXPECT_TRUE(trivially_transportable<with_arrays>);
  EXPECT_TRUE(trivially_transportable<derived>);
  EXPECT_TRUE(trivially_transportable<with_constant>);
  EXPECT_TRUE(trivially_transportable<with_choices>);
  EXPECT_TRUE(trivially_transportable<large>);
  EXPECT_TRUE((trivially_transportable<std::array<with_arrays, 3>>));
}

struct with_pointer {
  int before;
  char* text;
};
struct with_array_of_pointers {
  int before;
  void* pointers[2][3];  // NOLINT(*-avoid-c-arrays)
};
struct with_array_of_such {
  with_pointer each[3];  // NOLINT(*-avoid-c-arrays)
  int after;
};
struct deep {
  struct {
    struct {
      int number;
      int* pointer;
    } inner;
  } outer;
};
struct derived_from_such : with_pointer {
  int more;
};
struct with_view {
  std::string_view text;
};
struct with_perhaps_a_view {
  std::optional<std::string_view> text;
};
struct with_code {
  int line;
  std::error_code code;
};
struct with_function {
  void (*function)();
};
struct with_member_pointer {
  int numbers::* member;
};
struct with_wrapper {
  std::reference_wrapper<int> number;
};
struct with_reference {
  int& number;
};

TEST(PlainBytes, StructsThatHoldAPointerAtAnyDepthAreNot) {
  EXPECT_FALSE(trivially_transportable<with_pointer>);
  EXPECT_FALSE(trivially_transportable<with_array_of_pointers>);
  EXPECT_FALSE(trivially_transportable<with_array_of_such>);
  EXPECT_FALSE(trivially_transportable<deep>);
  EXPECT_FALSE(trivially_transportable<derived_from_such>);
  EXPECT_FALSE(trivially_transportable<with_view>);
  EXPECT_FALSE(trivially_transportable<with_perhaps_a_view>);
  EXPECT_FALSE(trivially_transportable<with_code>);
  EXPECT_FALSE(trivially_transportable<with_function>);
  EXPECT_FALSE(trivially_transportable<with_member_pointer>);
  EXPECT_FALSE(trivially_transportable<with_wrapper>);
  EXPECT_FALSE(trivially_transportable<with_reference>);
  EXPECT_FALSE((trivially_transportable<std::array<with_pointer, 2>>));
}

struct hidden {
  hidden() = default;
  [[nodiscard]] int value() const { return number; }

private:
  int number = 0;
};
struct with_union {
  int kind;
  number value;
};
struct with_unnamed_union {
  union {
    int whole;
    char* text;
  };
  int kind;
};
struct with_told_union {
  told value;
};
struct any_value {
  template <class T>
  any_value(T&& value) : address(&value) {}  // NOLINT(*-forwarding-reference-overload, *-explicit-*)
  any_value(const any_value&) = default;
  const void* address;
};
struct with_any_value {
  any_value value;
};
[[maybe_unused]] const auto closure = [number = 1] { return number; };

TEST(PlainBytes, ClassesThatTheCompilerCannotSeeIntoAreWhereTheySaySo) {
  EXPECT_FALSE(trivially_transportable<hidden>);
  EXPECT_FALSE(trivially_transportable<number>);
  EXPECT_FALSE(trivially_transportable<with_union>);
  EXPECT_FALSE(trivially_transportable<with_unnamed_union>);
  EXPECT_FALSE(trivially_transportable<with_any_value>);
  EXPECT_FALSE(trivially_transportable<decltype(closure)>);
  EXPECT_TRUE(trivially_transportable<money>);
  EXPECT_TRUE((trivially_transportable<std::array<money, 2>>));
  EXPECT_TRUE(trivially_transportable<told>);
  EXPECT_TRUE(trivially_transportable<with_told_union>);
}

struct sixty_four {
  int a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, aa, ab, ac, ad, ae, af;
  int b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, ba, bb, bc, bd, be, bf;
  int c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, ca, cb, cc, cd, ce, cf;
  int d0, d1, d2, d3, d4, d5, d6, d7, d8, d9, da, db, dc, dd, de, df;
};
struct one_more {
  sixty_four many;
  int a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, aa, ab, ac, ad, ae, af;
  int b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, ba, bb, bc, bd, be, bf;
  int c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, ca, cb, cc, cd, ce, cf;
  int d0, d1, d2, d3, d4, d5, d6, d7, d8, d9, da, db, dc, dd, de, df;
};

TEST(PlainBytes, StructsMayHave64Members) {
  EXPECT_TRUE(trivially_transportable<sixty_four>);
  EXPECT_FALSE(trivially_transportable<one_more>);
}

__extension__ using widest_integer = __int128;

TEST(PlainBytes, StandardClassesThatArePlainAre) {
  EXPECT_TRUE(trivially_transportable<widest_integer>);
  EXPECT_TRUE(trivially_transportable<std::mt19937>);
  EXPECT_TRUE(trivially_transportable<std::normal_distribution<>>);
  EXPECT_TRUE(trivially_transportable<std::chrono::year_month_day>);
  EXPECT_TRUE(trivially_transportable<std::chrono::system_clock::time_point>);
  EXPECT_TRUE(trivially_transportable<std::strong_ordering>);
}

}  // namespace
}  // namespace muster::plain_bytes_test
