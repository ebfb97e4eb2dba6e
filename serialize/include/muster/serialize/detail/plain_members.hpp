// SPDX-License-Identifier: BSL-1.0
#pragma once

// Whether all members of an aggregate are plain, found without their names.
//
// An aggregate is initialised member by member from a list, so the compiler can be asked what the member at an index
// accepts: `T{{}, {}, probe}`, where `{}` initialises one member of any type, and the probe converts to the types
// under test. Two probes are asked, since braces may be left out: where a member does not accept a probe as a whole, it
// is the first member of that member which is initialised. A member is plain if it accepts the probe that converts to
// plain types, and nothing in it accepts the other one. For an array this asks for its first element. Bases count as
// members. Source: the count of members is that of Boost.PFR; which cannot look into structs with arrays or bases.
//
// Thread safety: types only.

#include <cstddef>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// Defined where plain types are.
template <class T>
consteval bool is_plain_type();

/// Converts to types of which is_plain_type() is `IsPlain`.
template <bool IsPlain>
struct member_probe {
  template <class Member>
    requires(is_plain_type<Member>() == IsPlain)
  operator Member() const;  // NOLINT(google-explicit-constructor): the conversion is what is asked for
};

inline constexpr std::size_t max_members = 64;

/// Whether T can be initialised from so many empty braces, and then from `Last`, of which there is one at most.
template <class T, std::size_t Braces, class... Last>
inline constexpr bool is_made_of = false;

// NOLINTBEGIN(cppcoreguidelines-macro-usage): no pack expands to empty braces
#define MUSTER_DETAIL_BRACES_1 {},
#define MUSTER_DETAIL_BRACES_2 MUSTER_DETAIL_BRACES_1 MUSTER_DETAIL_BRACES_1
#define MUSTER_DETAIL_BRACES_4 MUSTER_DETAIL_BRACES_2 MUSTER_DETAIL_BRACES_2
#define MUSTER_DETAIL_BRACES_8 MUSTER_DETAIL_BRACES_4 MUSTER_DETAIL_BRACES_4
#define MUSTER_DETAIL_BRACES_16 MUSTER_DETAIL_BRACES_8 MUSTER_DETAIL_BRACES_8
#define MUSTER_DETAIL_BRACES_32 MUSTER_DETAIL_BRACES_16 MUSTER_DETAIL_BRACES_16
#define MUSTER_DETAIL_BRACES_64 MUSTER_DETAIL_BRACES_32 MUSTER_DETAIL_BRACES_32
// What follows the count are the braces.
#define MUSTER_DETAIL_MADE_OF(count, ...) \
  template <class T, class... Last>       \
  inline constexpr bool is_made_of<T, count, Last...> = requires(Last... last) { T{__VA_ARGS__ last...}; };
#define MUSTER_DETAIL_TWO(count, ...)         \
  MUSTER_DETAIL_MADE_OF((count), __VA_ARGS__) \
  MUSTER_DETAIL_MADE_OF((count) + 1, __VA_ARGS__ MUSTER_DETAIL_BRACES_1)
#define MUSTER_DETAIL_EIGHT(count, ...)                              \
  MUSTER_DETAIL_TWO(count, __VA_ARGS__)                              \
  MUSTER_DETAIL_TWO((count) + 2, __VA_ARGS__ MUSTER_DETAIL_BRACES_2) \
  MUSTER_DETAIL_TWO((count) + 4, __VA_ARGS__ MUSTER_DETAIL_BRACES_4) \
  MUSTER_DETAIL_TWO((count) + 6, __VA_ARGS__ MUSTER_DETAIL_BRACES_4 MUSTER_DETAIL_BRACES_2)
#define MUSTER_DETAIL_SIXTEEN(count, ...) \
  MUSTER_DETAIL_EIGHT(count, __VA_ARGS__) \
  MUSTER_DETAIL_EIGHT((count) + 8, __VA_ARGS__ MUSTER_DETAIL_BRACES_8)
MUSTER_DETAIL_SIXTEEN(0, )
MUSTER_DETAIL_SIXTEEN(16, MUSTER_DETAIL_BRACES_16)
MUSTER_DETAIL_SIXTEEN(32, MUSTER_DETAIL_BRACES_32)
MUSTER_DETAIL_SIXTEEN(48, MUSTER_DETAIL_BRACES_32 MUSTER_DETAIL_BRACES_16)
MUSTER_DETAIL_TWO(64, MUSTER_DETAIL_BRACES_64)
#undef MUSTER_DETAIL_SIXTEEN
#undef MUSTER_DETAIL_EIGHT
#undef MUSTER_DETAIL_TWO
#undef MUSTER_DETAIL_MADE_OF
#undef MUSTER_DETAIL_BRACES_64
#undef MUSTER_DETAIL_BRACES_32
#undef MUSTER_DETAIL_BRACES_16
#undef MUSTER_DETAIL_BRACES_8
#undef MUSTER_DETAIL_BRACES_4
#undef MUSTER_DETAIL_BRACES_2
#undef MUSTER_DETAIL_BRACES_1
// NOLINTEND(cppcoreguidelines-macro-usage)

/// Requires: T is an aggregate and not empty. False also where the members cannot be counted: there are more than
/// max_members, or one of them cannot be initialised from `{}`.
template <class T, std::size_t Index = 0>
consteval bool has_plain_members() {
  if constexpr (!is_made_of<T, Index + 1>) {
    return Index > 0 && Index <= max_members;
  } else if constexpr (!is_made_of<T, Index, member_probe<true>> || is_made_of<T, Index, member_probe<false>>) {
    return false;
  } else {
    return has_plain_members<T, Index + 1>();
  }
}

}  // namespace muster::detail
