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

#include <boost/preprocessor/arithmetic/dec.hpp>
#include <boost/preprocessor/punctuation/comma_if.hpp>
#include <boost/preprocessor/repetition/enum.hpp>
#include <boost/preprocessor/repetition/enum_shifted.hpp>
#include <boost/preprocessor/repetition/repeat_from_to.hpp>

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

template <class T, std::size_t Count>
inline constexpr bool has_members = false;
template <class T, class Probe, std::size_t Index>
inline constexpr bool member_accepts = false;

// NOLINTBEGIN(cppcoreguidelines-macro-usage): no pack expands to empty braces
#define MUSTER_DETAIL_BRACES(z, index, unused) \
  {                                            \
  }
#define MUSTER_DETAIL_MEMBERS(z, count, unused)                                                                 \
  template <class T>                                                                                            \
  inline constexpr bool has_members<T, count> = requires { T{BOOST_PP_ENUM(count, MUSTER_DETAIL_BRACES, ~)}; }; \
  template <class T, class Probe>                                                                               \
  inline constexpr bool member_accepts<T, Probe, (count) - 1> = requires(Probe probe) {                         \
    T{BOOST_PP_ENUM_SHIFTED(count, MUSTER_DETAIL_BRACES, ~) BOOST_PP_COMMA_IF(BOOST_PP_DEC(count)) probe};      \
  };
BOOST_PP_REPEAT_FROM_TO(1, 66, MUSTER_DETAIL_MEMBERS, ~)
#undef MUSTER_DETAIL_MEMBERS
#undef MUSTER_DETAIL_BRACES
// NOLINTEND(cppcoreguidelines-macro-usage)

/// Requires: T is an aggregate and not empty. False also where the members cannot be counted: there are more than
/// max_members, or one of them cannot be initialised from `{}`.
template <class T, std::size_t Index = 0>
consteval bool has_plain_members() {
  if constexpr (!has_members<T, Index + 1>) {
    return Index > 0 && Index <= max_members;
  } else if constexpr (!member_accepts<T, member_probe<true>, Index> || member_accepts<T, member_probe<false>, Index>) {
    return false;
  } else {
    return has_plain_members<T, Index + 1>();
  }
}

}  // namespace muster::detail
