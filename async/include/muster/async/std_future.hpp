// SPDX-License-Identifier: BSL-1.0
#pragma once

// Futures as std::future: `std::future<int> sum = pool.apply_async(add, 1, 2).std();`
//
// Thread safety: as future.

#include <future>
#include <utility>

#include <muster/async/future.hpp>

namespace muster {

// Not by a promise, which moves the value inside of std::call_once: what the move throws would come out of that, and
// ThreadSanitizer's never ends then. A task catches it before.
template <class R>
template <class Value>
auto future<R>::std() {
  detail::future_access::require_noticed(*this);
  using task = std::packaged_task<R(detail::outcome<R>&)>;
  task read([](detail::outcome<R>& how) -> R { return std::move(how).get(); });
  auto made = read.get_future();
  detail::future_access::when_done<R>(std::move(*this),
                                      [read = std::move(read)](detail::outcome<R> how) mutable { read(how); });
  return made;
}

}  // namespace muster
