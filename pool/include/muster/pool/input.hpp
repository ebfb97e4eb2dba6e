// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a stream is told of its input: how its elements come.
//
//     for (double each : pool.imap(work_out, muster::quick(points | std::views::transform(scaled)))) use(each);
//     for (auto& each : pool.imap(examine, muster::slow(std::views::istream<std::string>(std::cin)))) show(each);

#include <utility>

#include <muster/base/detail/range_concepts.hpp>
#include <muster/base/detail/view_over.hpp>
#include <muster/pool/detail/generated_view.hpp>
#include <muster/pool/detail/view_traits.hpp>

namespace muster {

/// A range with word of how its elements come, and otherwise that range: what quick() and slow() return.
///
/// Thread safety: as the range.
template <std::ranges::view View, input_speed Speed>
class paced_view : public detail::held_elements<View> {
public:
  /// For quick() and slow().
  explicit paced_view(View base) : detail::held_elements<View>(std::move(base)) {}
};

namespace detail {

template <input_speed Speed, stream_elements Xs>
[[nodiscard]] auto paced(Xs&& xs) {
  auto view = view_over(as_elements(std::forward<Xs>(xs)));
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
