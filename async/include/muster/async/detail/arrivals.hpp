// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <muster/async/detail/end_notice.hpp>
#include <muster/async/detail/future_home.hpp>
#include <muster/base/clock.hpp>

namespace muster::detail {

/// Which of some futures are done and have not been taken yet.
///
/// Thread safety: safe; one thread takes them.
class arrivals;

[[nodiscard]] std::shared_ptr<arrivals> make_arrivals();
/// Tells `where` that future `index` is done.
[[nodiscard]] std::unique_ptr<end_notice> arrival_notice(std::shared_ptr<arrivals> where, std::size_t index);

/// Whether take_next() would not wait.
[[nodiscard]] bool has_some(arrivals& all);
/// Calls `then` once take_next() would not wait, at once if it would not now. An earlier `then` is dropped.
void when_some(arrivals& all, std::function<void()> then);
/// Whether take_next() would not wait, or does not by then. Throws as callback_pause. `home`: of one of them.
bool wait_for_some(arrivals& all, deadline until, future_home* home = nullptr);
/// The index of the one that was done first of those that are left.
/// Throws as callback_pause. Unblocked by: the end of any of them.
[[nodiscard]] std::size_t take_next(arrivals& all, future_home* home = nullptr);

}  // namespace muster::detail
