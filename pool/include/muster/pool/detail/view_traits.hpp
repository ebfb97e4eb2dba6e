// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the type of a view says of its elements. Views of the standard library are told apart as the compiler spells
// them, so that <ranges> is not needed: a program that makes one has included it.
//
// Thread safety: types only.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include <muster/base/detail/range_concepts.hpp>
#include <muster/base/detail/view_over.hpp>
#include <muster/pool/detail/generated_view.hpp>
#include <muster/serialize/detail/spelling.hpp>

namespace muster {

/// How the elements of an input come: at once; as they may, so that taking one may make wait; or by themselves, slowly.
enum class input_speed : std::uint8_t { quick, unknown, slow };

template <std::ranges::view View, input_speed Speed>
class paced_view;

namespace detail {

/// Containers: what has an allocator keeps its elements.
template <class Range>
concept container = std::ranges::forward_range<Range> && requires { typename Range::allocator_type; };

/// What a view does with the elements of the range below it.
enum class view_kind : std::uint8_t {
  other,   ///< calls a function, or nothing is known of it
  counts,  ///< iota: there is no range below it
  lends,   ///< a range that the caller keeps
  owns,    ///< a range that was moved in
  passes,  ///< they are those of the range, maybe fewer, or in another order
  chooses  ///< a part of each
};

template <class View>
consteval view_kind kind_of_standard_view() {
  constexpr std::string_view name = spelling_of<View>();
  constexpr std::string_view room = "std::ranges::";
  if (!name.starts_with(room)) return view_kind::other;
  const auto view = name.substr(room.size(), name.find('<') - room.size());
  if (view == "iota_view") return view_kind::counts;
  if (view == "ref_view") return view_kind::lends;
  if (view == "owning_view") return view_kind::owns;
  if (view == "take_view" || view == "drop_view" || view == "reverse_view" || view == "common_view") {
    return view_kind::passes;
  }
  return view == "elements_view" ? view_kind::chooses : view_kind::other;
}
template <class View>
inline constexpr view_kind kind_of_view = kind_of_standard_view<View>();
template <class Range>
inline constexpr view_kind kind_of_view<lent_elements<Range>> = view_kind::lends;
template <class Range>
inline constexpr view_kind kind_of_view<given_elements<Range>> = view_kind::owns;

/// The range below a view of the standard library.
template <class View>
struct below {
  using type = std::remove_cvref_t<decltype(std::declval<View>().base())>;
};
template <class Range>
struct below<lent_elements<Range>> {
  using type = std::remove_cv_t<Range>;
};
template <class Range>
struct below<given_elements<Range>> {
  using type = Range;
};
template <class View>
using range_below = typename below<View>::type;

/// Whether elements lie where they are until the range is changed, as those of containers do.
template <class View>
consteval bool find_keeping() {
  constexpr auto kind = kind_of_view<View>;
  if constexpr (kind == view_kind::passes) return find_keeping<range_below<View>>();
  if constexpr (kind == view_kind::lends || kind == view_kind::owns) {
    if constexpr (container<range_below<View>>) return true;
  }
  return std::ranges::contiguous_range<View>;
}
template <class View>
inline constexpr bool keeps_elements = find_keeping<View>();
template <class View, input_speed Speed>
inline constexpr bool keeps_elements<paced_view<View, Speed>> = keeps_elements<View>;

/// How the elements of a view come, as far as its type says.
template <class View>
consteval input_speed find_speed();
template <class View>
inline constexpr input_speed speed_of = find_speed<View>();
template <class View, input_speed Speed>
inline constexpr input_speed speed_of<paced_view<View, Speed>> = Speed;

template <class View>
consteval input_speed find_speed() {
  constexpr auto kind = kind_of_view<View>;
  if constexpr (kind == view_kind::counts) return input_speed::quick;
  if constexpr (kind == view_kind::passes || kind == view_kind::chooses) return speed_of<range_below<View>>;
  return find_keeping<View>() ? input_speed::quick : input_speed::unknown;
}

/// Whether a range has its elements to itself, so that they may be moved out of a range that was given away:
/// containers, what std::views makes of those that were moved in, and what generators give.
template <class Range>
consteval bool find_ownership();
template <class Range>
inline constexpr bool owns_elements = find_ownership<Range>();
template <class T, std::size_t Size>
inline constexpr bool owns_elements<std::array<T, Size>> = true;
template <class View, input_speed Speed>
inline constexpr bool owns_elements<paced_view<View, Speed>> = owns_elements<View>;
template <class Generator>
inline constexpr bool owns_elements<generated_view<Generator>> = true;

template <class Range>
consteval bool find_ownership() {
  constexpr auto kind = kind_of_view<Range>;
  if constexpr (kind == view_kind::owns || kind == view_kind::passes) return owns_elements<range_below<Range>>;
  return container<Range>;
}

/// An element of a range `Range` of which each is taken once: moved where the range owns it.
template <class Range, class Iterator>
[[nodiscard]] decltype(auto) element_at(Iterator& at) {
  if constexpr (owns_elements<Range>) {
    return std::ranges::iter_move(at);
  } else {
    return *at;
  }
}

}  // namespace detail

}  // namespace muster
