// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a stream is told of its input: how its elements come.
//
//     for (double each : pool.imap(work_out, muster::quick(points | std::views::transform(scaled)))) use(each);
//     for (auto& each : pool.imap(examine, muster::slow(std::views::istream<std::string>(std::cin)))) show(each);

#include <array>
#include <cstddef>
#include <ranges>
#include <type_traits>
#include <utility>

#include <muster/pool/detail/generated_view.hpp>

namespace muster {

/// How the elements of an input come: at once; as they may, so that taking one may make wait; or by themselves, slowly.
enum class input_speed { quick, unknown, slow };

/// A range with word of how its elements come, and otherwise that range: what quick() and slow() return.
///
/// Thread safety: as the range.
template <std::ranges::view View, input_speed Speed>
class paced_view : public std::ranges::view_interface<paced_view<View, Speed>> {
public:
  explicit paced_view(View base) : base_(std::move(base)) {}

  [[nodiscard]] auto begin() { return std::ranges::begin(base_); }
  [[nodiscard]] auto begin() const
    requires std::ranges::range<const View>
  {
    return std::ranges::begin(base_);
  }
  [[nodiscard]] auto end() { return std::ranges::end(base_); }
  [[nodiscard]] auto end() const
    requires std::ranges::range<const View>
  {
    return std::ranges::end(base_);
  }
  [[nodiscard]] auto size() const
    requires std::ranges::sized_range<const View>
  {
    return std::ranges::size(base_);
  }

private:
  View base_;
};

namespace detail {

/// Containers: what has an allocator keeps its elements.
template <class Range>
concept container = std::ranges::forward_range<Range> && requires { typename Range::allocator_type; };

/// How the elements of a view come, as far as its type says.
template <class View>
inline constexpr input_speed speed_of = std::ranges::contiguous_range<View> ? input_speed::quick : input_speed::unknown;
template <class First, class Last>
inline constexpr input_speed speed_of<std::ranges::iota_view<First, Last>> = input_speed::quick;
template <container Range>
inline constexpr input_speed speed_of<std::ranges::ref_view<Range>> = input_speed::quick;
template <container Range>
inline constexpr input_speed speed_of<std::ranges::owning_view<Range>> = input_speed::quick;
template <class View>
inline constexpr input_speed speed_of<std::ranges::take_view<View>> = speed_of<View>;
template <class View>
inline constexpr input_speed speed_of<std::ranges::drop_view<View>> = speed_of<View>;
template <class View>
inline constexpr input_speed speed_of<std::ranges::reverse_view<View>> = speed_of<View>;
template <class View>
inline constexpr input_speed speed_of<std::ranges::common_view<View>> = speed_of<View>;
template <class View, std::size_t Index>
inline constexpr input_speed speed_of<std::ranges::elements_view<View, Index>> = speed_of<View>;
template <class View, input_speed Speed>
inline constexpr input_speed speed_of<paced_view<View, Speed>> = Speed;

/// Whether a range has its elements to itself, so that whoever was given the range may move them: containers, what
/// std::views makes of those that were moved in, and what generators give.
template <class Range>
inline constexpr bool owns_elements = container<Range>;
template <class T, std::size_t Size>
inline constexpr bool owns_elements<std::array<T, Size>> = true;
template <class Range>
inline constexpr bool owns_elements<std::ranges::owning_view<Range>> = owns_elements<Range>;
template <class View>
inline constexpr bool owns_elements<std::ranges::take_view<View>> = owns_elements<View>;
template <class View>
inline constexpr bool owns_elements<std::ranges::drop_view<View>> = owns_elements<View>;
template <class View>
inline constexpr bool owns_elements<std::ranges::reverse_view<View>> = owns_elements<View>;
template <class View>
inline constexpr bool owns_elements<std::ranges::common_view<View>> = owns_elements<View>;
template <class View, input_speed Speed>
inline constexpr bool owns_elements<paced_view<View, Speed>> = owns_elements<View>;
template <class Generator>
inline constexpr bool owns_elements<generated_view<Generator>> = true;

/// An element of a range `Range` of which each is taken once: moved where the range owns it.
template <class Range, class Iterator>
[[nodiscard]] decltype(auto) element_at(Iterator& at) {
  if constexpr (owns_elements<Range>) {
    return std::ranges::iter_move(at);
  } else {
    return *at;
  }
}

/// Whether elements lie where they are until the range is changed, as those of containers do.
template <class View>
inline constexpr bool keeps_elements = std::ranges::contiguous_range<View>;
template <container Range>
inline constexpr bool keeps_elements<std::ranges::ref_view<Range>> = true;
template <container Range>
inline constexpr bool keeps_elements<std::ranges::owning_view<Range>> = true;
template <class View>
inline constexpr bool keeps_elements<std::ranges::take_view<View>> = keeps_elements<View>;
template <class View>
inline constexpr bool keeps_elements<std::ranges::drop_view<View>> = keeps_elements<View>;
template <class View>
inline constexpr bool keeps_elements<std::ranges::reverse_view<View>> = keeps_elements<View>;
template <class View>
inline constexpr bool keeps_elements<std::ranges::common_view<View>> = keeps_elements<View>;
template <class View, input_speed Speed>
inline constexpr bool keeps_elements<paced_view<View, Speed>> = keeps_elements<View>;

template <input_speed Speed, stream_elements Xs>
[[nodiscard]] auto paced(Xs&& xs) {
  auto view = std::views::all(as_elements(std::forward<Xs>(xs)));
  return paced_view<decltype(view), Speed>(std::move(view));
}

}  // namespace detail

/// Says of a range or generator that its elements come at once: streams (imap and its like) gather them into chunks, as
/// those of containers, std::views::iota, and what std::views makes of these without calling a function. Without it a
/// stream takes one element after the other, and each is a task; so say it of a view that computes its elements. If one
/// makes wait all the same, those before it in the same chunk wait with it.
///
/// The mark belongs around everything else: `quick(xs | std::views::transform(f))`.
/// Lifetime: an lvalue is borrowed, an rvalue is moved in.
template <detail::stream_elements Xs>
[[nodiscard]] auto quick(Xs&& xs) {
  return detail::paced<input_speed::quick>(std::forward<Xs>(xs));
}

/// Says of a range or generator that its elements come by themselves: lines of a terminal, messages. A stream takes
/// them with a thread of its own, from the first time that somebody wants a result on, and sends each when it comes; so
/// neither workers nor the consumer wait for the input, and every result can be had as soon as it is there. At most
/// task_options::window elements are taken ahead. Each is a task, whatever the chunk, and no progress is shown.
///
/// The input is gone over by that thread while the consumer's goes on: what both use needs a lock, or atomics. The
/// stream's destructor waits until the input has given the element that it was asked for; and while nothing else is
/// under way, a wait for a result ends by that too, not by the pool's end alone. A serial_pool has no threads, and
/// takes elements as of any other input.
/// Lifetime: as quick().
template <detail::stream_elements Xs>
[[nodiscard]] auto slow(Xs&& xs) {
  return detail::paced<input_speed::slow>(std::forward<Xs>(xs));
}

}  // namespace muster
