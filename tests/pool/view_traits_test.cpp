// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/view_traits.hpp>

#include <list>
#include <ranges>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <muster/pool/input.hpp>

namespace muster::view_traits_test {
namespace {

using numbers = std::vector<int>;
using words = std::list<std::string>;

constexpr auto doubled = [](int x) { return 2 * x; };
using computed = decltype(std::views::iota(0, 3) | std::views::transform(doubled));
using lines = std::ranges::istream_view<std::string>;

template <class Xs>
using view = detail::view_of<Xs>;

TEST(ViewTraits, ElementsOfContainersComeAtOnce) {
  static_assert(detail::speed_of<view<numbers&>> == input_speed::quick);
  static_assert(detail::speed_of<view<words>> == input_speed::quick);
  static_assert(detail::speed_of<std::ranges::ref_view<words>> == input_speed::quick);
  static_assert(detail::speed_of<std::ranges::owning_view<words>> == input_speed::quick);
  static_assert(detail::speed_of<std::ranges::iota_view<int, int>> == input_speed::quick);
}

TEST(ViewTraits, ElementsOfViewsThatCallNothingComeAsThoseBelow) {
  static_assert(detail::speed_of<decltype(std::views::iota(0) | std::views::take(3))> == input_speed::quick);
  static_assert(detail::speed_of<decltype(std::declval<words&>() | std::views::reverse)> == input_speed::quick);
  static_assert(detail::speed_of<std::ranges::take_view<lines>> == input_speed::unknown);
}

TEST(ViewTraits, ElementsThatAreComputedComeAsTheyMayUnlessMarked) {
  static_assert(detail::speed_of<computed> == input_speed::unknown);
  static_assert(detail::speed_of<lines> == input_speed::unknown);
  static_assert(detail::speed_of<decltype(quick(std::declval<computed>()))> == input_speed::quick);
  static_assert(detail::speed_of<decltype(slow(std::declval<numbers&>()))> == input_speed::slow);
}

TEST(ViewTraits, WhatWasGivenAwayOwnsItsElements) {
  static_assert(detail::owns_elements<numbers> && detail::owns_elements<view<numbers>>);
  static_assert(!detail::owns_elements<view<numbers&>>);
  static_assert(!detail::owns_elements<std::ranges::ref_view<numbers>>);
  static_assert(detail::owns_elements<std::ranges::take_view<std::ranges::owning_view<words>>>);
  static_assert(!detail::owns_elements<computed>);
}

TEST(ViewTraits, ElementsOfContainersStayWhereTheyAre) {
  static_assert(detail::keeps_elements<view<words&>> && detail::keeps_elements<view<numbers>>);
  static_assert(detail::keeps_elements<decltype(std::declval<words&>() | std::views::drop(1))>);
  static_assert(!detail::keeps_elements<computed> && !detail::keeps_elements<lines>);
}

}  // namespace
}  // namespace muster::view_traits_test
