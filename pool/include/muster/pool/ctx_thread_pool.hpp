// SPDX-License-Identifier: BSL-1.0
#pragma once

// A pool whose threads have an object each, which every task gets.

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/pool/detail/context.hpp>
#include <muster/pool/thread_pool.hpp>

namespace muster {

/// A thread_pool with a context for each thread: what ctx_pool is to pool. Callables take `C&` first, then bound
/// arguments, then arguments or elements. Only its thread uses a context, so `C` needs no locks; for libraries whose
/// objects must not be shared between threads, and for scratch memory.
///
/// Thread safety and process safety: as thread_pool.
template <class C>
class ctx_thread_pool : public basic_thread_pool<detail::context_first<C>> {
  using base = basic_thread_pool<detail::context_first<C>>;

public:
  /// With a context for each thread. `options.workers` is 0 or their number; otherwise errc::invalid_argument is
  /// thrown, also when there are none. Throws what thread_pool's constructor throws.
  explicit ctx_thread_pool(std::vector<C> contexts, const thread_pool_options& options = {})
      : base(options, detail::thread_count(options, contexts.size()), giver(contexts)) {}

  /// With contexts that `factory` makes in each thread: `() -> C` or `(std::size_t worker) -> C`. It runs after the
  /// initializer; what it throws is thrown by this constructor as errc::start_failed. `C` need not be movable.
  template <detail::factory_like<C> F>
  explicit ctx_thread_pool(F factory, const thread_pool_options& options = {})
      : base(options, detail::thread_count(options), maker(std::move(factory))) {}

private:
  // Each thread takes its own, while the constructor waits.
  static detail::local_context_maker giver(std::vector<C>& contexts) {
    return [&contexts](std::size_t worker) -> std::shared_ptr<void> {
      return std::make_shared<C>(std::move(contexts[worker]));
    };
  }

  template <class F>
  static detail::local_context_maker maker(F factory) {
    detail::require_factory<C, F>();
    auto shared = std::make_shared<detail::local_callable<F>>(std::move(factory));
    return [shared](std::size_t worker) {
      auto mine = *shared;  // threads make theirs at once
      return std::apply([&](const auto&... bound) { return detail::make_context<C>(mine.callable, worker, bound...); },
                        mine.bound);
    };
  }
};

}  // namespace muster
