// SPDX-License-Identifier: BSL-1.0
#pragma once

// The elements of what a call is given, as a view: std::views::all, without <ranges>.

#include <memory>
#include <type_traits>
#include <utility>

#include <muster/base/detail/range_concepts.hpp>

namespace muster::detail {

/// The elements of a range that the caller keeps.
///
/// Thread safety: as the range. Lifetime: borrows the range.
template <std::ranges::range Range>
class lent_elements : public std::ranges::view_base {
public:
  explicit lent_elements(Range& range) noexcept : range_(std::addressof(range)) {}

  [[nodiscard]] auto begin() const { return std::ranges::begin(*range_); }
  [[nodiscard]] auto end() const { return std::ranges::end(*range_); }
  [[nodiscard]] auto size() const
    requires std::ranges::sized_range<Range>
  {
    return std::ranges::size(*range_);
  }

private:
  Range* range_;
};

/// The elements of a range that is a member.
///
/// Thread safety: as the range.
template <std::ranges::range Range>
class held_elements : public std::ranges::view_base {
public:
  explicit held_elements(Range&& range) : range_(std::move(range)) {}

  [[nodiscard]] auto begin() { return std::ranges::begin(range_); }
  [[nodiscard]] auto end() { return std::ranges::end(range_); }
  [[nodiscard]] auto begin() const
    requires std::ranges::range<const Range>
  {
    return std::ranges::begin(range_);
  }
  [[nodiscard]] auto end() const
    requires std::ranges::range<const Range>
  {
    return std::ranges::end(range_);
  }
  [[nodiscard]] auto size() const
    requires std::ranges::sized_range<const Range>
  {
    return std::ranges::size(range_);
  }

private:
  Range range_;
};

/// The elements of a range that was given away. It is not copied: a view costs nothing to copy.
///
/// Thread safety: as the range.
template <std::ranges::range Range>
class given_elements : public held_elements<Range> {
public:
  using held_elements<Range>::held_elements;
  given_elements(given_elements&&) = default;
  given_elements& operator=(given_elements&&) = default;
};

/// A view of what is given: itself, where it is one.
template <std::ranges::viewable_range Xs>
[[nodiscard]] auto view_over(Xs&& xs) {
  using range = std::remove_reference_t<Xs>;
  if constexpr (std::ranges::view<std::remove_cv_t<range>>) {
    return std::remove_cv_t<range>(std::forward<Xs>(xs));
  } else if constexpr (std::is_lvalue_reference_v<Xs>) {
    return lent_elements<range>(xs);
  } else {
    return given_elements<range>(std::forward<Xs>(xs));
  }
}
template <class Xs>
using view_of = decltype(view_over(std::declval<Xs>()));

}  // namespace muster::detail
